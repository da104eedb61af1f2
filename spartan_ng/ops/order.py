"""The order in which reproducible folds add: the shape of what is folded decides it, and nothing else does.

This is the contract that every tier, backend and layout keeps where `config.reproducible` asks for it, so
that a program has the same bits wherever it runs. It holds for folds of inexact numbers, whose result depends
on the order (`is_inexact`).

1.  Each folded axis is cut into *units* (`units`), whose length depends on the array's shape and on which
    axes are folded. An array of up to `WHOLE` elements is one unit.
2.  Within a unit the order is NumPy's own for an array in C order. The *line*, the last axis with those
    before it up to the first that has been cut, is added pairwise, as `numpy.add.reduce` does it: a half and
    a half, down to 128 elements in eight lanes. Other ufuncs go along it one by one. Lines are added one
    after the other, the last axis fastest. Where the last axis is not folded, there are no lines, and rows
    are added one after the other.
3.  Units are combined by binary trees, along the last folded axis first: neighbours in pairs, the pairs in
    pairs; an odd one at the end waits (`tree`).

Such folds are cut over workers, and over tasks, between units only. A part with some of the units of an
axis hands over the states of the largest subtrees it has all of (`subtrees`), and whoever combines them goes
on with the same tree (`grow`): for all cuts there is one result. Along axes before the last one that is cut
nothing can be combined yet: each unit is handed over by itself.

Pairwise summation: Higham, "The accuracy of floating point summation" (1993). Reproducibility by a fixed
tree: Villa et al., "Effects of floating-point non-associativity" (2009).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

WHOLE = 1 << 15
"""Elements up to which an array is one unit: a worker of its own would not pay for them."""
LINE = 1 << 12
"""Elements up to which a last axis is one unit."""
_UNIT = 1 << 16
"""Elements of a unit over several axes, about: half a megabyte of doubles."""
_LEAST_GRAINED = 1 << 8
"""Axes shorter than this have units of any length."""
_SHARES = 64
"""Units that a longer axis has at least, if they are not to be too short."""
_SHORTEST, _LONGEST = 1 << 4, 1 << 15
"""Elements of a longer axis' units."""
_STATES = 64
"""The share of a row of states in what they are made of: units have so many rows, if they can."""
_INEXACT = frozenset({np.add, np.multiply, np.logaddexp, np.logaddexp2, np.hypot})

State = tuple[Any, ...]
Combination = Callable[[State, State], State]
Span = tuple[int, int]


def is_inexact(ufunc: np.ufunc, dtype: np.dtype[Any]) -> bool:
    """Whether folding by `ufunc` to `dtype` rounds, so that its order shows."""
    return dtype.kind in "fc" and ufunc in _INEXACT


def power_below(n: int) -> int:
    """The greatest power of two up to n, or 1."""
    return 1 << max(n.bit_length() - 1, 0)


def grain(n: int) -> int:
    """How long the units of an axis of n elements may be, so that there are enough to share."""
    return n if n < _LEAST_GRAINED else min(max(power_below(n // _SHARES), _SHORTEST), _LONGEST)


@lru_cache(maxsize=4096)
def units(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """For each of the folded `axes` the length of its units; the axis' own length where there is one."""
    whole = int(np.prod(shape, dtype=object)) <= WHOLE
    folded = [a for a in axes if shape[a] > 1]
    lengths = {a: shape[a] for a in axes}
    inside, rows = 1, False  # elements of a unit, and of what it folds to, behind the axis
    for a, n in reversed(list(enumerate(shape))):
        if whole or n == 1:
            continue
        if a not in folded:
            inside, rows = inside * n, True
            continue
        if inside > 1 and inside * n <= _UNIT:
            length = n
        elif inside > 1:
            length = max(power_below(_UNIT // inside), min(_STATES, grain(n)) if rows else 1)
            length = min(length, grain(n))
        elif n <= LINE:
            length = n
        else:
            length = grain(n) if len(folded) == 1 else min(grain(n), LINE // 2)
        lengths[a] = min(length, n)
        inside *= lengths[a]
    return tuple(lengths[a] for a in axes)


def count(n: int, length: int) -> int:
    """How many units an axis of n elements has; one without elements has one."""
    return max(-(-n // max(length, 1)), 1)


# --- trees over units ----------------------------------------------------------------------------------


def subtrees(lo: int, hi: int, n: int) -> list[Span]:
    """The largest subtrees of n units that lie in `[lo, hi)`, in order, by the units they have."""
    found = []
    while lo < hi:
        size = lo & -lo or power_below(n) * 2
        while lo + size > hi and hi != n:
            size //= 2
        found.append((lo, min(lo + size, hi)))
        lo += size
    return found


def tree(combine: Combination, state: State, axis: int) -> State:
    """The states of one subtree's units, along `axis`, as one; the axis goes."""
    while (n := state[0].shape[axis]) > 1:
        even = n - n % 2
        pairs = combine(_part(state, axis, 0, even, 2), _part(state, axis, 1, even, 2))
        if even < n:
            last = _part(state, axis, even, n)
            pairs = tuple(np.concatenate(p, axis) for p in zip(pairs, last, strict=True))
        state = pairs
    return tuple(s.squeeze(axis) for s in state)


def climb(combine: Combination, state: State, axis: int, lo: int, n: int) -> State:
    """The states of the units from `lo` on, of n, as those of their largest subtrees."""
    spans = subtrees(lo, lo + state[0].shape[axis], n)
    if len(spans) == state[0].shape[axis]:
        return state
    grown = [tree(combine, _part(state, axis, a - lo, b - lo), axis) for a, b in spans]
    return tuple(np.stack(s, axis) for s in zip(*grown, strict=True))


def grow(combine: Combination, state: State, axis: int, spans: Sequence[Span]) -> State:
    """The states of subtrees of all units, along `axis`, as one; the axis goes."""
    waiting: list[tuple[Span, State]] = []
    for i, span in enumerate(spans):
        new = tuple(s.take(i, axis) for s in state)
        while waiting and _are_siblings(waiting[-1][0], span):
            (lo, _), before = waiting.pop()
            span, new = (lo, span[1]), combine(before, new)
        waiting.append((span, new))
    (_, total) = waiting.pop()
    while waiting:
        total = combine(waiting.pop()[1], total)
    return total


def _are_siblings(a: Span, b: Span) -> bool:
    """Whether two neighbouring subtrees are the halves of one; only the last may be incomplete."""
    size = a[1] - a[0]
    return b[1] - b[0] == size and a[0] % (2 * size) == 0


def _part(state: State, axis: int, lo: int, hi: int, step: int = 1) -> State:
    where = (slice(None),) * axis + (slice(lo, hi, step),)
    return tuple(s[where] for s in state)


# --- within units --------------------------------------------------------------------------------------


def ordered_fold(
    ufunc: np.ufunc, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any], shape: Any = None
) -> Any:
    """The fold of all of `x` along `axes`; `shape` is that of the array whose lines they are, if `x` is a
    part of it along other axes."""
    shape = x.shape if shape is None else shape
    lengths = units(shape, axes)
    if all(shape[a] <= n for a, n in zip(axes, lengths, strict=True)):
        return unit(ufunc, _cast(x, dtype), axes, shape)
    state: State = (unit_states(ufunc, x, axes, dtype, shape, lengths),)
    for a in sorted(axes, reverse=True):
        state = tree(lambda a, b: (ufunc(a[0], b[0]),), state, a)
    return state[0]


def unit_states(
    ufunc: np.ufunc,
    x: Any,
    axes: tuple[int, ...],
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    every: tuple[int, ...],
) -> np.ndarray[Any, Any]:
    """The folds of the units in a box `x` of an array of `shape`: folded axes have one element a unit of the
    length that `every` says.

    Along folded axes the box begins with a unit, and ends with one or with the array.
    """
    lengths = dict(zip(axes, every, strict=True))
    for a, length in lengths.items():
        n = x.shape[a]
        whole = n // max(length, 1) * length
        if 0 < whole < n:
            parts = (slice(0, whole), slice(whole, n))
            boxes = [x[(slice(None),) * a + (p,)] for p in parts]
            states = [unit_states(ufunc, box, axes, dtype, shape, every) for box in boxes]
            return np.concatenate(states, a)
    split: list[int] = []
    folded, out = [], []
    sizes: list[int] = []
    for a, n in enumerate(x.shape):
        if a in lengths and n > lengths[a] > 0:
            split += [n // lengths[a], lengths[a]]
            sizes += [0, shape[a]]
        else:
            split += [n]
            sizes += [shape[a]]
        if a in lengths:
            folded.append(len(split) - 1)
        out.append(1 if a in lengths and n <= lengths[a] else n // lengths.get(a, 1))
    return np.asarray(unit(ufunc, _cast(x, dtype).reshape(split), tuple(folded), tuple(sizes))).reshape(out)


def unit(ufunc: np.ufunc, x: Any, axes: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The fold of each unit, whose axes are `axes`; `shape` is that of the array in these axes, with 0 for
    those that count units.

    NumPy's reduction adds the last axes of C order pairwise, if it folds them, and goes one by one along all
    others. What is left to do is to see that it finds the array so.
    """
    line: list[int] = []
    for a in reversed(range(x.ndim)):
        if shape[a] != 1:
            if a not in axes:
                break
            line.insert(0, a)
            if x.shape[a] != shape[a]:
                break
    x = _in_order(x, line)
    if line:
        rest = [a for a in axes if a not in line and shape[a] != 1]
        lone = [a for a in axes if a not in line and shape[a] == 1]
        if not rest:
            return ufunc.reduce(x, axis=(*line, *lone))
        x = ufunc.reduce(x, axis=tuple(line), keepdims=True)
        axes = (*line, *rest, *lone)
    wide = [a for a, n in enumerate(x.shape) if n > 1]
    if wide and wide[-1] in axes:  # NumPy would take it for a line
        return ufunc.reduce(np.repeat(x[..., None], 2, -1), axis=tuple(axes))[..., 0]
    return ufunc.reduce(x, axis=tuple(axes))


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


def _in_order(x: Any, line: list[int]) -> Any:
    """The array in C order, and a line over several axes as one run of memory."""
    axes = [a for a, n in enumerate(x.shape) if n > 1]
    strides = [x.strides[a] for a in axes]
    ordered = all(s > 0 for s in strides) and strides == sorted(strides, reverse=True)
    joined = [a for a in axes if a in line]
    ordered = ordered and all(x.strides[a] == x.strides[b] * x.shape[b] for a, b in pairwise(joined))
    return x if ordered else np.array(x, order="C")
