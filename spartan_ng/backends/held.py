"""What is noted of an array with tiles on a cluster's workers, and how long these stay."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import ArrayRef, Key
from spartan_ng.sources import SourceTile
from spartan_ng.wire.messages import Member


class Tiles:
    """Tiles on the workers, which may drop them when nobody has this any more: neither an array nor a job
    that reads them."""

    __slots__ = ("_give_back", "key")

    def __init__(self, key: Key, give_back: Callable[[Key], None]) -> None:
        self.key = key
        """What they are called; never used twice, since news of a release may come after a new upload."""
        self._give_back = give_back

    def __del__(self) -> None:
        self._give_back(self.key)


class Held(Struct):
    """An array with tiles on the workers."""

    ref: weakref.ref[ArrayRef]
    tiles: Tiles
    members: tuple[Member, ...]
    """By rank, at the time when the tiles were made."""
    value: np.ndarray[Any, Any] | SourceTile | None = None
    """A small array's value, or a source, that is still to go to the workers, with the first job that reads
    it."""
    lost: str | None = None
    """Which worker took tiles with it."""
    is_spare: bool = False
    """Whether its tiles are copies, or those of another array: nobody brings it home."""
    is_moved: bool = False
    """Whether its workers, who are all there, have other ranks by now."""
    there: frozenset[int] | None = None
    """The ranks that have their tile, where others have not: what a job has left; None for all."""

    @property
    def key(self) -> Key:
        """What its tiles are called."""
        return self.tiles.key
