"""Cuts that fit the data and the workers: parts of equal work, not of equal length.

The rows of a skewed sparse array are cut where its non-zeros are shared equally, and workers of unequal
power get parts in proportion. All arrays and stages of a program that have an axis of that length may be
cut in the same places, so that nothing moves between them. Part of the work of a task is what its box has
of each array; the slowest worker counts.

Spartan (ATC '15), section 3.4, "Sparse arrays". Fine-grained tiles repair unequal parts after the fact, by
moving tiles; cuts at equal work need no repair, and keep one tile a worker. Work that cannot be known before
is stolen, see `worker.stealing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.options import Cuts
from spartan_ng.optimizer.tiling.sketch import ArraySketch, Load, StageSketch

_LEAST = 4
"""Elements that an axis needs for each worker to be cut unevenly."""


def cuts_of(stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], profile: Profile) -> Cuts:
    """Lengths of axes that some array, or the workers, want cut unevenly; the largest arrays first."""
    found: dict[int, tuple[int, ...]] = {}
    for array in sorted(arrays, key=lambda a: -a.nbytes):
        for tiling in (array.pinned, *array.kept):
            for n, points in zip(array.shape, tiling.splits if tiling else (), strict=False):
                if points:
                    found.setdefault(n, points)
        if array.load is not None:
            weights = profile.weights or (1,) * profile.workers
            found.setdefault(array.shape[0], cut_points(array.shape[0], weights, array.load))
    if profile.weights:
        for n in dict.fromkeys(n for s in stages for n in s.domain):
            found.setdefault(n, cut_points(n, profile.weights))
    return {n: points for n, points in found.items() if points}


def cut_points(n: int, weights: tuple[int, ...], load: Load | None = None) -> tuple[int, ...]:
    """Where to cut an axis of length n for parts of work in proportion to `weights`; at least one element
    each. Empty where the axis is too short."""
    parts = len(weights)
    if n < _LEAST * parts:
        return ()
    targets = np.cumsum(weights)[:-1] / sum(weights)
    if load is None:
        points = np.rint(targets * n).astype(np.int64)
    else:
        goals = targets * float(load.ends[-1])
        after = np.clip(np.searchsorted(load.ends, goals), 1, n)
        nearer = np.abs(load.ends[after - 1] - goals) <= np.abs(load.ends[after] - goals)
        points = after - nearer
    # Each part has an element at least, also where one row has most of the work.
    order = np.arange(1, parts)
    points = np.maximum.accumulate(np.maximum(points, order) - order) + order
    points = np.minimum(points, n - parts + order)
    return tuple(int(p) for p in points)


def shares(
    lo: NDArray[Any],
    hi: NDArray[Any],
    active: NDArray[Any],
    domain: tuple[int, ...],
    loads: list[tuple[int, Load, float]],
    weights: tuple[int, ...],
) -> NDArray[np.float64]:
    """For each option the part of all work that its slowest worker does, in units of a mean worker.

    `lo`, `hi` bound the options' boxes by rank and dimension. `loads` are skewed arrays: the dimension that
    their rows follow, their load, and their share of the work; all else is spread evenly.
    """
    sides = [(hi[:, :, d] - lo[:, :, d]) / max(n, 1) for d, n in enumerate(domain)]
    even = np.prod(sides, axis=0) if sides else np.ones(active.shape)
    work = even * (1 - sum(share for _, _, share in loads))
    for d, load, share in loads:
        rows = (
            load.ends[hi[:, :, d].astype(np.int64)] - load.ends[lo[:, :, d].astype(np.int64)]
        ) / load.ends[-1]
        rest = [side for i, side in enumerate(sides) if i != d]
        work = work + share * rows * (np.prod(rest, axis=0) if rest else 1.0)
    work = work * active
    if weights:
        work = work * (sum(weights) / len(weights) / np.array(weights))
    out: NDArray[np.float64] = work.max(axis=1)
    return out
