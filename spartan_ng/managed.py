"""Arrays of this package as xarray has them: with `chunks`, by which it knows whom to ask about them.

What xarray loads, writes to files or has a function work on, it takes to the manager of chunks
(`xarrays.ChunkManager`). There is one chunk an axis: how arrays are cut is the optimizer's to choose. They
name no namespace of the array API standard's, so that NumPy's functions and rules hold for them, and several
index arrays at once, which xarray refuses to all that name one (its issue 8667). What is made of them is of
their class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.summaries import mime_bundle
from spartan_ng.api.files.sources import over
from spartan_ng.api.ndarray.array import ndarray
from spartan_ng.api.ndarray.own_classes import complete, of_class
from spartan_ng.config import config
from spartan_ng.sources.picked import Picked
from spartan_ng.submodules import package

_PLACES = (np.argmax, np.argmin, np.nanargmax, np.nanargmin)
"""Functions whose results xarray uses as indices."""
Chunks = tuple[tuple[int, ...], ...]
"""The lengths of the parts along each axis."""


def managed(made: Any) -> Any:
    """An array, or all in a tuple or list, in the class that xarray has, over the same elements."""
    return of_class(Managed, made)


def as_managed(made: Any) -> Any:
    """The same of what a function of NumPy's arrays has made; objects stay NumPy's."""
    if isinstance(made, tuple):
        return tuple(map(as_managed, made))
    return made if made.dtype.hasobject else managed(as_handle(made))


def _handed_on(function: Callable[..., Any]) -> Any:
    """A method whose arrays are of xarray's class, and whose operands may be dask's."""

    @functools.wraps(function, updated=())
    def call(self: Any, *operands: Any, **keywords: Any) -> Any:
        return managed(function(self, *map(_here, operands), **keywords))

    return call


def _here(operand: Any) -> Any:
    """An array of dask's, computed: xarray makes some of what is in memory where dask is installed."""
    return np.asarray(operand) if type(operand).__module__.startswith("dask.array") else operand


def _picked(a: ndarray, key: Any) -> Picked | None:
    """A source of what one increasing index array picks from a source, whose other axes are whole."""
    ref = None if a._peek() is not None else a._leaf()
    if ref is None or ref.source is None or a.nbytes <= config.small_bytes or not isinstance(key, tuple):
        return None
    found = None
    for axis, part in enumerate(key):
        if isinstance(part, slice):
            if part != slice(None):
                return None
        elif found is None and isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iu":
            found = axis, part.astype(np.intp)
        elif part is not Ellipsis or axis < len(key) - 1:
            return None
    if found is None or not len(found[1]):
        return None
    axis, places = found
    inside = places[0] >= 0 and places[-1] < a.shape[axis] and bool((np.diff(places) > 0).all())
    return Picked(ref.source, axis, places) if inside else None


class Managed(ndarray, own=True):
    """An array that xarray asks the manager of chunks about."""

    __slots__ = ()
    __module__ = "xarray"
    """opt_einsum calls the functions of the package that a class comes from, and NumPy's where that has none:
    ours would make arrays of another class."""

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        found = super().__array_function__(func, types, args, kwargs)
        return forced(found) if func in _PLACES else managed(found)

    def __getitem__(self, key: Any) -> Any:
        """A part; of what lies in a file, increasing indices are no more than another way to read it."""
        picked = _picked(self, key)
        return managed(super().__getitem__(key) if picked is None else over(picked))

    def argmax(self, *arguments: Any, **keywords: Any) -> Any:
        """Where the greatest elements are, now: xarray takes no indices that have yet to be computed."""
        return forced(super().argmax(*arguments, **keywords))

    def argmin(self, *arguments: Any, **keywords: Any) -> Any:
        """Where the least elements are, now."""
        return forced(super().argmin(*arguments, **keywords))

    @property
    def chunks(self) -> Chunks:
        """One part an axis: who asks may have the whole."""
        return tuple((n,) for n in self.shape)

    @property
    def __array_namespace__(self) -> Any:
        """None is named."""
        raise AttributeError("__array_namespace__")

    def _repr_inline_(self, max_width: int) -> str:
        """What xarray writes in a data set's line: nothing is computed for it."""
        return f"spartan_ng.ndarray<{self.dtype}>"[:max_width]

    def __repr__(self) -> str:
        """What NumPy's says, or what a notebook shows of what is not here: xarray computes nothing for it."""
        return mime_bundle(self, elements=False).get("text/plain") or super().__repr__()

    def _repr_html_(self) -> str:
        return mime_bundle(self, elements=False).get("text/html") or f"<pre>{escape(repr(self))}</pre>"

    def __reduce__(self) -> Any:
        return (_restored, ndarray.__reduce__(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Of its class, with the array's own pickle inside."""
        return (_restored, ndarray.__reduce_ex__(self, protocol))


complete(Managed, _handed_on)


def _restored(restore: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """An unpickled array."""
    return managed(restore(*arguments))


class _Namespace:
    """NumPy's functions of this package, in whose arrays xarray asks the manager of chunks.

    Those that make arrays take `chunks=`, which say nothing here.
    """

    def __getattr__(self, name: str) -> Any:
        found = getattr(package(), name)
        if isinstance(found, type) or not callable(found):
            return found

        @functools.wraps(found, updated=())
        def call(*arguments: Any, chunks: Any = None, **keywords: Any) -> Any:
            return managed(found(*arguments, **keywords))

        return call


NAMESPACE: Any = _Namespace()
