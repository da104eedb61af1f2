"""What a block of a stage takes of the cache, as bytes an element of each operand, register and state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from spartan_ng.arrays import WHOLE
from spartan_ng.ops.folds import FOLDS, ArgFold, PrefixFold
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import REDUCING
from spartan_ng.ops.line_states import LINE_STATES
from spartan_ng.plan.rows import VALUE, Axis, Read, Row, Slot
from spartan_ng.plan.stages import Fused
from spartan_ng.sinks import Sink

NUMBER_BYTES = 8
_COPIES = 2
"""Of a part of a line that is sorted or partitioned: what is sorted, and what that gives."""
_SPARSE_WIDTH = 0.03
"""Bytes that a CSR operand, and what is computed at its non-zeros, is charged for an element of its shape, at
most: twelve for one in 400. Cutting a block out of it costs more than working on a small one."""
_LOOKUPS = ("take", "search")
_COPYING = frozenset(name for name, fold in FOLDS.items() if isinstance(fold, ArgFold | PrefixFold))
"""Folds for which NumPy copies a block: to have lines lie as they are gone over, or for sums on the way."""


def stored_widths(stage: Fused, slots: Sequence[Slot]) -> dict[int, float]:
    """By the slots of the CSR operands, what an element of their shape is charged."""
    found = {r.slot: slots[r.slot] for r in stage.reads if r.slot != VALUE and slots[r.slot].format == "csr"}
    return {i: min(s.stored_bytes / max(prod(s.shape), 1), _SPARSE_WIDTH) for i, s in found.items()}


def widths_of(
    stage: Fused, held: frozenset[int] | None, sparse: Mapping[int, float]
) -> list[tuple[float, tuple[int, ...]]]:
    """For each operand and register: bytes an element with its whole axes, and its dimensions."""
    out: list[tuple[float, tuple[int, ...]]] = []
    readers = Counter(r.slot for r in stage.reads)
    tables = _tables(stage)
    thin = max(sparse.values(), default=_SPARSE_WIDTH)
    copies = {a: _COPIES if r.kind in LINE_STATES else 1 for r in stage.every_row for a in _copied(r)}
    of_slot: dict[int, list[int]] = {}
    for i, r in enumerate(stage.reads):
        of_slot.setdefault(r.slot, []).append(i)
    for i, r in enumerate(stage.reads):
        if i in tables or _is_seen_again(stage.reads, i, of_slot[r.slot]):
            continue
        labels = [(a.label, a.size) for a in r.axes]
        is_held = readers[r.slot] > 1 or (held is not None and i in held)
        width: float = max(8 if is_held else 2, NUMBER_BYTES * copies.get(i, 0))
        width = sparse.get(r.slot, width)
        out.append(
            (width * prod(n for d, n in labels if d == WHOLE), tuple(d for d, _ in labels if d != WHOLE))
        )
    for i, row in enumerate(stage.rows, len(stage.reads)):
        if held is not None and i not in held:
            continue
        pairs = list(zip(row.labels, row.shape, strict=True))
        whole = prod(n for d, n in pairs if d == WHOLE)
        width = thin if row.sampled or _is_stored_sparse(row) else row.dtype.itemsize
        out.append((width * whole, tuple(d for d, _ in pairs if d != WHOLE)))
    for write in stage.writes:
        if write.reducer is not None and write.reducer.fn in FOLDS:
            pairs = list(zip(write.labels, write.reducer.shape, strict=True))
            whole = prod(n for d, n in pairs if d == WHOLE)
            out.append((_state_width(write.reducer) * whole, tuple(d for d, _ in pairs if d != WHOLE)))
    return out


def _state_width(row: Row) -> int:
    """Bytes of a fold's states for an element of its result: two are there while they combine."""
    fold = FOLDS[str(row.fn)]
    return 2 * sum(d.itemsize for d in fold.state_dtypes(row.dtype, row.dtype))


def _copied(row: Row) -> tuple[int, ...]:
    """The operands of a row that NumPy, or a user's function, copies: `bincount` and `interp` those that must
    not be written to, and folds that look for places each."""
    calls = isinstance(row.fn, UserFunction) and not isinstance(row.fn.function, Sink)
    return row.args if calls or row.kind in REDUCING or row.fn in _COPYING else ()


def _is_seen_again(reads: Sequence[Read], number: int, of_slot: Sequence[int]) -> bool:
    """Whether a block's part of an operand lies in its part of another one `of_slot`, counted for both."""
    own = reads[number]
    for i in of_slot:
        if i != number and _shows(reads[i], own):
            return i < number or not _shows(own, reads[i])
    return False


def _shows(one: Read, other: Read) -> bool:
    """Whether what a block has of a read is a part of what it has of another, which may have more axes
    whole."""
    return all(a == b or _covers(a, b) for a, b in zip(one.axes, other.axes, strict=True))


def _covers(one: Axis, other: Axis) -> bool:
    """Whether an axis that is whole has all indices of another one: a single row has not those of all."""
    if one.label != WHOLE or not other.size:
        return one.label == WHOLE
    mine, theirs = (range(a.start, a.start + a.step * a.size, a.step) for a in (one, other))
    return theirs[0] in mine and theirs[-1] in mine and other.step % one.step == 0


def _is_stored_sparse(row: Row) -> bool:
    """Whether a row's value is made of its operands' non-zeros alone; other functions see dense blocks."""
    return row.format == "csr" and (len(row.args) == 1 or row.fn in ("add", "subtract", "multiply", "divide"))


def _tables(stage: Fused) -> set[int]:
    """Registers in which rows are only looked up: no block size brings them into the cache."""
    looked_up = {row.args[0] for row in stage.rows if row.kind in _LOOKUPS}
    others = [row.args[row.kind in _LOOKUPS :] for row in stage.rows]
    others += [w.reducer.args for w in stage.writes if w.reducer is not None]
    return looked_up.difference(*others)


def footprint(widths: Sequence[tuple[float, tuple[int, ...]]], sizes: Sequence[int]) -> float:
    """What a block of these sizes takes."""
    total = 0.0
    for width, dims in widths[:64]:
        for d in dims:
            width *= sizes[d]
        total += width
    return total
