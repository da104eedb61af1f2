"""`numpy.polynomial`, whose functions look for NumPy's own class before they give coefficients more axes.

What is evaluated at an array of ours gets its coefficients with those axes; all else is NumPy's code, over
functions that take arrays of ours.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import forced
from spartan_ng.api.core.handle import Handle

_VALUES = {
    "polynomial": "polyval",
    "chebyshev": "chebval",
    "hermite": "hermval",
    "hermite_e": "hermeval",
    "laguerre": "lagval",
    "legendre": "legval",
}
"""The function of each module that evaluates a series."""


def _evaluating(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """A function of points and coefficients that evaluates each series at all points, or at one each."""

    @functools.wraps(numpys)
    def evaluate(x: Any, c: Any, tensor: bool = True) -> Any:
        if not isinstance(x, Handle):
            return numpys(x, forced(c), tensor)
        c = np.array(forced(c), ndmin=1)
        if tensor:
            c = c.reshape(c.shape + (1,) * x.ndim)
        elif numpys.__name__ == "polyvalfromroots" and x.ndim >= c.ndim:
            raise ValueError("x.ndim must be < r.ndim when tensor == False")
        return numpys(x, c, False)

    return evaluate


def _on_grids(numpys: Callable[..., Any], evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """A function of points along each axis of a grid, and coefficients."""

    @functools.wraps(numpys)
    def on_grid(*arguments: Any) -> Any:
        *points, c = arguments
        for x in points:
            c = evaluate(x, c)
        return c

    return on_grid


class _Series(types.ModuleType):
    """A module of NumPy's for one kind of series."""

    def __init__(self, numpys: types.ModuleType) -> None:
        super().__init__(numpys.__name__, numpys.__doc__)
        name = _VALUES[numpys.__name__.rpartition(".")[-1]]
        evaluate = _evaluating(getattr(numpys, name))
        self.__dict__.update(vars(numpys), **{name: evaluate})
        for grid in ("grid2d", "grid3d"):
            grids = name.removesuffix("val") + grid
            self.__dict__[grids] = _on_grids(getattr(numpys, grids), evaluate)
        if name == "polyval":
            self.__dict__["polyvalfromroots"] = _evaluating(numpys.polyvalfromroots)


@functools.cache
def _series(name: str) -> _Series:
    return _Series(getattr(np.polynomial, name))


def __getattr__(name: str) -> Any:
    """NumPy's name, or its module of series."""
    return _series(name) if name in _VALUES else getattr(np.polynomial, name)
