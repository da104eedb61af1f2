"""Folds by an associative ufunc: a block's state is what its elements come to."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops import order

State = order.State


@lru_cache(maxsize=1024)
def _reduced_dtype(ufunc: np.ufunc, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's answer, asked for once."""
    return ufunc.reduce(np.ones(1, dtype)).dtype  # type: ignore[no-any-return]


class Fold(Struct, frozen=True):
    """A fold by an associative ufunc: `add` makes sums, `maximum` makes maxima, and so on.

    Parameters
    ----------
    name : the ufunc's name
    ufunc : combines two values
    identity : what an empty fold gives, or None where NumPy raises
    flops : cost of one element, in floating-point operations
    """

    name: str
    ufunc: np.ufunc
    identity: Any = None
    flops: int = 1

    def dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The result's dtype for elements of `dtype`, as `ufunc.reduce` has it."""
        return _reduced_dtype(self.ufunc, dtype)

    def state_dtypes(self, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the state's arrays."""
        return (out,)

    def block(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, offset: int) -> State:
        """The state of one block; `offset` is the block's first global index along `axes[0]`."""
        kind = None if out.kind in "mM" else out  # NumPy takes no unit of time there
        if where is None:
            if self.ufunc is np.add and x.dtype == bool and out.kind == "i" and len(axes) == x.ndim:
                return (out.type(np.count_nonzero(x)),)  # a tenth of the time of a sum that casts
            return (self.ufunc.reduce(x, axis=axes, dtype=kind),)
        # NumPy adds what a mask leaves one after the other: sums of float32 lose four digits that pairs keep.
        if self.ufunc is np.add and out.kind in "fc":
            return (np.add.reduce(np.where(where, x, out.type(0)), axis=axes, dtype=kind),)
        given = self.identity if self.identity is not None else neutral(self.ufunc, out)
        initial = np.asarray(given).astype(out)[()]  # of unsigned integers, -1 is what has all bits set
        return (self.ufunc.reduce(x, axis=axes, dtype=kind, where=where, initial=initial),)

    def units(
        self,
        x: Any,
        axes: tuple[int, ...],
        out: np.dtype[Any],
        where: Any,
        shape: tuple[int, ...],
        lengths: tuple[int, ...],
    ) -> State:
        """The states of the units, of `lengths` along `axes`, in a box of an array of `shape`."""
        kept = x if where is None else np.where(where, x, out.type(self.identity))
        return (order.unit_states(self.ufunc, kept, axes, out, shape, lengths),)

    def combine(self, a: State, b: State) -> State:
        """The state of two neighbouring blocks."""
        return (self.ufunc(a[0], b[0]),)

    def finalize(self, state: State) -> Any:
        """The value of a state."""
        return state[0]


def each_unit(make: Callable[[Any], State], x: Any, axes: tuple[int, ...], lengths: tuple[int, ...]) -> State:
    """The states that `make` gives for the units of a box, unit by unit."""
    states: list[State] = []
    numbers = [order.count(x.shape[a], n) for a, n in zip(axes, lengths, strict=True)]
    for index in np.ndindex(*numbers):
        where: list[slice] = [slice(None)] * x.ndim
        for a, i, n in zip(axes, index, lengths, strict=True):
            where[a] = slice(i * n, (i + 1) * n)
        states.append(make(x[tuple(where)]))
    kept = np.shape(states[0][0])
    stacked = (np.stack(s).reshape(*numbers, *kept) for s in zip(*states, strict=True))
    return tuple(np.moveaxis(s, tuple(range(len(axes))), axes) for s in stacked)


def neutral(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Any:
    """What no element can beat in a minimum or maximum."""
    greatest = ufunc in (np.minimum, np.fmin)
    if dtype.kind in "fc":
        return np.inf if greatest else -np.inf
    if dtype.kind == "b":
        return greatest
    info = np.iinfo(dtype)
    return info.max if greatest else info.min
