"""Which results of a stage are folded in the order of `ops.order`, and where their units let a grid cut."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod

from spartan_ng.arrays import Tiling
from spartan_ng.ops.folds import FOLDS, is_ordered
from spartan_ng.ops.order import Span, count, grain, subtrees, units
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import VALUE, WHOLE, Folded, Read, Row

_MOST = 1 << 24
"""Elements that the states of a sparse operand's units, or of weighted counts', take at most."""
_FEW = 8
"""So many of such units are always there to be shared."""


def folded_units(row: Row, operand: Read | Row, format: str, uncut: Collection[int]) -> tuple[Folded, ...]:
    """The axes that a reducer folds of its first operand, with their units; empty where any order will do.

    `format` is the operand's; of a sparse one only the axis is cut that does not follow a dimension of
    `uncut`.
    """
    if format == "compressed":
        return ()
    axes: tuple[int, ...] = (0,)
    lengths: tuple[int, ...]
    if row.kind == "bincount":
        if row.dtype.kind not in "fc" or len(row.args) < 2:
            return ()
        lengths = (_long(operand.shape[0], prod(row.shape)),)
    elif row.kind == "fold" and isinstance(row.fn, str) and is_ordered(FOLDS[row.fn], row.dtype):
        axes = row.params[0]
        lengths = units(operand.shape, axes)
        if format != "dense":
            lengths = tuple(_sparse(operand, a, axes, uncut) for a in axes)
    else:
        return ()
    found = zip(axes, lengths, strict=True)
    return tuple(Folded(a, operand.labels[a], operand.shape[a], max(n, 1)) for a, n in sorted(found))


def folded_operand(draft: Draft, row: Row, format: Callable[[int], str]) -> tuple[Read | Row, str]:
    """What a reducer of a draft folds, and its format; `format` gives that of a slot."""
    first, register = len(draft.reads), row.args[0]
    if register >= first:
        made = draft.rows[register - first]
        return made, "csr" if made.sampled else made.format
    read = draft.reads[register]
    return read, "dense" if read.slot == VALUE else format(read.slot)


def _sparse(operand: Read | Row, axis: int, axes: tuple[int, ...], uncut: Collection[int]) -> int:
    """The units of a sparse operand's axis."""
    if operand.labels[axis] in uncut:
        return operand.shape[axis]
    return _long(operand.shape[axis], prod(n for a, n in enumerate(operand.shape) if a not in axes))


def _long(n: int, state: int) -> int:
    """Units of an axis whose states, of so many elements each, are not too many."""
    length = grain(n)
    while n > length * _FEW and n // length * state > _MOST:
        length *= 2
    return min(length, n)


def _alone(lo: int, hi: int, number: int) -> list[Span]:
    """Each unit by itself."""
    return [(i, i + 1) for i in range(lo, hi)]


Lead = tuple[tuple[int, tuple[tuple[Span, ...], ...]], ...]
"""For each leading axis of partial states: the dimension of the domain, and for each of its parts the
subtrees of units that it hands over."""


def leading(axes: Sequence[Folded], grid: Tiling, domain: tuple[int, ...]) -> Lead:
    """What is handed over where `grid` cuts a folded dimension; empty where it cuts none.

    The last axes are combined first: of an axis before one that is cut, each unit is handed over by itself.
    """
    found: list[tuple[int, tuple[tuple[Span, ...], ...]]] = []
    for f in reversed(axes):
        number = count(f.size, f.length)
        parts = grid.parts[f.dim] if f.dim != WHOLE and f.size == domain[f.dim] else 1
        if parts > 1 or (found and number > 1):
            cuts = [grid.cut(f.dim, f.size, i) for i in range(parts)] if parts > 1 else [(0, f.size)]
            assert not any(lo % f.length for lo, _ in cuts), "a grid cuts between units"
            ranges = [(lo // f.length, -(-hi // f.length)) for lo, hi in cuts]
            each = _alone if found else subtrees
            found.append((f.dim, tuple(tuple(each(lo, hi, number)) for lo, hi in ranges)))
    return tuple(reversed(found))
