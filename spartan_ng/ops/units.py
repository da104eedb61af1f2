"""Where a grid cuts what is folded in the order of `ops.order`: between units, and what is handed over."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.ops.order import Span, count, subtrees


class Folded(Struct, frozen=True):
    """An axis that a reducer folds of its operand: the dimension of the domain that it follows, its size, and
    how long its units are (`ops.order`)."""

    axis: int
    dim: int
    size: int
    length: int


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


def _alone(lo: int, hi: int, number: int) -> list[Span]:
    """Each unit by itself."""
    return [(i, i + 1) for i in range(lo, hi)]
