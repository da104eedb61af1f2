"""The oracle of cuboids: every cut there is, one by one."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import product

from spartan_ng.optimizer.cuboid.space import Cut, Resources, Space


def exhaustive(space: Space, cluster: Resources) -> Cut | None:
    """The best of all cuts, one by one: the oracle."""
    best: tuple[tuple[Fraction, int, int, int], Cut] | None = None
    for cut in _allowed(space, cluster):
        if space.memory_bytes(cut) <= cluster.task_bytes:
            key = (space.cost_s(cut, cluster), cut[1], cut[0], cut[2])
            if best is None or key < best[0]:
                best = (key, cut)
    return None if best is None else best[1]


def _allowed(space: Space, cluster: Resources) -> Iterable[Cut]:
    if space.voxels < cluster.tasks:
        return (space.blocks,)
    p, q, r = (range(1, n + 1) for n in space.blocks)
    return ((x, y, z) for x, y, z in product(p, q, r) if x * y * z >= cluster.tasks)
