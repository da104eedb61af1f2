"""Python's functions of numbers as functions of arrays: `vectorize`, `frompyfunc`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base.room import work_fits
from spartan_ng.api.core.conversion import array_of, as_handle, forced
from spartan_ng.api.core.dispatch import by_numpy, fresh
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle, copied, settle
from spartan_ng.api.core.kinds import PLAIN_OR_NUMERIC, stays
from spartan_ng.api.core.layouts import lying_as
from spartan_ng.api.elementwise import operators
from spartan_ng.graph.evaluation import in_process

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_OBJECT_BYTES = 64
"""Of an element for which NumPy calls a function: objects of operands and result, and their places."""


class vectorize:
    """A function of scalars as a function of arrays; where these lie with the workers, it runs there. It has
    been called for all elements when a call returns.

    Takes NumPy's arguments, and may decorate a function.
    """

    def __init__(self, pyfunc: Any = np._NoValue, *args: Any, **keywords: Any) -> None:
        self._by_numpy: Any = np.vectorize(pyfunc, *args, **keywords)
        self._has_options = bool(args or keywords)

    def __getattr__(self, name: str) -> Any:
        """NumPy's attributes: `pyfunc`, `otypes`, `excluded`, `cache`, `signature`, `__name__`."""
        return getattr(self.__dict__["_by_numpy"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        """An option that is set counts as one that was given."""
        if name not in ("_by_numpy", "_has_options"):
            setattr(self._by_numpy, name, value)
            name, value = "_has_options", True
        super().__setattr__(name, value)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        """The function's, or the one that was given."""
        return self._by_numpy.__doc__

    def __call__(self, *operands: Any, **named: Any) -> Any:
        """The function of every element, or of the first argument as its decorator."""
        if self._by_numpy.pyfunc is np._NoValue:
            self._by_numpy(*operands, **named)
            return self
        few = None if named else few_values(operands, PLAIN_OR_NUMERIC)
        if few is not None:
            return fresh(self._by_numpy(*few))
        lazy = any(isinstance(o, Handle) and o._peek() is None and o.size for o in operands)
        if lazy and not (named or self._has_options):
            arrays = [as_handle(o) for o in operands]
            fits = in_process() and work_fits(arrays, _OBJECT_BYTES * max(a.size for a in arrays))
            if not (fits or any(stays(a.dtype) for a in arrays)):
                return _everywhere(self._by_numpy.pyfunc, arrays)
        return by_numpy(self._by_numpy, *operands, **named)


def _everywhere(function: Callable[..., Any], arrays: list[ndarray]) -> Any:
    """A function of scalars on every block, its dtype that of its first result, as NumPy has it."""
    first = [a[(0,) * a.ndim] for a in arrays]
    kind = np.asarray(function(*map(forced, first))).dtype
    found = array_of(operators.map(np.vectorize(function, otypes=[kind]), *arrays, dtype=kind))
    found = lying_as(found, *(copied(a, "K") for a in arrays))  # of which NumPy makes objects first
    settle(found)  # before anything changes that the function looks up
    return found


class _OfObjects:
    """NumPy's ufunc of a Python function, with its methods; it works on the driver."""

    def __init__(self, function: Any) -> None:
        self._by_numpy = function

    def __call__(self, *operands: Any, **keywords: Any) -> Any:
        few = (
            None
            if keywords or len(operands) != self._by_numpy.nin
            else few_values(operands, PLAIN_OR_NUMERIC)
        )
        if few is not None:
            return fresh(self._by_numpy(*few))
        return by_numpy(self._by_numpy, *operands, **keywords)

    def __repr__(self) -> str:
        return repr(self._by_numpy)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["_by_numpy"], name)
        return partial(by_numpy, found) if callable(found) else found


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, **identity: Any) -> Callable[..., Any]:
    """A Python function as a ufunc over arrays of objects, on the driver; NumPy's `identity=`, too."""
    return _OfObjects(np.frompyfunc(func, nin, nout, **identity))


__all__ = ["frompyfunc", "vectorize"]
