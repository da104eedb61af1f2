"""Cut sets: points that, when all are materialized, leave independent problems above and below.

They act as barriers: no fused operator reaches across. Besides the paper's condition that no point is
reachable from both sides, the sides must share no target, and no two fused operators of different sides may
meet in one pass.

Fusion plans (SystemML), section 4.4, structural pruning, Eq. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from msgspec import Struct

from spartan_ng.optimizer.fusion.partitions import Point
from spartan_ng.optimizer.fusion.plans import PlanCosts

MOST_CUT_SETS = 8
"""Cut sets that lay out a search space."""


class CutSet(Struct, frozen=True):
    """Points that, when all are materialized, part the others into `above` and `below`; masks."""

    points: int
    above: int
    below: int

    def score(self, count: int) -> float:
        """Eq. 5: the plans left to cost, of 2**count."""
        size = 2.0 ** self.points.bit_count()
        sides = 2.0 ** self.above.bit_count() + 2.0 ** self.below.bit_count()
        return (size - 1) / size * 2.0**count + sides / size


def cut_sets(costs: PlanCosts) -> list[CutSet]:
    """The valid cut sets of a partition, in the order of their scores."""
    points = list(costs.bits)
    valid = (_cut_set(costs, mask) for mask in _candidates([p.target for p in points]))
    found = sorted((c for c in valid if c is not None), key=lambda c: c.score(len(points)))
    return found[:MOST_CUT_SETS]


def _candidates(targets: Sequence[int]) -> list[int]:
    """Masks of points that may be cut sets: all points of one target, and pairs of those.

    `targets` are the points' targets. The paper's single points are those whose target has one consumer;
    one of several points of a target leaves a way around.
    """
    composite: dict[int, int] = {}
    for i, t in enumerate(targets):
        composite[t] = composite.get(t, 0) | 1 << i
    single = list(composite.values())
    return [*single, *(a | b for a, b in combinations(single, 2))]


def _cut_set(costs: PlanCosts, mask: int) -> CutSet | None:
    """The cut set of the points in a mask, if it is valid."""
    cut = {p for p, bit in costs.bits.items() if bit & mask}
    below = _reach(costs, {p.target for p in cut}, set())
    above = _reach(costs, costs.entries - below, cut)
    if above & below or (costs.merge and costs.may_share(above, below)):
        return None
    upper = sum(bit for p, bit in costs.bits.items() if p.consumer in above and p not in cut)
    lower = sum(bit for p, bit in costs.bits.items() if p.consumer in below and p not in cut)
    return CutSet(mask, upper, lower) if upper and lower else None


def _reach(costs: PlanCosts, entries: set[int], cut: set[Point]) -> set[int]:
    """The operators that may be computed in passes that start at `entries`, without crossing a cut."""
    memo, inside = costs.memo, set(costs.partition.operators)
    reached, waiting = set(entries), list(entries)
    while waiting:
        n = waiting.pop()
        for j in memo.references[n]:
            t = memo.operators[n].edges[j].producer
            if t in inside and t not in reached and Point(n, t) not in cut:
                reached.add(t)
                waiting.append(t)
    return reached
