"""A tiling forced on everything: for tests, and to compare with what the optimizer chooses.

Spartan (ATC '15), section 5.2 compares smart tiling with row, column and block everywhere.
"""

from __future__ import annotations

from functools import lru_cache

from spartan_ng.arrays import Tiling
from spartan_ng.optimizer.tiling.options import Options, blocks, canonical, interned

KINDS = ("row", "column", "block", "duplicate", "single")
"""The tilings that can be forced."""


def nearest(
    shape: tuple[int, ...], cuttable: tuple[int, ...], workers: int, kind: str, copies: bool
) -> Options:
    """The one tiling of a box of `shape` nearest to `kind`.

    "row" cuts the first axis that can be cut, "column" the last, "block" the first two (the first, where
    there is no block grid); "duplicate" needs `copies`; everything else is on one worker.
    """
    return _nearest(tuple(min(n, workers) for n in shape), cuttable, workers, kind, copies)


@lru_cache(maxsize=4096)
def _nearest(
    short: tuple[int, ...], cuttable: tuple[int, ...], workers: int, kind: str, copies: bool
) -> Options:
    axes = tuple(a for a in cuttable if short[a] > 1)
    tiling = Tiling.single(len(short))
    if kind == "duplicate" and copies:
        tiling = Tiling.copies(len(short))
    elif axes and kind in ("row", "column", "block"):
        grids = blocks(short, axes[:2], workers) if kind == "block" else []
        axis = axes[-1] if kind == "column" else axes[0]
        line = tuple(n if a == axis else 1 for a, n in enumerate(short))
        tiling = canonical(Tiling.grid(*(grids[0] if grids else line)))
    return interned((tiling,), workers)
