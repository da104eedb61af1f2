"""Which results of a stage are folded in the order of `ops.order`, and where their units let a grid cut."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod

from spartan_ng.ops.folds import FOLDS, is_ordered
from spartan_ng.ops.order import grain, units
from spartan_ng.ops.units import Folded
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import VALUE, Read, Row

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
