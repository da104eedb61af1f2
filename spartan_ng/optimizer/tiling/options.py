"""Candidate tilings: the ways a box of indices can be cut over the workers.

Any one axis; block grids over two or more axes, each with both rank orders, so that a transposed array
can stay in place; everything on one worker; a copy on each. Short axes get fewer parts. An `Options` is
made once for each structure and compared by identity, so that cost tables are cached by it.

Spartan (ATC '15), section 3.3 (rectangular tiles) and 3.4 (duplicates).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import combinations
from math import lcm, prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from spartan_ng.arrays import Tiling, part_span

Cuts = Mapping[int, tuple[int, ...]]
"""For lengths of axes, where to cut an axis of that length other than evenly."""

_PAIRS, _BLOCKS, _AXES = 6, 2, 4
"""Most grids over two axes, most over three or more, most axes considered for the latter."""


class Options(Struct, frozen=True, eq=False, dict=True):
    """A list of tilings of one index space, in the order in which ties are broken."""

    tilings: tuple[Tiling, ...]
    workers: int

    def __len__(self) -> int:
        return len(self.tilings)

    @cached_property
    def ndim(self) -> int:
        """Number of axes of the index space."""
        return len(self.tilings[0].parts)

    @cached_property
    def parts(self) -> NDArray[np.int64]:
        """Parts of each option and axis, shape (options, 1, axes)."""
        return np.array([t.parts for t in self.tilings], np.int64).reshape(len(self), 1, self.ndim)

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """Grid index of each option, rank and axis; 0 where the rank holds no tile."""
        zero = (0,) * self.ndim
        rows = [[t.index_on(r) or zero for r in range(self.workers)] for t in self.tilings]
        return np.array(rows, np.int64).reshape(len(self), self.workers, self.ndim)

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """1 where the rank holds a tile, else 0, shape (options, ranks)."""
        rows = [[t.index_on(r) is not None for r in range(self.workers)] for t in self.tilings]
        return np.array(rows, np.int64).reshape(len(self), self.workers)

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """How many workers share the work of each option: 1 for a duplicate, where all do the same."""
        return tuple(t.ntiles for t in self.tilings)

    @cached_property
    def range(self) -> tuple[int, int]:
        """The fewest and the most workers that share the work."""
        return min(self.ranks), max(self.ranks)

    @cached_property
    def units(self) -> tuple[int, ...]:
        """For each axis the least length that every option cuts evenly."""
        return tuple(lcm(*(t.parts[a] for t in self.tilings)) for a in range(self.ndim))

    @cached_property
    def even(self) -> bool:
        """Whether no option has cuts of its own."""
        return not any(t.splits for t in self.tilings)

    @cached_property
    def copied(self) -> tuple[bool, ...]:
        """Whether each option is a duplicate."""
        return tuple(t.duplicate for t in self.tilings)


@lru_cache(maxsize=4096)
def interned(tilings: tuple[Tiling, ...], workers: int) -> Options:
    """The one `Options` of these tilings."""
    return Options(tilings, workers)


def canonical(tiling: Tiling) -> Tiling:
    """The same tiling with stride 0 for every axis that is not cut."""
    return Tiling(
        tiling.parts,
        tuple(s if p > 1 else 0 for p, s in zip(tiling.parts, tiling.strides, strict=True)),
        tiling.duplicate,
        tiling.splits if any(tiling.splits) else (),
        tiling.first,
        tiling.around,
    )


def project(grid: Tiling, labels: tuple[int, ...]) -> Tiling:
    """The tiling of an array whose axes follow the domain dimensions `labels` of `grid`."""
    return Tiling(
        tuple(grid.parts[d] if d >= 0 else 1 for d in labels),
        tuple(grid.strides[d] if d >= 0 else 0 for d in labels),
        grid.duplicate,
        _splits(grid, labels),
        grid.first,
        grid.around,
    )


def _splits(grid: Tiling, labels: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    splits = tuple(grid.splits[d] if d >= 0 else () for d in labels) if grid.splits else ()
    return splits if any(splits) else ()


def fewer(
    options: Options, shape: tuple[int, ...], axes: tuple[int, ...], counts: Collection[int]
) -> Options:
    """The options, and cuts along each of `axes` into fewer parts than there are workers."""
    more = [
        canonical(Tiling.grid(*_one(len(shape), {axis: parts})))
        for parts in counts
        for axis in axes
        if shape[axis] > parts
    ]
    return interned(tuple(dict.fromkeys((*options.tilings, *more))), options.workers) if more else options


def uneven(options: Options, shape: tuple[int, ...], axes: tuple[int, ...], cuts: Cuts) -> Options:
    """The options, and one more for each of `axes` whose length has cuts of its own."""
    more = []
    for axis in axes:
        points = cuts.get(shape[axis])
        if points is not None:
            parts = tuple(len(points) + 1 if a == axis else 1 for a in range(len(shape)))
            splits = tuple(points if a == axis else () for a in range(len(shape)))
            more.append(replace(canonical(Tiling.grid(*parts)), splits=splits))
    return interned((*options.tilings, *more), options.workers) if more else options


def between_units(options: Options, shape: tuple[int, ...], lengths: Mapping[int, int]) -> Options:
    """The options with cuts between units of the given `lengths` along some axes, and not more parts than
    there are units."""
    found = []
    for tiling in options.tilings:
        for axis, length in lengths.items():
            tiling = _between_units(tiling, axis, shape[axis], length)
        found.append(canonical(tiling))
    return interned(tuple(dict.fromkeys(found)), options.workers)


def _between_units(tiling: Tiling, axis: int, n: int, length: int) -> Tiling:
    """A tiling whose cuts of one axis are the multiples of `length` nearest to where they were."""
    count, before = -(-n // length), tiling.parts[axis]
    parts = min(before, count)
    points: list[int] = []
    for i in range(1, parts):
        near = round(tiling.cut(axis, n, i * before // parts)[0] / length)
        least = points[-1] // length + 1 if points else 1
        # A unit at least for each part, before and behind.
        points.append(length * min(max(near, least), count - parts + i))
    even = points == [part_span(n, parts, i)[0] for i in range(1, parts)]
    splits = list(tiling.splits or ((),) * len(tiling.parts))
    splits[axis] = () if even else tuple(points)
    every = tuple(parts if a == axis else p for a, p in enumerate(tiling.parts))
    return replace(tiling, parts=every, splits=tuple(splits))


@lru_cache(maxsize=4096)
def projected(grids: Options, labels: tuple[int, ...]) -> Options:
    """The projections of all grids, option by option (not made unique)."""
    return interned(tuple(project(g, labels) for g in grids.tilings), grids.workers)


def candidates(
    shape: tuple[int, ...],
    cuttable: tuple[int, ...],
    workers: int,
    *,
    single: bool = True,
    copies: bool = True,
) -> Options:
    """The candidate tilings of a box of `shape`, of which the axes `cuttable` may be cut.

    `single` and `copies` offer everything on one worker, and a copy on each; one worker is always
    offered where nothing can be cut.
    """
    # No axis is cut into more parts than there are workers: arrays of any longer sizes share one `Options`,
    # and with it the tables of costs.
    short = tuple(min(n, workers) for n in shape)
    return _candidates(short, cuttable, workers, single, copies)


@lru_cache(maxsize=4096)
def _candidates(
    short: tuple[int, ...], cuttable: tuple[int, ...], workers: int, single: bool, copies: bool
) -> Options:
    ndim = len(short)
    axes = tuple(a for a in cuttable if short[a] > 1)
    tilings = [canonical(Tiling.grid(*_one(ndim, {a: short[a]}))) for a in axes]
    for parts in block_grids(short, axes, workers):
        grid = canonical(Tiling.grid(*parts))
        turned = tuple(range(ndim))[::-1]
        tilings += [grid, canonical(Tiling.grid(*parts[::-1])).transpose(turned)]
    if single or not tilings:
        tilings.append(Tiling.single(ndim))
    if copies:
        tilings.append(Tiling.copies(ndim))
    return interned(tuple(dict.fromkeys(tilings)), workers)


def _one(ndim: int, parts: dict[int, int]) -> tuple[int, ...]:
    return tuple(parts.get(a, 1) for a in range(ndim))


def block_grids(short: tuple[int, ...], axes: tuple[int, ...], workers: int) -> list[tuple[int, ...]]:
    """Grids over two or more of `axes` that use all workers; for an axis pair that has none, the one
    that uses the most. The most square come first, and only a few of each kind are kept.
    """
    ndim, found = len(short), []
    for pair in combinations(axes, 2):
        exact = [_one(ndim, dict(zip(pair, p, strict=True))) for p in _factors(workers, 2)]
        exact = [p for p in exact if _fits(p, short)]
        found += exact or _nearest(short, pair, workers)
    found.sort(key=lambda p: (-prod(p), max(p)))
    longest = sorted(sorted(axes, key=lambda a: -short[a])[:_AXES])
    more = [
        _one(ndim, dict(zip(some, p, strict=True)))
        for count in range(3, len(longest) + 1)
        for some in combinations(longest, count)
        for p in _factors(workers, count)
    ]
    fitting = sorted((p for p in more if _fits(p, short)), key=max)
    return found[:_PAIRS] + fitting[:_BLOCKS]


def _fits(parts: tuple[int, ...], short: tuple[int, ...]) -> bool:
    return all(p <= n for p, n in zip(parts, short, strict=True))


def _factors(n: int, count: int) -> Iterator[tuple[int, ...]]:
    """All ordered ways to write n as a product of `count` factors, none of them 1."""
    if count == 1:
        if n > 1:
            yield (n,)
        return
    for first in range(2, n // 2 + 1):
        if n % first == 0:
            for rest in _factors(n // first, count - 1):
                yield (first, *rest)


def _nearest(short: tuple[int, ...], pair: tuple[int, ...], workers: int) -> list[tuple[int, ...]]:
    """The grid over `pair` that uses the most workers, the most square of those; none below 4."""
    a, b = pair
    grids = [(p, min(workers // p, short[b])) for p in range(2, min(short[a], workers // 2) + 1)]
    best = max((g for g in grids if g[1] > 1), key=lambda g: (g[0] * g[1], -max(g)), default=None)
    return [] if best is None else [_one(len(short), {a: best[0], b: best[1]})]


@lru_cache(maxsize=4096)
def are_cut(grids: Options, dimensions: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether each grid cuts one of the dimensions."""
    return tuple(any(g.parts[d] > 1 for d in dimensions) for g in grids.tilings)


@lru_cache(maxsize=4096)
def placed_results(
    grids: Options, labels: tuple[int, ...], reduced: tuple[int, ...], own: Options
) -> Options:
    """Tilings of a result that some grids reduce: projections where none is, then the candidates."""
    plain = [
        project(g, labels) for g, cut in zip(grids.tilings, are_cut(grids, reduced), strict=True) if not cut
    ]
    return interned(tuple(dict.fromkeys([*plain, *own.tilings])), grids.workers)


@lru_cache(maxsize=4096)
def lie_where_made(grids: Options, labels: tuple[int, ...], options: Options) -> NDArray[np.bool_]:
    """Whether each option is where the tasks of each grid leave their results."""
    return np.array([[project(g, labels) == t for t in options.tilings] for g in grids.tilings])
