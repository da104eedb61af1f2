"""Folds: a state for each block, states combined in a fixed order, one value at the end.

Spartan (ATC '15), section 3.1 (`fold`). A fold's state is a tuple of arrays that have the result's
shape; `combine` is associative, and is always applied in the order of the blocks, so that it need
not commute. Where last bits are to be kept, those that round have states of units (`ops.order`) for blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops import order
from spartan_ng.ops.by_ufunc import Fold, State, each_unit
from spartan_ng.ops.products import ProductFold

_SHORT = 1 << 12
"""Elements of states for which NumPy's calls take longer than what they do."""
_PIECE = 1 << 16
"""Elements whose squared deviations are made in one go: they and their distances stay in the cache."""


class _Shown:
    """An array's elements, as ones that may be written to."""

    def __init__(self, x: Any) -> None:
        place, _ = x.__array_interface__["data"]
        self.__array_interface__ = {**x.__array_interface__, "data": (place, False)}
        self._kept = x


def _looking(find: Callable[..., Any]) -> Callable[..., Any]:
    """`find`, but NumPy's (2.4) makes a copy of what may only be read before it looks at it."""

    def found(x: Any, axis: int | None = None) -> Any:
        is_plain = type(x) is np.ndarray and x.dtype.kind in "biufcmM"
        return find(np.asarray(_Shown(x)) if is_plain and not x.flags.writeable else x, axis=axis)

    return found


class ArgFold(Struct, frozen=True):
    """The index of the first extreme element along one axis (NaN and NaT count as the most extreme)."""

    name: str
    find: Callable[..., Any]
    better: np.ufunc
    identity: Any = None
    flops: int = 8

    def dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Indices are `intp`."""
        return np.dtype(np.intp)

    def state_dtypes(self, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The extreme value and its global index."""
        return (dtype, out)

    def block(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, offset: int) -> State:
        """The extreme value of one block and its global index."""
        (axis,) = axes
        index = self.find(x, axis=axis)
        value = np.take_along_axis(x, np.expand_dims(index, axis), axis).squeeze(axis)
        return (value, index + offset)

    def of_lines(self, x: Any, axes: tuple[int, ...]) -> State:
        """The same of whole lines, with whose states no others are combined: nobody needs the values."""
        return (self.find(x, axis=axes[0]),)

    def combine(self, a: State, b: State) -> State:
        """The earlier of two equal values wins; a NaN wins over every number."""
        takes_b = self.better(b[0], a[0])
        if a[0].dtype.kind in "fcmM":
            takes_b = (takes_b | np.isnan(b[0])) & ~np.isnan(a[0])
        return tuple(np.where(takes_b, y, x) for x, y in zip(a, b, strict=True))

    def finalize(self, state: State) -> Any:
        """The index."""
        return state[-1]


class PrefixFold(Struct, frozen=True):
    """The least or greatest prefix sum of floats along one axis: `extreme(cumsum(x))` without the sums.

    The state is (sum, extreme prefix). A sum that has become NaN stays so, and makes the value NaN.
    """

    name: str
    extreme: np.ufunc
    identity: Any = None
    flops: int = 3

    def dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Prefix sums of floats have their dtype."""
        return dtype

    def state_dtypes(self, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """Sum and extreme."""
        return (out, out)

    def block(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, offset: int) -> State:
        """The sum of a block, and the extreme of its prefix sums."""
        (axis,) = axes
        sums = np.add.accumulate(x, axis=axis, dtype=out)
        return (np.take(sums, -1, axis), self.extreme.reduce(sums, axis=axis))

    def units(
        self,
        x: Any,
        axes: tuple[int, ...],
        out: np.dtype[Any],
        where: Any,
        shape: tuple[int, ...],
        lengths: tuple[int, ...],
    ) -> State:
        """As in `Fold`."""
        return each_unit(lambda part: self.block(part, axes, out, where, 0), x, axes, lengths)

    def combine(self, a: State, b: State) -> State:
        """The prefixes of the later block begin with the sum of the earlier one."""
        return (a[0] + b[0], self.extreme(a[1], a[0] + b[1]))

    def finalize(self, state: State) -> Any:
        """The extreme prefix."""
        return np.where(np.isnan(state[0]), state[0], state[1])


def _pieces(x: Any, axis: int) -> list[Any]:
    """A block in pieces along an axis."""
    n = x.shape[axis]
    step = max(_PIECE * n // max(x.size, 1), 1)
    along = (slice(None),) * axis
    return [x[(*along, slice(i, i + step))] for i in range(0, max(n, 1), step)]


class DeviationFold(Struct, frozen=True):
    """The sum of squared distances from the mean, in one pass over the data.

    The state is (count, mean, what its rounding left out, sum of squares). A piece of a block takes two
    passes, while it lies in the cache; the second one finds how far the first one's mean was off. States are
    combined by the pairwise update of Chan, Golub and LeVeque (1979), which cancels nothing. Squares that
    overflow are infinite, as NumPy's: corrections are infinite then, too, and nothing may be taken away.
    """

    name: str
    identity: Any = 0
    flops: int = 4

    def dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Squared distances of floats have their dtype."""
        return dtype

    def state_dtypes(self, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """Count, both parts of the mean, and sum of squares."""
        return (np.dtype(np.float64), out, out, out)

    def block(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, offset: int) -> State:
        """The state of one block."""
        assert where is None, "masked variances are made of sums"
        return self.block_and_sum(x, axes, out)[1]

    def block_and_sum(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> tuple[State, State]:
        """The state of `add` for one block, which is made on the way, and this fold's.

        Of many short lines each piece has some; long lines are cut themselves.
        """
        axis = max(axes, key=lambda a: x.shape[a])
        kept = [a for a in range(x.ndim) if a not in axes]
        lines = max(kept, key=lambda a: x.shape[a], default=axis)
        if x.shape[lines] > x.shape[axis] and x.size > _PIECE:
            parts = [self._of_lines(p, axis, axes, out) for p in _pieces(x, lines)]
            totals, *states = (np.concatenate(each, kept.index(lines)) for each in zip(*parts, strict=True))
        else:
            totals, *states = self._of_lines(x, axis, axes, out)
        return (totals,), tuple(states)

    def _of_lines(self, x: Any, axis: int, axes: tuple[int, ...], out: np.dtype[Any]) -> State:
        """The sums of lines whose longest axis is `axis`, and their state."""
        sums, states = zip(*(self._piece(p, axes, out) for p in _pieces(x, axis)), strict=True)
        return reduce(np.add, sums), *reduce(self.combine, states)

    def _piece(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> tuple[Any, State]:
        """The sum of a piece of a block, and its state."""
        total = x.sum(axis=axes, dtype=out, keepdims=True)
        rows = prod(x.shape[a] for a in axes)
        mean = total / out.type(max(rows, 1))
        distance = x - mean
        off = distance.sum(axis=axes, dtype=out)
        rest = off / out.type(max(rows, 1))
        squares = _corrected(np.square(distance, out=distance).sum(axis=axes, dtype=out), off * rest)
        total, mean = total.reshape(rest.shape), mean.reshape(rest.shape)
        return total, (np.full(rest.shape, rows, np.float64), mean, rest, squares)

    def units(
        self,
        x: Any,
        axes: tuple[int, ...],
        out: np.dtype[Any],
        where: Any,
        shape: tuple[int, ...],
        lengths: tuple[int, ...],
    ) -> State:
        """As in `Fold`."""
        return self.units_and_sums(x, axes, out, shape, lengths)[1]

    def units_and_sums(
        self,
        x: Any,
        axes: tuple[int, ...],
        out: np.dtype[Any],
        shape: tuple[int, ...],
        lengths: tuple[int, ...],
    ) -> tuple[State, State]:
        """The states of `add` for the units in a box, which are made on the way, and this fold's."""
        total, *states = each_unit(lambda part: self._unit(part, axes, out, shape), x, axes, lengths)
        return (total,), tuple(states)

    @staticmethod
    def _unit(x: Any, axes: tuple[int, ...], out: np.dtype[Any], shape: tuple[int, ...]) -> State:
        """The sum of a unit, and its state, as `_piece` has them."""
        x = x.astype(out, copy=False)
        rows = out.type(max(prod(x.shape[a] for a in axes), 1))
        total = order.unit(np.add, x, axes, shape)
        mean = total / rows
        distance = np.subtract(x, np.expand_dims(mean, axes), order="C")
        off = order.unit(np.add, distance, axes, shape)
        rest = off / rows
        squares = _corrected(order.unit(np.add, np.square(distance, out=distance), axes, shape), off * rest)
        return total, np.full(np.shape(rest), rows, np.float64), mean, rest, squares

    def combine(self, a: State, b: State) -> State:
        """Two means, weighted by their counts, and what their distance adds to the squares."""
        count = a[0] + b[0]
        share = (b[0] / count).astype(a[1].dtype)
        distance = (b[1] - a[1]) + (b[2] - a[2])
        step = distance * share
        mean = a[1] + step
        rest = ((a[1] - mean) + step) + a[2]
        known = a[3] + b[3]
        squares = known + distance * step * a[0].astype(a[1].dtype)
        if not np.isfinite(squares).all():  # what overflowed has no distance from what did, too
            mean = np.where(np.isfinite(mean), mean, a[1] * (1 - share) + b[1] * share)
            rest = np.where(np.isfinite(rest), rest, 0)
            squares = np.where(np.isinf(known) & ~np.isnan(mean), known, squares)
        return count, mean, rest, squares

    def combine_all(self, states: Sequence[State]) -> State:
        """The state of all blocks: neighbours pairwise, in order, short states all pairs at a time."""
        if states[0][0].size > _SHORT:
            return reduce(self.combine, states)
        arrays: State = tuple(np.stack(parts) for parts in zip(*states, strict=True))
        while len(arrays[0]) > 1:
            even = len(arrays[0]) // 2 * 2
            pairs = self.combine(tuple(x[0:even:2] for x in arrays), tuple(x[1:even:2] for x in arrays))
            if even < len(arrays[0]):
                pairs = tuple(np.concatenate([p, x[even:]]) for p, x in zip(pairs, arrays, strict=True))
            arrays = pairs
        return tuple(x[0] for x in arrays)

    def finalize(self, state: State) -> Any:
        """The sum of squares."""
        return state[3]


def _corrected(squares: Any, correction: Any) -> Any:
    """Squares without what the mean's rounding added to them."""
    return np.where(np.isinf(squares), squares, squares - correction)


AnyFold = Fold | ArgFold | PrefixFold | DeviationFold
_ROWS: list[AnyFold] = [
    Fold("add", np.add, 0),
    ProductFold("multiply", np.multiply, 1),
    Fold("minimum", np.minimum),
    Fold("maximum", np.maximum),
    Fold("fmin", np.fmin),
    Fold("fmax", np.fmax),
    Fold("logical_and", np.logical_and, True),
    Fold("logical_or", np.logical_or, False),
    Fold("logical_xor", np.logical_xor, False),
    Fold("bitwise_and", np.bitwise_and, -1),
    Fold("bitwise_or", np.bitwise_or, 0),
    Fold("bitwise_xor", np.bitwise_xor, 0),
    Fold("logaddexp", np.logaddexp, -np.inf, flops=150),
    Fold("logaddexp2", np.logaddexp2, -np.inf, flops=150),
    Fold("hypot", np.hypot, 0.0, flops=90),
    Fold("gcd", np.gcd, 0, flops=20),
    ArgFold("argmin", _looking(np.argmin), np.less),
    ArgFold("argmax", _looking(np.argmax), np.greater),
    PrefixFold("least prefix sum", np.minimum),
    PrefixFold("greatest prefix sum", np.maximum),
    DeviationFold("squared deviations"),
]


def is_ordered(fold: AnyFold, dtype: np.dtype[Any]) -> bool:
    """Whether a fold to `dtype` rounds, so that its last bits depend on its order."""
    if isinstance(fold, Fold):
        return order.is_inexact(fold.ufunc, dtype)
    return not isinstance(fold, ArgFold)


def own_dtype(fold: AnyFold, dtype: np.dtype[Any]) -> np.dtype[Any] | None:
    """What a fold gives of elements of a dtype by itself; None where it is for none of those."""
    try:
        return fold.dtype(dtype)
    except TypeError:
        return None


def fold_whole(fold: AnyFold, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any) -> Any:
    """A fold of all of `x` along `axes`, which no other block's is combined with."""
    if isinstance(fold, ProductFold):  # nothing lies before or behind it that exponents are for
        return Fold.block(fold, x, axes, out, where, 0)[0]
    return fold.finalize(fold.block(x, axes, out, where, 0))


def fold_in_order(
    fold: AnyFold, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, shape: tuple[int, ...]
) -> Any:
    """A fold of all of `x` along `axes` in the order of `ops.order`; `shape` is that of the array that `x` is
    a part of, along other axes."""
    if isinstance(fold, ArgFold) or not is_ordered(fold, out):
        return fold_whole(fold, x, axes, out, where)
    state = fold.units(x, axes, out, where, shape, order.units(shape, axes))
    for a in sorted(axes, reverse=True):
        state = order.tree(fold.combine, state, a)
    return fold.finalize(state)


FOLDS: dict[str, AnyFold] = {row.name: row for row in _ROWS}
"""Every fold by its name."""
PREFIX_FOLDS = {"minimum": "least prefix sum", "maximum": "greatest prefix sum"}
"""The folds of prefix sums, by the fold of a cumulative sum that they replace."""
