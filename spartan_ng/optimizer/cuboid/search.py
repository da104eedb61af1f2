"""Find the cut (P, Q, R) of least cost within a task's memory.

Costs grow and a task's memory shrinks with each of P, Q and R. So for two of them given, the best third is
the least that fits the memory and gives every worker a task, and has a closed form: of the whole space only
one plane remains, and that is one table.

FuseME (SIGMOD '22), section 3.3, "pruning method"; ties by the least Q, then the least P.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, gcd
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.cuboid.space import COLUMNS, ROWS, SUMMED, Cut, Dims, Resources, Space

_DISTINCT = 1 << 50
"""Integers below this stay distinct as floats, times any factor."""
_SAFE = 1 << 62
"""Integers below this stay far enough from the end of 64 bits."""

Table = NDArray[Any]


class CostedCut(Struct, frozen=True):
    """A cut and what it takes."""

    cut: Cut
    cost_s: Fraction
    memory_bytes: Fraction
    network_bytes: int
    flops: int


def optimize(space: Space, cluster: Resources) -> CostedCut:
    """The best cut of a fused operator.

    Raises
    ------
    MemoryBudgetError : no cut fits; the message names the operator, the smallest memory that any cut
        needs, and the budget
    """
    cut = pruned(space, cluster)
    if cut is None:
        least = space.memory_bytes(space.blocks)
        raise MemoryBudgetError(
            f"No cuboid fits: {space.name} needs at least {ceil(least):,} bytes a task, with (P, Q, R) = "
            f"{space.blocks}; the budget is {cluster.task_bytes:,} bytes"
        )
    return costed(space, cut, cluster)


def costed(space: Space, cut: Cut, cluster: Resources) -> CostedCut:
    """What a cut takes."""
    return CostedCut(
        cut,
        space.cost_s(cut, cluster),
        space.memory_bytes(cut),
        space.network_bytes(cut),
        space.flops(cut),
    )


def pruned(space: Space, cluster: Resources) -> Cut | None:
    """The best of all cuts, from one table over two of the dimensions."""
    if space.memory_bytes(space.blocks) > cluster.task_bytes:
        return None
    # There are fewer voxels than tasks: a voxel each is as many as there can be.
    if space.voxels < cluster.tasks:
        return space.blocks
    # The longest dimension is the one with the closed form, so that the table over the others is the
    # smallest.
    free = max(range(3), key=lambda d: space.blocks[d])
    first, second = (d for d in range(3) if d != free)
    wide = _largest(space, cluster, free) >= _SAFE
    # Python's integers do not overflow; they are slow, and seldom needed.
    kind = object if wide else np.int64
    parts: list[Any] = [None, None, None]
    parts[first] = np.arange(1, space.blocks[first] + 1, dtype=kind)[:, None]
    parts[second] = np.arange(1, space.blocks[second] + 1, dtype=kind)[None, :]
    parts[free] = _least_parts(space, cluster, parts, free)
    possible = (parts[free] > 0) & (parts[free] <= space.blocks[free])
    tables = np.broadcast_arrays(*parts)
    found: list[Table] = [t[possible] for t in tables]
    return _best(space, cluster, found, wide)


def _least_parts(space: Space, cluster: Resources, parts: list[Any], free: int) -> Table:
    """The least number of parts along `free` for each pair of the others; 0 where none fits."""
    area = 1
    for d, n in enumerate(parts):
        if d != free:
            area = area * n
    shared = _replicated(((m.dims | {free}, m.nbytes) for m in space.matrices if free in m.dims), parts, free)
    fixed = _replicated(((m.dims, m.nbytes) for m in space.matrices if free not in m.dims), parts, free)
    # A task holds (shared + fixed * x) / (area * x) bytes.
    room = cluster.task_bytes * area - fixed
    fits = (room > 0) | ((room == 0) & (shared == 0))
    for_memory = -(-shared // np.where(room > 0, room, 1))
    least = np.maximum(for_memory, -(-cluster.tasks // area))
    table: Table = np.where(fits, np.maximum(least, 1), 0)
    return table


def _replicated(terms: Iterable[tuple[Dims, int]], parts: list[Any], skip: int = -1) -> Any:
    """The sum of amounts, each times the parts of the dimensions it does not follow but `skip`."""
    total: Any = 0
    for missing, amount in _collected(terms).items():
        table: Any = amount
        for d in missing - {skip}:
            table = table * parts[d]
        total = total + table
    return total


def _collected(terms: Iterable[tuple[Dims, int]]) -> dict[Dims, int]:
    """Amounts by the dimensions that are missing."""
    out: dict[Dims, int] = {}
    for dims, amount in terms:
        missing = frozenset(range(3)) - dims
        out[missing] = out.get(missing, 0) + amount
    return out


def _best(space: Space, cluster: Resources, parts: list[Table], wide: bool) -> Cut:
    """The cheapest of the cuts in a list of their parts."""
    moved = [(m.dims, m.nbytes) for m in space.matrices if not m.output]
    worked = [(o.dims, o.flops) for o in space.operators]
    network, unit_bytes = _scaled(moved, parts)
    arithmetic, unit_flops = _scaled(worked, parts)
    count = len(parts[0])
    moving = np.broadcast_to(network * (unit_bytes / cluster.network_bytes_s), count).astype(np.float64)
    working = np.broadcast_to(arithmetic * (unit_flops / cluster.flops_s), count).astype(np.float64)
    cost = np.maximum(moving, working)
    # Floats choose the cuts that may be the best; which of them is, fractions say.
    near = np.flatnonzero(cost <= cost.min() * (1 + 1e-12))
    distinct = not wide and max(np.max(network), np.max(arithmetic)) < _DISTINCT
    if distinct and _equal(moving[near], working[near]):
        return _first(parts, near)
    cuts = [_cut_at(parts, n) for n in near]
    return min(cuts, key=lambda c: (space.cost_s(c, cluster), c[1], c[0], c[2]))


def _equal(moving: Table, working: Table) -> bool:
    """Whether near costs are one and the same: all transfers, or all arithmetic, of equal size."""
    sides = ((moving, working), (working, moving))
    return any(bool(np.all(a == a[0]) and np.all(a >= b)) for a, b in sides)


def _first(parts: list[Table], chosen: Table) -> Cut:
    """Among equal costs: the least Q, then the least P, then the least R."""
    for d in (COLUMNS, ROWS, SUMMED):
        values = parts[d][chosen]
        chosen = chosen[values == values.min()]
    return _cut_at(parts, chosen[0])


def _cut_at(parts: list[Table], n: Any) -> Cut:
    p, q, r = (int(t[n]) for t in parts)
    return p, q, r


def _scaled(terms: list[tuple[Dims, int]], parts: list[Table]) -> tuple[Any, int]:
    """The replicated sum in the largest unit that keeps it whole, and the unit."""
    unit = gcd(*(amount for _, amount in terms)) or 1
    return _replicated([(dims, amount // unit) for dims, amount in terms], parts), unit


def _largest(space: Space, cluster: Resources, free: int) -> int:
    """A bound of every integer in the tables."""
    area = space.voxels // space.blocks[free]
    held = _replicated(((m.dims, m.nbytes) for m in space.matrices), list(space.blocks))
    unit = gcd(*(o.flops for o in space.operators)) or 1  # no operator works: gcd() is 0
    worked = _replicated(((o.dims, o.flops // unit) for o in space.operators), list(space.blocks))
    return max((cluster.task_bytes + 1) * area, int(held), int(worked))
