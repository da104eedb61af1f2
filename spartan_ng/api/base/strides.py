"""Views of an array's memory by strides of the caller's own, and NumPy's records and texts over it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core.conversion import as_handle, over_buffer
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


@numpy_function(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True
) -> ndarray:
    """The memory of an array under another shape and other strides; nobody checks that they stay inside.

    What is not in this process comes home first, and stays.
    """
    x = as_handle(x)
    return over_buffer(np.lib.stride_tricks.as_strided(_memory(x), shape, strides, writeable=writeable), x)


def windows_to_write(a: ndarray, window_shape: Any, axis: Any) -> ndarray:
    """The windows of an array's memory, which are written to together where they lie over each other."""
    windows = np.lib.stride_tricks.sliding_window_view(_memory(a), window_shape, axis, writeable=True)
    return over_buffer(windows)


def _memory(a: Any) -> Any:
    """An argument with memory in place of arrays of ours; what it makes may read and write it."""
    if isinstance(a, list | tuple):
        return type(a)(map(_memory, a))
    if not isinstance(a, Handle):
        return a
    return a._force() if a._cell.frozen else a._lent()


def _over_memory(function: Any) -> None:
    """Let one of NumPy's constructors of other arrays take ours."""

    def make(*args: Any, **keywords: Any) -> Any:
        return function(*map(_memory, args), **keywords)

    make.__name__, make.__doc__ = function.__name__, function.__doc__
    numpy_function(function)(make)


def _deprecated() -> list[Any]:
    """What NumPy 2.5 still has, and warns of as soon as it is looked up: whoever calls it is warned, nobody
    who imports this package."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return [getattr(np.char, name) for name in ("array", "asarray") if hasattr(np.char, name)]


for _constructor in (np.asmatrix, np.rec.array, np.rec.fromrecords, np.rec.fromarrays, *_deprecated()):
    _over_memory(_constructor)

__all__: list[str] = []
