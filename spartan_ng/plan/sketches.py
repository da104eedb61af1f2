"""What tiling needs to know of drafts and arrays: domains, labels, bytes and flops."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import WHOLE
from spartan_ng.arrays.sparse import INDEX_BYTES, csr_bytes, csr_nonzeros
from spartan_ng.costs import traffic
from spartan_ng.costs.operations import of_node
from spartan_ng.costs.traffic import Seen
from spartan_ng.graph.node import Node, Op
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.line_sorts import pick_bytes
from spartan_ng.ops.line_states import LINE_STATES
from spartan_ng.ops.random import is_stream
from spartan_ng.ops.scans import states_of
from spartan_ng.ops.units import Folded
from spartan_ng.optimizer.fusion.labels import Labels, is_line_sort
from spartan_ng.optimizer.tiling.sketch import ArraySketch, FlatView, Load, StageSketch, TaskAccess
from spartan_ng.plan.absorb import is_heavy
from spartan_ng.plan.draft import Draft, DraftResult, stage_name
from spartan_ng.plan.rows import VALUE, Read, Row
from spartan_ng.plan.stages.join import found_by
from spartan_ng.plan.stages.passes import looked_up, operands_of_products, row_operations
from spartan_ng.plan.stages.stage import seen_by
from spartan_ng.plan.steps import turning
from spartan_ng.plan.units import folded_operand, folded_units

_ALL_DENSE: Mapping[Node, float] = MappingProxyType({})
"""Non-zeros of what only dense arrays are sorted of."""
_ROW_BYTES = 4
"""Bytes of a sparse row's end, as tiles have it; a piece has one more, where its first row begins."""


def sketch_array(node: Node, sparse_bytes: Mapping[Node, int]) -> ArraySketch:
    """An array as tiling sees it; `sparse_bytes` says how large CSR arrays will be."""
    uncut: tuple[int, ...] = (1,) if node.format != "dense" else ()
    if node.fn in LINE_STATES or node.fn == "places":  # its parts are states of all of it
        uncut = (0,)
    ref = node.data
    nbytes, row_bytes, piece_bytes = sparse_bytes.get(node, node.nbytes), 0, 0
    if node.format == "csr":
        rows, row_bytes, piece_bytes = node.shape[0], _ROW_BYTES, _ROW_BYTES
        stored = csr_nonzeros(nbytes, rows, node.dtype.itemsize) if ref is None else ref.nnz or 0
        nbytes = stored * (node.dtype.itemsize + INDEX_BYTES) + rows * row_bytes + piece_bytes
    elif node.format == "compressed" and ref is not None and ref.value is not None:
        piece_bytes = ref.value.words.nbytes
    if ref is None:
        return ArraySketch(node.shape, nbytes, uncut=uncut, row_bytes=row_bytes, piece_bytes=piece_bytes)
    kept = tuple(copy.tiling for copy in ref.also if copy.tiling is not None)
    outside = ref.source if ref.value is None or ref.tiling is not None else None
    return ArraySketch(
        node.shape,
        nbytes if row_bytes else ref.nbytes,
        ref.tiling,
        uncut,
        driver=ref.tiling is None,
        chunks=None if outside is None else outside.chunks,
        kept=kept,
        outlives=True,
        load=Load(ref.value.indptr) if ref.skewed and ref.value is not None else None,
        row_bytes=row_bytes,
        piece_bytes=piece_bytes,
    )


def sketch_stage(
    draft: Draft,
    arrays: Sequence[Node],
    measured: Mapping[Hashable, int],
    nonzeros: Mapping[Node, float],
    exact: bool,
) -> StageSketch:
    """A stage as tiling sees it; `arrays` are the nodes behind the slots, `measured` is what is known of
    users' updates from earlier runs, `nonzeros` are those of all sparse nodes. An `exact` stage keeps the
    last bits: its lines are scanned whole."""
    touched = _touched(draft, arrays, nonzeros)
    if draft.separate:
        sketch = replace(_SEPARATE[_kind(draft.node)](draft, arrays), touched=touched)
        if isinstance(draft.node.fn, UserFunction) and draft.node.op is Op.JOIN_UPDATE:
            key = updates_key(draft.node.fn, draft.node.params, draft.reads, draft.node.shape)
            return replace(sketch, update_bytes=measured.get(key))
        return sketch
    cuttable = tuple(
        d for d, n in enumerate(draft.domain) if n > 1 and d not in draft.whole and d not in draft.uncut
    )
    scan = next((row for row in draft.rows if row.kind == "scan"), None)
    if exact and scan is not None and scan.dtype.kind in "fc":
        cuttable = tuple(d for d in cuttable if d not in scan.params)
    reads = [_access(r, arrays) for r in draft.reads]
    late: tuple[int, ...] = ()
    if draft.after is not None:
        late = tuple(draft.out[d] for d in draft.after.uncut)
        reads += [_behind(r, draft.out, arrays) for r in draft.after.reads if r.slot != VALUE]
    writes = tuple(
        TaskAccess(
            r.slot, r.out, state_bytes=_state_bytes(r), units=_units(r, draft, arrays) if exact else ()
        )
        for r in draft.results
    )
    products = [r for r in (*draft.rows, *draft.reducers) if r.kind == "contract" and len(r.shape) > 1]
    sketch = StageSketch(
        draft.domain,
        cuttable,
        tuple(reads),
        writes,
        _flops(draft, arrays, nonzeros),
        touched,
        late=late,
        dear=_dear(draft),
        name=stage_name(draft),
        product=bool(products),
        finishes=draft.after is not None,
        scanned=None if scan is None else scan.params[0],
    )
    return replace(sketch, turns=turning(draft)) if is_heavy(draft) else sketch


def _units(result: DraftResult, draft: Draft, arrays: Sequence[Node]) -> tuple[Folded, ...]:
    """The units of a reduced result."""
    if result.reducer is None:
        return ()
    operand, format = folded_operand(draft, result.reducer, lambda slot: stored_format(arrays[slot]))
    return folded_units(result.reducer, operand, format, draft.uncut)


def stored_format(node: Node) -> str:
    """How an array is stored: what is compressed, and not there yet, is made dense."""
    return "dense" if node.format == "compressed" and node.data is None else node.format


def _dear(draft: Draft) -> tuple[int, ...]:
    """Cut along any axis but the first longer one, numbers of a stream are drawn in many short runs."""
    drawn = [row for row in draft.rows if row.kind == "random" and is_stream(row.params[0])]
    first = [next((a for a, n in enumerate(row.shape) if n > 1), 0) for row in drawn]
    return tuple(d for row, a in zip(drawn, first, strict=True) for d in row.labels[a + 1 :])


def _behind(read: Read, out: Labels, arrays: Sequence[Node]) -> TaskAccess:
    """A read of a product's finish: its labels are axes of the result."""
    access = _access(read, arrays)
    labels = tuple(WHOLE if d == WHOLE else out[d] for d in access.labels)
    return replace(access, labels=labels, behind=True)


def state_dtypes(row: Row, node: Node) -> tuple[np.dtype[Any], ...]:
    """The dtypes of a reducer's states."""
    if row.kind == "fold" and isinstance(row.fn, str):
        return FOLDS[row.fn].state_dtypes(node.inputs[0].dtype, row.dtype)
    if row.kind in LINE_STATES:
        return LINE_STATES[row.kind](*row.params).dtypes(node.inputs[0].dtype, row.dtype)
    return (row.dtype,)


def _state_bytes(result: DraftResult) -> int | None:
    """Bytes of one partial state of a result that is reduced over the domain."""
    if result.reducer is None:
        return None
    return result.node.size * sum(d.itemsize for d in state_dtypes(result.reducer, result.node))


def updates_key(
    fn: UserFunction, params: tuple[Any, ...], reads: Sequence[Read], shape: tuple[int, ...]
) -> Hashable:
    """Under which the bytes of a user's updates are remembered."""
    return ("updates", fn, params, tuple(r.shape for r in reads), shape)


def _access(read: Read, arrays: Sequence[Node]) -> TaskAccess:
    spans = tuple((a.start, a.step, a.size) for a in read.axes)
    plain = spans == tuple((0, 1, n) for n in arrays[read.slot].shape)
    return TaskAccess(read.slot, tuple(a.label for a in read.axes), () if plain else spans)


def _flops(draft: Draft, arrays: Sequence[Node], nonzeros: Mapping[Node, float]) -> int:
    """Operations of a draft's rows, and of what comes after."""
    stored = [None if read.slot == VALUE else _density(arrays[read.slot], nonzeros) for read in draft.reads]
    own = sum(row_operations(draft.reads, draft.rows, draft.reducers, stored, draft.driver))
    return own if draft.after is None else own + _flops(draft.after, arrays, nonzeros)


def _touched(draft: Draft, arrays: Sequence[Node], nonzeros: Mapping[Node, float]) -> dict[int, int]:
    """Bytes of each array that pass through memory for a draft and what comes after (`costs.traffic`)."""
    parts = [draft] if draft.after is None else [draft, draft.after]
    seen = [view for part in parts for view in _seen(part)]

    def stored(slot: int) -> traffic.ArrayBytes:
        return traffic.ArrayBytes(arrays[slot].size, _stored_bytes(arrays[slot], nonzeros))

    return traffic.touched(seen, [result.slot for result in parts[-1].results], stored)


def _seen(draft: Draft) -> Iterator[Seen[int]]:
    """What a draft sees of slots."""
    if draft.separate:
        return seen_by(draft.reads, (), found_by(_kind(draft.node), draft.node.size))
    rows = [*draft.rows, *draft.reducers]
    return seen_by(
        draft.reads, operands_of_products(rows, [r.register for r in draft.results]), looked_up(rows)
    )


def _stored_bytes(node: Node, nonzeros: Mapping[Node, float]) -> int:
    """Bytes of an array in the form that it has, or is expected to have."""
    if node.data is not None:
        return node.data.nbytes
    if node in nonzeros:
        return csr_bytes(int(nonzeros[node]), node.shape[0], node.dtype.itemsize)
    return node.nbytes


def _density(node: Node, nonzeros: Mapping[Node, float]) -> float | None:
    """The part of a sparse array that is stored; None of a dense one."""
    return min(int(nonzeros[node]) / max(node.size, 1), 1.0) if node in nonzeros else None


# --- stages of their own kind ------------------------------------------------------------------------


def _kind(node: Node) -> str:
    if node.op is Op.RESHAPE:
        return node.op.value
    return "sort" if is_line_sort(node) else str(node.fn) if isinstance(node.fn, str) else "user"


def _sort(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Parts are sorted where they lie, then merged."""
    node, key = draft.node, draft.node.inputs[0].dtype.itemsize
    element = key + (node.dtype.itemsize if node.params[0] == "argsort" else 0)
    cuttable = tuple(d for d, n in enumerate(node.shape) if n > 1)
    write = TaskAccess(draft.slot, draft.out)
    reads = tuple(_access(r, arrays) for r in draft.reads)
    flops = of_node(node) + _flops(draft, arrays, _ALL_DENSE)
    return StageSketch(node.shape, cuttable, reads, (write,), flops, sorts=(key, element))


def _places(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Parts are sorted where they lie; whoever has the result searches them."""
    (x,), (_, spans) = draft.node.inputs, draft.node.params
    cuttable = (0,) if x.size > 1 else ()
    reads = tuple(_access(r, arrays) for r in draft.reads)
    write = TaskAccess(draft.slot, (WHOLE,), state_bytes=pick_bytes(x.size, x.dtype.itemsize, spans))
    flops = of_node(draft.node) + _flops(draft, arrays, _ALL_DENSE)
    return StageSketch(x.shape, cuttable, reads, (write,), flops)


def sketch_cascade(draft: Draft, number: int) -> tuple[ArraySketch, TaskAccess] | None:
    """What a scan's cascades move: as if each part's aggregate were combined into array `number`.

    One row a part goes up, and one comes down; None where the stage has no scan.
    """
    scan = next((row for row in draft.rows if row.kind == "scan"), None)
    if scan is None or scan.fn is None:
        return None
    (axis,) = scan.params
    labels = tuple(d for d in range(len(draft.domain)) if d != axis)
    shape = tuple(draft.domain[d] for d in labels)
    both_ways = 2 * states_of(scan.fn) * prod(shape) * scan.dtype.itemsize
    return ArraySketch(shape, both_ways), TaskAccess(number, labels, state_bytes=both_ways)


def _reshape(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Row-major runs: only the first axis is cut, and the input is read run by run."""
    node, (read,) = draft.node, draft.reads
    cuttable = (0,) if node.ndim else ()
    labels = tuple(0 if a.label == 0 and cuttable else WHOLE for a in read.axes)
    along = tuple(read.order.index(k) if k in read.order else -1 for k in range(len(read.axes)))
    access = replace(_access(read, arrays), labels=labels, run=FlatView(read.shape, along))
    return StageSketch(node.shape, cuttable, (access,), (TaskAccess(draft.slot, draft.out),), of_node(node))


def _assemble(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Pieces at their places."""
    node = draft.node
    cuttable = tuple(d for d, n in enumerate(node.shape) if n > 1)
    starts = _starts(node, draft.reads)
    reads = tuple(
        _piece(_access(r, arrays), start, r.shape, node.shape)
        for r, start in zip(draft.reads, starts, strict=True)
    )
    return StageSketch(node.shape, cuttable, reads, (TaskAccess(draft.slot, draft.out),), of_node(node))


def _starts(node: Node, reads: Sequence[Read]) -> Iterator[tuple[tuple[int, int], ...]]:
    """For each piece that a result is assembled of, where it begins and with which steps it goes on."""
    plain = ((0, 1),) * node.ndim
    if node.fn == "assign":
        yield from (plain, node.params)
        return
    (axis,) = node.params
    first = 0
    for read in reads:
        yield (*plain[:axis], (first, 1), *plain[axis + 1 :])
        first += read.shape[axis]


def _piece(
    access: TaskAccess, starts: tuple[tuple[int, int], ...], shape: tuple[int, ...], domain: tuple[int, ...]
) -> TaskAccess:
    """The access of a piece of some shape that begins at `starts` of the domain."""
    within = tuple(
        (d, *starts[d], n)
        for d, (n, size) in enumerate(zip(shape, domain, strict=True))
        if n < size and d not in access.labels
    )
    placed = tuple((0, 1) if d == WHOLE else starts[d] for d in access.labels)
    return replace(access, placed=placed, within=within)


def _tile_as(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """A copy with the one grid that is allowed."""
    node = draft.node
    reads = tuple(_access(r, arrays) for r in draft.reads)
    write = TaskAccess(draft.slot, draft.out)
    cuttable = tuple(range(node.ndim))
    return StageSketch(node.shape, cuttable, reads, (write,), of_node(node), by_hand=node.params[0])


def _compress(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Each task makes its part of the output and looks up the rows that it needs, which are spread evenly."""
    node, (base, mask) = draft.node, draft.reads
    n = max(base.shape[0], 1)
    rows = replace(_joined(base, 0, arrays), part=(min(node.shape[0], n), n))
    reads = (rows, _whole(mask, arrays))
    cuttable = (0,) if node.shape[0] > 1 else ()
    return StageSketch(node.shape, cuttable, reads, (TaskAccess(draft.slot, draft.out),), of_node(node))


def _nonzero(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Each task makes its part of the places; where that begins, all of the mask says."""
    node, (mask,) = draft.node, draft.reads
    reads = (_whole(mask, arrays),)
    cuttable = (0,) if node.shape[0] > 1 else ()
    return StageSketch(node.shape, cuttable, reads, (TaskAccess(draft.slot, draft.out),), of_node(node))


def _joined(read: Read, axis: int, arrays: Sequence[Node]) -> TaskAccess:
    """A read along its joined axis (dimension 0 of the join's domain), whole in all others."""
    labels = tuple(0 if a.label == axis and axis >= 0 else WHOLE for a in read.axes)
    return replace(_access(read, arrays), labels=labels, exact=False)


def _whole(read: Read, arrays: Sequence[Node]) -> TaskAccess:
    """A read of all that a view shows, by every task."""
    return replace(_access(read, arrays), labels=(WHOLE,) * len(read.axes))


def _scatter(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Each task owns a part of the base and sees every index and value."""
    node = draft.node
    base, *others = draft.reads
    reads = (_access(base, arrays), *(_whole(r, arrays) for r in others))
    cuttable = (0,) if node.shape[0] > 1 else ()
    return StageSketch(node.shape, cuttable, reads, (TaskAccess(draft.slot, draft.out),), of_node(node))


def _take(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """Only the rows that are asked for move; they are as likely here as there."""
    node, (a, indices) = draft.node, draft.reads
    (axis,) = node.params
    count = len(indices.shape)
    access = _access(a, arrays)
    labels = tuple(WHOLE if d in (WHOLE, axis) else d + (d > axis) * (count - 1) for d in access.labels)
    asking = tuple(range(axis, axis + count))
    asked = tuple((i, *asking) for i, d in enumerate(access.labels) if d == axis)
    places = tuple(WHOLE if x.label == WHOLE else axis + x.label for x in indices.axes)
    cuttable = tuple(d for d, n in enumerate(node.shape) if n > 1)
    rows = replace(access, labels=labels, asked=asked[0] if asked else ())
    reads = (rows, replace(_access(indices, arrays), labels=places))
    return StageSketch(node.shape, cuttable, reads, (TaskAccess(draft.slot, draft.out),), of_node(node))


def _user(draft: Draft, arrays: Sequence[Node]) -> StageSketch:
    """The paper's join_update: inputs cut along the joined axes, updates of one output in all."""
    node = draft.node
    axes, _ = node.params
    joined = [r.shape[a] for r, a in zip(draft.reads, axes, strict=True) if a >= 0]
    size = joined[0] if joined else 1
    reads = tuple(_joined(r, a if size > 1 else -1, arrays) for r, a in zip(draft.reads, axes, strict=True))
    write = TaskAccess(draft.slot, (WHOLE,) * node.ndim)
    return StageSketch((size,), (0,) if size > 1 else (), reads, (write,), of_node(node))


_SEPARATE = {
    "reshape": _reshape,
    "concatenate": _assemble,
    "assign": _assemble,
    "compress": _compress,
    "nonzero": _nonzero,
    "scatter": _scatter,
    "take": _take,
    "tile_as": _tile_as,
    "sort": _sort,
    "places": _places,
    "user": _user,
}
