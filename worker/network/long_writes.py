"""Tiles from the driver that come part by part: what is too long for one message, and what the worker has no
room for, which would lie in the memory of both before it went to the disk.

The worker makes room with the first part that comes, on disk if need be, and has a tile with the last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Key, box_slices
from spartan_ng.memory import copied_bytes
from spartan_ng.scratch import put
from spartan_ng.system.segments import host_identity
from spartan_ng.wire.messages import Member
from spartan_ng.wire.transfers import Put
from spartan_ng.wire.values import unpack
from spartan_ng.worker.memory.store import Store
from spartan_ng.worker.network import long_reads


def comes_in_parts(tile: Any, member: Member) -> bool:
    """Whether a tile goes to a worker in parts.

    One on this host takes over memory that has a copy, where that is little of what it has.
    """
    if not isinstance(tile, np.ndarray) or tile.dtype.hasobject or tile.nbytes <= long_reads.LONG_BYTES:
        return False
    if member.host == host_identity() != "":
        return bool(member.memory_bytes) and tile.nbytes > copied_bytes(member.memory_bytes)
    return True


class _Arriving:
    """A tile of which some parts are there."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.lock = threading.Lock()
        self.whole: np.ndarray[Any, Any] | None = None
        self.left = prod(shape)
        """Elements that are still to come."""


class Arrivals:
    """The tiles that are on their way to a store. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._arriving: dict[tuple[str, Key], _Arriving] = {}
        self._lock = threading.Lock()

    def take(self, peer: str, message: Put) -> Callable[[], Any]:
        """Write a part of a tile of `peer` where it belongs; what then completes it, or does nothing."""
        at = peer, message.key
        with self._lock:
            arriving = self._arriving.setdefault(at, _Arriving(message.shape))
        try:
            is_last = self._fill(arriving, message)
        except BaseException:
            self.give_up(*at)
            raise
        if not is_last:
            return _nothing
        self.give_up(*at)
        return partial(self._store.put, message.key, arriving.whole)

    def give_up(self, peer: str, key: Key) -> None:
        """Forget what has come of a tile."""
        with self._lock:
            self._arriving.pop((peer, key), None)

    def forget(self, peer: str) -> None:
        """Forget what has come from a peer."""
        with self._lock:
            for at in [at for at in self._arriving if at[0] == peer]:
                del self._arriving[at]

    def _fill(self, arriving: _Arriving, message: Put) -> bool:
        """Whether this was the last part."""
        part = unpack(message.data)
        with arriving.lock:
            if arriving.whole is None:
                arriving.whole = self._store.allocate(message.shape, part.dtype)
        place = arriving.whole[box_slices(message.box)]
        if place.shape != part.shape or place.dtype != part.dtype:
            raise ValueError(f"{part.dtype} of shape {part.shape} came for a part of {place.shape}")
        put(place, part)
        with arriving.lock:
            arriving.left -= part.size
            return arriving.left == 0


def _nothing() -> None:
    """What is to be done behind a part that is not the last."""
