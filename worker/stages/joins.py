"""Joins: tile functions whose updates go anywhere, and the few whose reads depend on data.

Spartan (ATC '15), section 3.1, `join_update`: each task joins its part along the joined axes with whole
other inputs, and yields updates at locations; the owners of the output pull what meets their tiles
and accumulate it, in the order of the ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import Box, box_of, box_shape, intersect, slices_within
from spartan_ng.arrays.copying import run_of
from spartan_ng.errors import UserFunctionError
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.user import call_user, guarded
from spartan_ng.memory import block_bytes, budget_bytes
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.stages import Accumulate, Join
from spartan_ng.worker.memory.regions import lookup, resolve
from spartan_ng.worker.scheduling.shares import Task

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor


def run_join(ex: Executor, run: Run, stage: Join, task: Task) -> None:
    """Dispatch on what kind of join it is."""
    if task.box is not None:
        _JOINS[stage.how](ex, run, stage, task)


def _compress(ex: Executor, run: Run, stage: Join, task: Task) -> None:
    """The rows of the output's part: found in the mask, then looked up where they lie."""
    assert task.box is not None, "checked by the caller"
    mask = dense(ex.load(run, task.operands[0]))
    lo, hi = task.box[0]
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate(box_shape(task.box), slot.dtype)
    read = stage.reads[0]
    box = (*box_of(mask.shape), *task.box[1:])
    whole = resolve(read, box, run.plan.slots[read.slot], ex.rank)
    is_read = run.plan.slots[read.slot].chunks is not None
    if not is_read and all(p.rank == ex.rank for p in whole.pieces):
        _compress_here(ex, run, dense(ex.load(run, whole)), mask, lo, out)
        ex.put(run, stage.slot, out)
        return
    inner = prod(mask.shape[1:])
    length = _rows(ex, out.nbytes // max(len(out), 1))
    rest = [*box_of(mask.shape[1:]), *task.box[1:]]
    for begin, places in _kept(mask, lo, hi, length):
        part, rows = _looked_up(ex, run, stage, places // inner, 0, ((0, 0), *rest))
        flat = part.reshape((part.shape[0] * inner, *part.shape[mask.ndim :]))
        own = out[begin : begin + places.size]
        np.take(flat, rows * inner + places % inner, axis=0, out=own, mode="clip")  # in range, so not checked
    ex.put(run, stage.slot, out)


_ROWS = 1 << 20
"""Rows that are looked up at a time, at most, and no more than memory has room for"""
_ROW_BYTES = 128
"""so many bytes of, and four times their elements: their places are kept several times over."""
_FEW = 1 << 8


def _rows(ex: Executor, row_bytes: int = 0) -> int:
    """How many rows of so many bytes are looked up at a time: as they are sent, as they come, and put
    together."""
    limit = budget_bytes() if ex.store.pool is None else ex.store.pool.budget_bytes
    return _ROWS if limit is None else min(_ROWS, max(limit // (_ROW_BYTES + 4 * row_bytes), _FEW))


def _kept(mask: Any, lo: int, hi: int, length: int) -> Iterator[tuple[int, np.ndarray[Any, Any]]]:
    """The places that a mask keeps, of which numbers `lo` to `hi` are wanted, a piece of some elements at a
    time: behind how many of the wanted ones a piece's own come, and these."""
    before = 0
    for at in range(0, mask.size, length):
        if before >= hi:
            return
        places = np.flatnonzero(run_of(mask, at, length))
        own = places[max(lo - before, 0) : max(hi - before, 0)] + at
        if own.size:
            yield max(before - lo, 0), own
        before += places.size


def _nonzero(ex: Executor, run: Run, stage: Join, task: Task) -> None:
    """The places of the output's part, found in the mask."""
    assert task.box is not None, "checked by the caller"
    mask = dense(ex.load(run, task.operands[0]))
    out = ex.store.allocate(box_shape(task.box), run.plan.slots[stage.slot].dtype)

    def put(piece: slice, places: Any, own: Any) -> None:
        np.add(places, piece.start, out=own)

    _each_kept(ex, run, mask, task.box[0][0], out, put)
    ex.put(run, stage.slot, out)


_PIECE = 1 << 16
"""Rows of a mask whose places still lie in the cache when they are looked up."""


def _compress_here(ex: Executor, run: Run, rows: Any, mask: Any, lo: int, out: Any) -> None:
    """The kept rows from number `lo` on that `out` has room for."""
    is_line = rows.flags.c_contiguous or mask.ndim == 1
    flat = rows.reshape((mask.size, *rows.shape[mask.ndim :])) if is_line else None

    def put(piece: slice, places: Any, own: Any) -> None:
        if flat is not None:
            _pick(flat[piece], places, own)
        else:
            own[...] = rows[np.unravel_index(places + piece.start, mask.shape)]

    _each_kept(ex, run, mask, lo, out, put)


def _pick(rows: Any, places: Any, out: Any) -> None:
    """The rows at places that are in range. NumPy's `take` would first copy all of them where they do not lie
    one after the other."""
    if rows.flags.c_contiguous and rows.flags.aligned:
        np.take(rows, places, axis=0, out=out, mode="clip")  # in range, so not checked
    elif rows.ndim == 1:
        out[...] = rows.take(places, mode="clip")
    elif abs(rows.strides[0]) < min(map(abs, rows.strides[1:])):
        for k in range(rows.shape[1]):  # columns lie so
            _pick(rows[:, k], places, out[:, k])
    else:
        length = max(block_bytes() // max(rows[:1].nbytes, 1), 1)
        for at in range(0, len(places), length):
            out[at : at + length] = rows[places[at : at + length]]


def _each_kept(
    ex: Executor, run: Run, mask: Any, lo: int, out: Any, put: Callable[[slice, Any, Any], None]
) -> None:
    """What a mask keeps, from number `lo` on, as much as `out` has room for: counted piece by piece, then
    given to `put`, the places in a piece beside their part of `out`."""
    pieces = [slice(at, at + _PIECE) for at in range(0, mask.size, _PIECE)]
    small = len(pieces) <= 1

    def of(piece: slice) -> Any:
        return run_of(mask, piece.start, _PIECE)

    counts = ex.parallel(run, pieces, lambda: lambda p: np.count_nonzero(of(p)), small)
    ends = np.cumsum(counts) - lo

    def copy(item: tuple[slice, int, int]) -> None:
        """Put what a piece keeps, but for what is before and after `out`."""
        piece, begin, end = item
        first, last = max(begin, 0), min(end, len(out))
        if first < last:
            places = np.flatnonzero(of(piece))[first - begin : last - begin]
            put(piece, places, out[first:last])

    items = [(p, int(e) - c, int(e)) for p, c, e in zip(pieces, counts, ends, strict=True)]
    ex.parallel(run, items, lambda: copy, small)


def _take(ex: Executor, run: Run, stage: Join, task: Task) -> None:
    """Look up rows: those that are asked for are read from where they lie, and no others."""
    assert task.box is not None, "checked by the caller"
    (axis,) = stage.params
    indices = dense(ex.load(run, task.operands[0]))
    box = (*task.box[:axis], (0, 0), *task.box[axis + indices.ndim :])
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate(box_shape(task.box), slot.dtype)
    length = _at_a_time(ex, indices, out)
    for at in range(0, len(indices) if indices.ndim else 1, length):
        if not indices.size:
            break
        own, place = indices, out
        if length < len(np.atleast_1d(indices)):
            own, place = indices[at : at + length], out[(*[slice(None)] * axis, slice(at, at + length))]
        found, rows = _looked_up(ex, run, stage, own, axis, box)
        if found.flags.c_contiguous:
            np.take(found, rows, axis=axis, out=place, mode="clip")  # in range: checks would take a copy
        else:  # `take` would first copy all of it
            place[...] = found[(*[slice(None)] * axis, rows)]
    ex.put(run, stage.slot, out)


def _at_a_time(ex: Executor, indices: Any, out: Any) -> int:
    """How many of some indices are looked up at a time: all, where there is room for what that takes, since a
    row that is asked for again comes again."""
    pool = ex.store.pool
    budget = None if pool is None else pool.budget_bytes
    if not indices.ndim or budget is None or 4 * (indices.nbytes + out.nbytes) <= budget:
        return max(int(indices.size), 1)
    each = max(int(prod(indices.shape[1:])), 1)
    return max(1, _rows(ex, out.nbytes // max(indices.size, 1)) // each)


def _looked_up(
    ex: Executor, run: Run, stage: Join, indices: Any, axis: int, box: Box
) -> tuple[np.ndarray[Any, Any], Any]:
    """The join's first operand at `box`, but along `axis` only rows that `indices` ask for, or more where all
    are here; and for each index its row in that."""
    read = stage.reads[0]
    slot = run.plan.slots[read.slot]
    first, last = int(indices.min()), int(indices.max())
    around = (*box[:axis], (first, last + 1), *box[axis + 1 :])
    whole = resolve(read, around, slot, ex.rank)
    if slot.chunks is None and all(p.rank == ex.rank for p in whole.pieces):
        return dense(ex.load(run, whole)), indices - first
    wanted, rows = _distinct(indices)
    operand = lookup(read, around, axis, wanted, slot, ex.rank)
    return dense(ex.load(run, operand)), rows


def _distinct(indices: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The indices in order, each once, and for each of `indices` its place there.

    By one sort: `np.unique` hashes, and each search in what it finds misses the caches; together they take
    six times longer.
    """
    flat = np.ravel(indices)
    order = np.argsort(flat)
    ordered = flat[order]
    is_first = np.empty(flat.size, np.bool_)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    rows = np.empty(flat.size, np.intp)
    rows[order] = np.cumsum(is_first) - 1
    return ordered[is_first], rows.reshape(np.shape(indices))


def _scatter(ex: Executor, run: Run, stage: Join, task: Task) -> None:
    """Indices that fall into the own part of the base; later ones win, or all accumulate."""
    (accumulate,) = stage.params
    base, indices, values = (dense(x) for x in ex.load_all(run, task.operands))
    assert task.box is not None, "checked by the caller"
    lo, hi = task.box[0]
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate((hi - lo,), slot.dtype)
    np.copyto(out, base)
    length = _rows(ex)
    for at in range(0, len(indices), length):
        places, new = indices[at : at + length], values[at : at + length]
        mine = (places >= lo) & (places < hi)
        if accumulate:
            ELEMENTWISE[accumulate].function.at(out, places[mine] - lo, new[mine])  # type: ignore[attr-defined]
        else:
            out[places[mine] - lo] = new[mine]
    ex.put(run, stage.slot, out)


def _user(ex: Executor, run: Run, stage: Join, task: Task) -> None:
    """Call the user's join on the task's tiles and keep its updates for their owners."""
    assert stage.fn is not None, "a user's join has a function"
    tiles = ex.load_all(run, task.operands)
    axes, _ = stage.params
    assert task.box is not None, "checked by the caller"
    extents = tuple(
        tuple(task.box[0] if i == axis else (0, n) for i, n in enumerate(read.shape))
        for read, axis in zip(stage.reads, axes, strict=True)
    )
    updates = call_user(stage.fn, "join_update", extents, tuple(tiles), taken=_pairs)
    whole = next(s.slot for s in run.plan.stages if isinstance(s, Accumulate) and s.updates == stage.slot)
    ex.put(run, stage.slot, list(_located(stage.fn, updates, run.plan.slots[whole].shape)))


def _pairs(updates: Any) -> list[tuple[Any, np.ndarray[Any, Any]]]:
    """The user's function gives one `(location, data)` pair, or several."""
    single = isinstance(updates, tuple) and len(updates) == 2 and _is_location(updates[0])
    return [(location, np.asarray(data)) for location, data in ([updates] if single else updates)]


def _located(
    fn: UserFunction, updates: list[tuple[Any, np.ndarray[Any, Any]]], shape: tuple[int, ...]
) -> Iterator[tuple[Box, np.ndarray[Any, Any]]]:
    """`(extent, data)` for each update of an array of `shape`."""
    for location, array in updates:
        at = np.atleast_1d(np.asarray(location, np.int64))
        if at.shape != (array.ndim,):
            raise UserFunctionError(
                f"join_update: {fn} (at {fn.origin}) gave data with {array.ndim} axes at location {location}"
            )
        if at.shape != (len(shape),) or (at < 0).any() or (at + array.shape > shape).any():
            raise UserFunctionError(
                f"join_update: {fn} (at {fn.origin}) gave data of shape {array.shape} at location "
                f"{location}, which is not all in the result, of shape {shape}"
            )
        yield tuple((int(a), int(a) + n) for a, n in zip(at, array.shape, strict=True)), array


def _is_location(value: Any) -> bool:
    """Whether a value is an index into the output: an int, or one for each axis."""
    items = value if isinstance(value, tuple | list | np.ndarray) else [value]
    return all(isinstance(v, int | np.integer) for v in items)


def run_accumulate(ex: Executor, run: Run, stage: Accumulate, task: Task) -> None:
    """Pull the updates that meet the own tile from every rank of the join, in order."""
    if task.box is None:
        return
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate(box_shape(task.box), slot.dtype)
    out[...] = 0
    written = np.zeros(out.shape, bool)
    combine = _accumulator(stage.accumulate)
    region = tuple((lo, hi, 1) for lo, hi in task.box)
    for part in range(stage.grid.parts[0]):
        rank = ex.rank if stage.grid.duplicate else stage.grid.rank((part,))
        (updates,) = ex.fetch_all(run, stage.updates, [(rank, region)])
        for at, data in updates:
            common = intersect(at, task.box)
            if common is None:
                continue
            source = slices_within(common, at)
            place = slices_within(common, task.box)
            new, old, seen = data[source], out[place], written[place]
            out[place] = np.where(seen, combine(old, new), new) if seen.any() else new
            written[place] = True
    ex.put(run, stage.slot, out)


def _accumulator(accumulate: str | UserFunction) -> Callable[[Any, Any], Any]:
    if isinstance(accumulate, UserFunction):
        return guarded(accumulate, "join_update")
    if accumulate == "replace":
        return lambda old, new: new
    function: Callable[[Any, Any], Any] = ELEMENTWISE[accumulate].function
    return function


_JOINS: dict[str, Callable[[Executor, Run, Join, Task], None]] = {
    "compress": _compress,
    "nonzero": _nonzero,
    "scatter": _scatter,
    "take": _take,
    "user": _user,
}
