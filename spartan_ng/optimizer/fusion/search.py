"""Enumerate the assignments of a partition's interesting points: MPSkipEnum, and descent.

The search space is linear: assignment j's bits say which points are materialized, the first point being the
highest bit, so that the first assignment fuses all, and those that share a prefix lie together. Two
prunings skip such areas. By cost: where a lower bound reaches the best cost so far, materializing more
cannot help. By structure: where the points of a cut set are all materialized, the points above and below it
are independent problems.

Fusion plans (SystemML), section 4.4, Algorithm 2, with its two errors corrected: the bound takes the maximum
of all reads and all computing (see `costs`), and the two sides of a cut set share no target (see `cutsets`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from spartan_ng.optimizer.fusion.cutsets import CutSet


class Costs(Protocol):
    """The costs of assignments, masks of points."""

    def cost(self, mask: int) -> int:
        """The cost of the plan."""
        ...

    def at_least(self, mask: int) -> int:
        """A lower bound for all assignments that materialize the mask and maybe more."""
        ...


class Found(Struct, frozen=True):
    """The best assignment that a search has seen.

    Parameters
    ----------
    mask : the materialized points
    cost : its cost
    costed : how many plans were costed
    exact : whether no assignment is cheaper
    """

    mask: int
    cost: int
    costed: int
    exact: bool


def skip_enumerate(
    costs: Costs, count: int, cut_sets: Sequence[CutSet] = (), most: int | None = None
) -> Found:
    """MPSkipEnum: the cheapest assignment of `count` points.

    `cut_sets` in the order of their use lay out the space. Stops after costing `most` plans with the best so
    far.
    """
    search = _Search(costs, (1 << 62) if most is None else most)
    mask = search.best(_layout(count, cut_sets), 0, cut_sets)
    return Found(mask, costs.cost(mask), search.costed, search.costed < search.most)


def _layout(count: int, cut_sets: Sequence[CutSet]) -> list[int]:
    """The points as single bits, those of the first cut set first."""
    first = [1 << i for c in cut_sets for i in range(count) if c.points >> i & 1]
    return list(dict.fromkeys([*first, *(1 << i for i in range(count))]))


class _Search:
    """One enumeration and those of its sub-problems."""

    def __init__(self, costs: Costs, most: int) -> None:
        self.costs, self.most, self.costed = costs, most, 0

    def best(self, points: list[int], fixed: int, cut_sets: Sequence[CutSet] = ()) -> int:
        """The best assignment of `points` where those in `fixed` are materialized."""
        n = len(points)
        best, upper = fixed, -1
        j = 0
        while j < 1 << n and self.costed < self.most:
            last = n - (j & -j).bit_length() + 1 if j else 0
            mask = fixed
            for i in range(last):
                if j >> (n - 1 - i) & 1:
                    mask |= points[i]
            area = 1 << (n - last)
            split = self._split(mask, points, last, cut_sets)
            if split is not None:
                above, below = split
                mask |= self.best(above, mask) | self.best(below, mask)
            elif upper >= 0 and self.costs.at_least(mask) >= upper:
                j += area
                continue
            self.costed += 1
            cost = self.costs.cost(mask)
            if upper < 0 or cost < upper:
                best, upper = mask, cost
            j += area if split is not None else 1
        return best

    @staticmethod
    def _split(
        mask: int, points: list[int], last: int, cut_sets: Sequence[CutSet]
    ) -> tuple[list[int], list[int]] | None:
        """The sub-problems among the points not yet decided, if a cut set is all materialized."""
        free = points[last:]
        if len(free) < 2:
            return None
        for cut in cut_sets:
            if cut.points & ~mask == 0:
                above = [p for p in free if p & cut.above]
                below = [p for p in free if p & cut.below]
                if above and below and len(above) + len(below) == len(free):
                    return above, below
        return None


def descend(costs: Costs, moves: Sequence[int], starts: Sequence[int], most: int) -> Found:
    """Improve the best of some assignments until no move helps, or `most` plans are costed.

    A move materializes all points of a mask, or, where they are, none of them. The moves are tried in turns.
    """
    upper, best = min((costs.cost(s), s) for s in starts)
    costed, seen, i, idle = len(starts), set(starts), 0, 0
    while idle < len(moves) and costed < most:
        move, i, idle = moves[i], (i + 1) % len(moves), idle + 1
        for mask in (best | move, best & ~move):
            if mask in seen or costs.at_least(mask) >= upper:
                continue
            seen.add(mask)
            costed += 1
            cost = costs.cost(mask)
            if cost < upper:
                best, upper, idle = mask, cost, 0
    return Found(best, upper, costed, False)
