"""How many bytes move between workers when a task's box is not where its data lie.

A task needs a box of the array, its worker holds a tile, which is a box, too; what it needs and does not
hold is pulled. All pairs of grid and tiling options are counted at once, exactly, rank by rank. Overlaps
of boxes are products over the axes, so one pass over the axes is enough.

Spartan (ATC '15), section 3.3: cost profiles; counted here to the byte.
"""

from __future__ import annotations

from functools import lru_cache
from math import lcm, prod

import numpy as np

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs import Table
from spartan_ng.ops.units import Folded, leading
from spartan_ng.optimizer.tiling.options import Options
from spartan_ng.optimizer.tiling.sketch import FlatView, Span

_SAFE = 1 << 60
"""Products below this stay far enough from the end of 64-bit integers."""
Ordered = tuple[tuple[int, ...], tuple[Folded, ...]]
"""The domain of a stage, and the axes that it folds in the order of `ops.order`."""


def pulled_bytes(
    domain: tuple[int, ...],
    grids: Options,
    shape: tuple[int, ...],
    tilings: Options,
    labels: tuple[int, ...],
    spans: tuple[Span, ...],
    exact: bool,
    nbytes: int,
    placed: tuple[tuple[int, int], ...] = (),
    asked: tuple[int, ...] = (),
    run: FlatView | None = None,
    within: tuple[tuple[int, int, int, int], ...] = (),
) -> Table:
    """Bytes pulled for each (grid, tiling) when tasks over `domain` read an array; see `Access`."""
    plain = exact and not (spans or placed or asked or within) and run is None
    if plain and grids.even and tilings.even:
        units = [lcm(grids.units[d], u) if d >= 0 else u for d, u in zip(labels, tilings.units, strict=True)]
        if all(d < 0 or domain[d] == n for d, n in zip(labels, shape, strict=True)):
            scale = _scale(shape, units)
            if scale:
                small = _unit_domain(len(domain), labels, units)
                elements = _read(small, grids, tuple(units), tilings, labels, (), True, (), (), None, ())
                return _as_bytes(elements, scale, nbytes, shape, grids.workers)
    elements = _read(domain, grids, shape, tilings, labels, spans, exact, placed, asked, run, within)
    return _as_bytes(elements, 1, nbytes, shape, grids.workers)


@lru_cache(maxsize=8192)
def pulled_pieces(
    domain: tuple[int, ...],
    grids: Options,
    rows: int,
    tilings: Options,
    label: int,
    span: Span,
    exact: bool,
    placed: tuple[tuple[int, int], ...],
    run: FlatView | None,
) -> Table:
    """Tiles that tasks pull a piece of for each (grid, tiling), of an array that is cut along its rows alone;
    of the arguments that are one an axis these are the rows'."""
    grid_lo, grid_hi = bounds(grids, domain, True)
    start, step, size = span
    covers = _covers(domain, grid_lo, grid_hi, run) if run else []
    cover = _cover(covers, run, 0, size)
    place = placed[0] if placed else None
    lo, hi = _needed(domain, (grid_lo, grid_hi), label, size, exact, place, run, cover)
    one, other = start + step * lo, start + step * (hi - 1)
    first, last = np.minimum(one, other)[:, None, :], np.maximum(one, other)[:, None, :]
    tiles = _tile_at(tilings, rows, last) - _tile_at(tilings, rows, first) + 1
    tile_lo, tile_hi = bounds(tilings, (rows, *(1,) * (tilings.ndim - 1)), True)
    own = (tile_lo[None, :, :, 0] <= last) & (first < tile_hi[None, :, :, 0]) & (tilings.active[None] > 0)
    busy = (grids.active * (hi > lo))[:, None, :]
    found: Table = (busy * np.maximum(tiles - own, 0)).sum(-1).astype(np.int64)
    return found


def _tile_at(tilings: Options, rows: int, row: Table) -> Table:
    """Which tile of each option a row lies in; `row` has an axis of one for the options."""
    found: Table = ((row + 1) * tilings.parts[None, :, :, 0] - 1) // rows
    for o, tiling in enumerate(tilings.tilings if not tilings.even else ()):
        if tiling.splits and tiling.splits[0]:
            found[:, o] = np.searchsorted(tiling.splits[0], row[:, 0].astype(np.int64), "right")
    return found


def combine_bytes(
    shape: tuple[int, ...],
    grids: Options,
    tilings: Options,
    labels: tuple[int, ...],
    reduced: tuple[int, ...],
    state_bytes: int,
    ordered: Ordered | None = None,
) -> Table:
    """Bytes of partial states pulled for each (grid, result tiling) when `reduced` dimensions are cut.

    Each part of the reduced dimensions has a state of the result's `shape` and of `state_bytes`, or of what
    is `ordered` one for each subtree that it hands over; a worker that holds a tile of the result pulls that
    tile's box of every state it has not computed itself.
    """
    units = [lcm(grids.units[d], u) if d >= 0 else u for d, u in zip(labels, tilings.units, strict=True)]
    scale = _scale(shape, units) if grids.even and tilings.even else 0
    small = tuple(units) if scale else shape
    elements = _combine(small, grids, tilings, labels, reduced, ordered)
    return _as_bytes(elements, scale or 1, state_bytes, shape, grids.workers)


def _scale(shape: tuple[int, ...], units: list[int]) -> int:
    """How many times as many elements `shape` has as `units`; 0 where it is no multiple along an axis.

    Where every cut is even, counts are those of the smallest such array times a factor, and programs of
    different sizes share one table.
    """
    scale = 1
    for n, unit in zip(shape, units, strict=True):
        if n % unit:
            return 0
        scale *= n // unit
    return scale


def _unit_domain(ndim: int, labels: tuple[int, ...], units: list[int]) -> tuple[int, ...]:
    domain = [1] * ndim
    for d, unit in zip(labels, units, strict=True):
        if d >= 0:
            domain[d] = unit
    return tuple(domain)


@lru_cache(maxsize=8192)
def _read(
    domain: tuple[int, ...],
    grids: Options,
    shape: tuple[int, ...],
    tilings: Options,
    labels: tuple[int, ...],
    spans: tuple[Span, ...],
    exact: bool,
    placed: tuple[tuple[int, int], ...],
    asked: tuple[int, ...],
    run: FlatView | None,
    within: tuple[tuple[int, int, int, int], ...],
) -> Table:
    """Elements pulled for each (grid, tiling)."""
    wide = _wide(domain, shape, grids.workers) or (bool(asked) and _wide(domain, (*shape, *shape), 1))
    need = grids.active.astype(object) if wide else grids.active
    grid_lo, grid_hi = bounds(grids, domain, wide)
    for d, *piece in within:
        lo, hi = _inside(grid_lo[:, :, d], grid_hi[:, :, d], *piece)
        need = need * (hi > lo)
    share = need[:, None, :] * tilings.active[None, :, :]
    tile_lo, tile_hi = bounds(tilings, shape, wide)
    covers = _covers(domain, grid_lo, grid_hi, run) if run else []
    for axis, label in enumerate(labels):
        start, step, size = spans[axis] if spans else (0, 1, shape[axis])
        held_lo, held_hi = tile_lo[None, :, :, axis], tile_hi[None, :, :, axis]
        if (start, step) != (0, 1):
            held_lo, held_hi = _seen_through(held_lo, held_hi, start, step)
        if asked and axis == asked[0]:
            rows = np.ones_like(need)
            for d in asked[1:]:
                rows = rows * (grid_hi[:, :, d] - grid_lo[:, :, d])
            # Who asks for more rows than there are asks for some twice, and gets each once.
            rows = np.minimum(rows, size)
            # Counted `size` times over until the end, so that shares of rows are whole numbers.
            need, share = need * rows * size, share * rows[:, None]
            overlap = np.minimum(held_hi, size) - np.maximum(held_lo, 0)
        else:
            cover = _cover(covers, run, axis, size)
            lo, hi = _needed(
                domain, (grid_lo, grid_hi), label, size, exact, placed[axis] if placed else None, run, cover
            )
            need = need * (hi - lo)
            overlap = np.minimum(held_hi, hi[:, None]) - np.maximum(held_lo, lo[:, None])
        share = share * np.maximum(overlap, 0)
    elements: Table = need.sum(-1)[:, None] - share.sum(-1)
    if asked:
        elements = elements // max(spans[asked[0]][2] if spans else shape[asked[0]], 1)
    return elements


def _needed(
    domain: tuple[int, ...],
    ends: tuple[Table, Table],
    label: int,
    size: int,
    exact: bool,
    place: tuple[int, int] | None,
    run: FlatView | None,
    cover: tuple[Table, Table] | None,
) -> tuple[Table, Table]:
    """Where what each task needs of an axis of a view begins and ends; `ends` are those of tasks' boxes,
    `cover` those of what the run that a task reads covers of the axis."""
    grid_lo, grid_hi = ends
    if place is not None and label != WHOLE:
        return _inside(grid_lo[:, :, label], grid_hi[:, :, label], *place, size)
    if cover is not None:
        return cover
    if run or label == WHOLE or (size == 1 and domain[label] != 1):
        nothing = 0 * grid_lo.sum(-1)
        return nothing, nothing + size
    lo, hi = grid_lo[:, :, label], grid_hi[:, :, label]
    if exact and domain[label] == size:
        return lo, hi
    return lo * size // max(domain[label], 1), -(-hi * size // max(domain[label], 1))


def _covers(domain: tuple[int, ...], lo: Table, hi: Table, run: FlatView) -> list[tuple[Table, Table]]:
    """For each axis of a view the part that covers each task's run of elements.

    The domain is cut along its first axis. Behind the view's first axis that a run crosses, all are whole.
    """
    row = prod(domain[1:])
    first, last = (lo[:, :, 0] * row, hi[:, :, 0] * row - 1) if domain else (0 * lo.sum(-1), 0 * lo.sum(-1))
    inside, in_one = prod(run.shape), np.ones(first.shape, bool)
    found = []
    for n in run.shape:
        inside //= max(n, 1)
        a, b = first // inside % n, last // inside % n
        found.append((np.where(in_one, a, 0), np.where(in_one, b + 1, n)))
        in_one = in_one & (a == b)
    return found


def _cover(
    covers: list[tuple[Table, Table]], run: FlatView | None, axis: int, size: int
) -> tuple[Table, Table] | None:
    """What covers the runs along an array's axis, where the view has all of that axis."""
    if run is None or run.along[axis] < 0 or size != run.shape[run.along[axis]]:
        return None
    return covers[run.along[axis]]


def _inside(lo: Table, hi: Table, start: int, step: int, size: int) -> tuple[Table, Table]:
    """The indices i in `[0, size)` of a piece for which `start + step * i` lies in `[lo, hi)`."""
    first = np.clip(-(-(lo - start) // step), 0, size)
    return first, np.maximum(np.clip(-(-(hi - start) // step), 0, size), first)


@lru_cache(maxsize=8192)
def _combine(
    shape: tuple[int, ...],
    grids: Options,
    tilings: Options,
    labels: tuple[int, ...],
    reduced: tuple[int, ...],
    ordered: Ordered | None,
) -> Table:
    """Elements of states pulled for each (grid, result tiling)."""
    wide = _wide((), shape, grids.workers * grids.workers)
    need = tilings.active.astype(object) if wide else tilings.active
    share = grids.active[:, None, :] * need[None, :, :]
    own_lo, own_hi = bounds(grids, shape, wide, labels)
    tile_lo, tile_hi = bounds(tilings, shape, wide)
    for axis in range(len(shape)):
        lo, hi = tile_lo[:, :, axis], tile_hi[:, :, axis]
        need = need * (hi - lo)
        overlap = np.minimum(hi[None], own_hi[:, None, :, axis]) - np.maximum(
            lo[None], own_lo[:, None, :, axis]
        )
        share = share * np.maximum(overlap, 0)
    counts = [_states(g, reduced, grids.workers, ordered) for g in grids.tilings]
    states = np.array([every for every, _ in counts], need.dtype)
    own = np.array([each for _, each in counts], need.dtype)
    elements: Table = states[:, None] * need.sum(-1)[None, :] - (share * own[:, None, :]).sum(-1)
    return elements


def _states(
    grid: Tiling, reduced: tuple[int, ...], workers: int, ordered: Ordered | None
) -> tuple[int, list[int]]:
    """How many partial states there are under a grid, and how many of them each rank has made."""
    if ordered is None:
        return _parts(grid.parts, reduced), [1] * workers
    domain, folded = ordered
    lead = leading(folded, grid, domain)
    own = []
    for rank in range(workers):
        index = grid.index_on(rank)
        here = None if index is None else [parts[index[d] if len(parts) > 1 else 0] for d, parts in lead]
        own.append(0 if here is None else prod(map(len, here)))
    return prod(sum(map(len, parts)) for _, parts in lead), own


def _parts(parts: tuple[int, ...], dimensions: tuple[int, ...]) -> int:
    n = 1
    for d in dimensions:
        n *= parts[d]
    return n


@lru_cache(maxsize=4096)
def bounds(
    options: Options, shape: tuple[int, ...], wide: bool, labels: tuple[int, ...] | None = None
) -> tuple[Table, Table]:
    """Where each option's box on each rank begins and ends along each axis of `shape`.

    With `labels`, the axes are those of an array that follows these dimensions of the options.
    """
    kind = object if wide else np.int64
    sizes = np.array(shape, kind).reshape(1, 1, len(shape))
    index, parts = options.index.astype(kind), options.parts
    if labels is not None:
        # One more dimension that nobody cuts, at the end, where the label WHOLE finds it.
        rim = ((0, 0), (0, 0), (0, 1))
        at = list(labels)
        index, parts = np.pad(index, rim)[:, :, at], np.pad(parts, rim, constant_values=1)[:, :, at]
    lo, hi = index * sizes // parts, (index + 1) * sizes // parts
    return (lo, hi) if options.even else _at_splits(options, shape, labels, index, lo, hi)


def _at_splits(
    options: Options,
    shape: tuple[int, ...],
    labels: tuple[int, ...] | None,
    index: Table,
    lo: Table,
    hi: Table,
) -> tuple[Table, Table]:
    """The bounds of `bounds`, but at the options' own cuts where they have some."""
    for o, tiling in enumerate(options.tilings):
        for axis, d in enumerate(range(len(shape)) if labels is None else labels):
            if tiling.splits and d >= 0 and tiling.splits[d]:
                points = np.array([0, *tiling.splits[d], shape[axis]], lo.dtype)
                at = index[o, :, axis].astype(np.int64)
                lo[o, :, axis], hi[o, :, axis] = points[at], points[at + 1]
    return lo, hi


def _seen_through(lo: Table, hi: Table, start: int, step: int) -> tuple[Table, Table]:
    """The interval of view indices i for which `start + step * i` lies in `[lo, hi)`."""
    if step > 0:
        return -(-(lo - start) // step), -(-(hi - start) // step)
    return (start - hi) // -step + 1, (start - lo) // -step + 1


def _wide(domain: tuple[int, ...], shape: tuple[int, ...], workers: int) -> bool:
    """Whether counts could leave the range of 64-bit integers."""
    longest = max(domain, default=1)
    return prod(shape) * workers >= _SAFE or max((longest * n for n in shape), default=1) >= _SAFE


def _as_bytes(elements: Table, scale: int, nbytes: int, shape: tuple[int, ...], workers: int) -> Table:
    """Bytes of `elements` times `scale`, of an array of `shape` and `nbytes`."""
    size = prod(shape)
    if size == 0:
        return elements * 0
    kind = object if nbytes * workers * workers >= _SAFE else np.int64
    each, rest = divmod(scale * nbytes, size)
    if not rest:
        return (elements.astype(kind) if kind is object else elements) * each
    # A sparse array: its bytes are spread evenly over its elements, as far as is known here.
    table: Table = (elements.astype(object) * (scale * nbytes) // size).astype(kind)
    return table
