"""Tilings that are not chosen: forced on everything for tests and comparisons, or on one array by its user.

Spartan (ATC '15), section 5.2 compares smart tiling with row, column and block everywhere.
"""

from __future__ import annotations

from functools import lru_cache

from spartan_ng.arrays import Tiling
from spartan_ng.errors import OptionError, ShapeError, WorkersChanged
from spartan_ng.optimizer.tiling.options import Options, block_grids, canonical, interned

BY_HAND = ("row", "column", "block", "duplicate")
"""The tilings that a user can ask for, for one array."""


def nearest(
    shape: tuple[int, ...], cuttable: tuple[int, ...], workers: int, kind: str, copies: bool
) -> Options:
    """The one tiling of a box of `shape` nearest to `kind`.

    "row" cuts the first axis that can be cut, "column" the last, "block" the first two (the first, where
    there is no block grid); "duplicate" needs `copies`; everything else is on one worker.
    """
    return _nearest(tuple(min(n, workers) for n in shape), cuttable, workers, kind, copies)


def exact_tiling(shape: tuple[int, ...], format: str, workers: int, kind: str | Tiling) -> Tiling:
    """The tiling of an array of `shape` that is asked for: itself, or by a user its `kind`.

    Raises
    ------
    OptionError : an unknown kind
    ShapeError : the array cannot be cut so; says why, and what would work
    WorkersChanged : the tiling is for more workers than there are
    """
    if isinstance(kind, Tiling):
        needed = kind.highest + 1
        if needed > workers:
            raise WorkersChanged(f"a tiling for {needed} workers, but {workers} are left")
        return canonical(kind)
    if kind not in BY_HAND:
        raise OptionError(f"tile_as: tiling {kind!r} is not one of {', '.join(BY_HAND)}")
    if kind == "duplicate" or workers == 1:
        return Tiling.copies(len(shape)) if kind == "duplicate" else Tiling.single(len(shape))
    axes = {"row": (0,), "column": (len(shape) - 1,), "block": (0, 1)}[kind]
    what = f"tile_as: an array of shape {shape} cannot be cut by {kind} over {workers} workers"
    if len(shape) < (1 if kind == "row" else 2):
        raise ShapeError(f"{what}: it has {len(shape)} axes; {_way_out(shape)}")
    if format == "csr" and kind != "row":
        raise ShapeError(f"{what}: a sparse array is cut by row only; use 'row' or 'duplicate'")
    short = [a for a in axes if shape[a] < 2]
    if short:
        raise ShapeError(f"{what}: its axis {short[0]} has length {shape[short[0]]}; {_way_out(shape)}")
    tiling = nearest(shape, axes, workers, kind, True).tilings[0]
    if kind == "block" and max(tiling.parts) == tiling.ntiles:
        raise ShapeError(f"{what}: a block needs at least 2 parts along each axis; {_way_out(shape)}")
    return tiling


def _way_out(shape: tuple[int, ...]) -> str:
    """The kinds that every number of workers can honour."""
    works = ["'row'"] if shape and shape[0] > 1 else []
    works += ["'column'"] if len(shape) > 1 and shape[-1] > 1 else []
    return f"use {' or '.join([*works, repr('duplicate')])}"


@lru_cache(maxsize=4096)
def _nearest(
    short: tuple[int, ...], cuttable: tuple[int, ...], workers: int, kind: str, copies: bool
) -> Options:
    axes = tuple(a for a in cuttable if short[a] > 1)
    tiling = Tiling.single(len(short))
    if kind == "duplicate" and copies:
        tiling = Tiling.copies(len(short))
    elif axes and kind in ("row", "column", "block"):
        grids = block_grids(short, axes[:2], workers) if kind == "block" else []
        axis = axes[-1] if kind == "column" else axes[0]
        line = tuple(n if a == axis else 1 for a, n in enumerate(short))
        tiling = canonical(Tiling.grid(*(grids[0] if grids else line)))
    return interned((tiling,), workers)
