"""Which arrays lie on a cluster's workers: what tiles are called, who has them, what the driver has, too.

Ranks are those of one settled view of the membership. When a worker is lost, arrays with a tile on it are
lost, unless the driver has their value; copies on all workers live on. Arrays whose workers have other ranks
by now are put together anew, from where they lie, before they are read.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import count
from math import prod
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, Key, Tiling, box_of, box_shape, box_size, is_empty
from spartan_ng.backends.carrying import Carrier, part_of_array
from spartan_ng.backends.held import Held, Tiles
from spartan_ng.backends.link import MasterLink
from spartan_ng.errors import WorkerLost
from spartan_ng.plan.rows import Slot
from spartan_ng.sources import SourceTile
from spartan_ng.wire.messages import Member, Members

WITH_JOB_BYTES = 4 * 1024
"""Arrays of up to this size go to the workers with the first job that reads them."""

_LOOK_S = 0.02

_LOST_WITH = "the connection to the master"


class Holdings:
    """The arrays of `backend` on the workers behind `link`."""

    def __init__(self, link: MasterLink, backend: object) -> None:
        self.settled = link.members
        """The view of the membership that ranks are of."""
        self._link = link
        self._carrier = Carrier(link)
        self._backend = weakref.ref(backend)  # it holds us: no circles, which wait for the collector
        self._arrays: dict[int, Held] = {}
        """By the array's serial number."""
        self._numbers = count(1)
        self._numbering = threading.Lock()
        self._left: dict[str, set[int]] = {}
        """By job: the slots that somebody needs of what a job under which a worker died has left."""
        self._making: set[int] = set()
        """Arrays whose tiles are on their way to the workers, or are being computed there."""
        self._lock = threading.RLock()
        link.holding, link.let_go, link.hand_over = self._holding, self._let_all_go, self._take_over

    def __getitem__(self, ref: ArrayRef) -> Held:
        """What is noted of an array that is here; KeyError where it is not."""
        return self._arrays[ref.serial]

    def is_idle(self) -> bool:
        """Whether the workers have nothing of ours."""
        return not self._arrays

    def get(self, ref: ArrayRef) -> Held | None:
        """The tiles of `ref`, None where only the driver has it; WorkerLost where they are gone."""
        held = self._arrays.get(ref.serial) if ref.backend is self._backend() else None
        if held is not None and held.lost is not None and (ref.value is not None or ref.source is not None):
            self._let_go(ref, held)
            return None
        if held is not None and held.lost is not None:
            raise WorkerLost(f"{held.lost} died and took tiles of an array of shape {ref.shape} with it")
        if held is None and ref.value is None and ref.source is None:
            raise WorkerLost(f"an array of shape {ref.shape} has no tiles on this cluster")
        return held

    def is_lost(self, ref: ArrayRef) -> bool:
        """Whether a worker that is gone took tiles of the array with it, or they are on other ranks."""
        held = self._arrays.get(ref.serial)
        return held is not None and (held.lost is not None or held.is_moved)

    def is_moved(self, ref: ArrayRef) -> bool:
        """Whether its tiles are all there, on other ranks."""
        held = self._arrays.get(ref.serial)
        return held is not None and held.lost is None and held.is_moved

    def spare(self, ref: ArrayRef) -> None:
        """Note that an array is a copy of another."""
        self._arrays[ref.serial].is_spare = True

    def living(self) -> list[ArrayRef]:
        """The arrays that somebody has."""
        return [ref for held in list(self._arrays.values()) if (ref := held.ref()) is not None]

    def tiles_of(self, ref: ArrayRef) -> dict[Box, ArrayRef | None]:
        """The tiles of a dense array that is lost, each as an array of its own, None for one that is gone.

        They are the array's own tiles, and stay when it is given others. None at all are given where its
        ranks have no boxes of their own.
        """
        with self._lock:
            held = self._arrays.get(ref.serial)
            cut = ref.tiling
            if held is None or cut is None or cut.duplicate or held.lost == _LOST_WITH:
                return {}
            if ref.format != "dense":
                return {}
            found: dict[Box, ArrayRef | None] = {}
            for rank, member in enumerate(held.members):
                box = cut.box_on(ref.shape, rank)
                if box is not None and not is_empty(box):
                    is_made = held.there is None or rank in held.there
                    is_there = is_made and member in self.settled.members
                    found[box] = self._tile(ref, held, rank, box) if is_there else None
            return found

    def sparse_left(self, refs: Sequence[ArrayRef]) -> ArrayRef | None:
        """A CSR array of the tiles that are left of equal ones, on the driver; None where some are gone.

        WorkerLost where one goes meanwhile.
        """
        first = refs[0]
        parts: dict[Box, Future[Any]] = {}
        for ref in refs:
            held, cut = self._arrays.get(ref.serial), ref.tiling
            if held is None or cut is None or cut.duplicate or held.lost == _LOST_WITH:
                continue
            for rank, member in enumerate(held.members):
                box = cut.box_on(ref.shape, rank)
                if box is None or box in parts or is_empty(box) or member not in self.settled.members:
                    continue
                region = tuple((0, hi - lo, 1) for lo, hi in box)
                parts[box] = self._link.peers.fetch(member.name, held.key, region, member.since)
        if sum(map(box_size, parts)) < prod(first.shape):
            return None
        value = self._carrier.stacked([*parts.items()], box_of(first.shape), first.dtype)
        return ArrayRef(first.shape, first.dtype, value=value, format="csr", nnz=int(value.nnz))

    def _tile(self, ref: ArrayRef, held: Held, rank: int, box: Box) -> ArrayRef:
        """One tile of an array as an array."""
        backend = self._backend()
        assert backend is not None, "arrays are asked for by a backend that is there"
        now = self.settled.members
        there = Tiling.single(len(box), now.index(held.members[rank]))
        tile = ArrayRef(box_shape(box), ref.dtype, tiling=there)
        self._arrays[tile.serial] = Held(weakref.ref(tile), held.tiles, now, is_spare=True)
        tile.on_release(backend, self._forget)
        return tile

    def _forget(self, serial: int) -> None:
        """An array is gone. For finalizers: takes no lock."""
        self._arrays.pop(serial, None)

    def keep(
        self,
        ref: ArrayRef,
        key: Key,
        members: tuple[Member, ...],
        value: np.ndarray[Any, Any] | SourceTile | None = None,
        drops: int | None = None,
    ) -> None:
        """Note what the workers have; its tiles were sent or made after so many `drops`."""
        tiles = Tiles(key, self._give_back)
        held = self._arrays[ref.serial] = Held(weakref.ref(ref), tiles, members, value)
        if drops not in (None, self._link.drops):  # only now: what is noted before a drop hears of it
            held.lost = _LOST_WITH
        backend = self._backend()
        assert backend is not None, "arrays are made by a backend that is there"
        if ref.backend is not backend:
            ref.on_release(backend, self._forget)

    def left_of(
        self,
        job: str,
        slots: Sequence[tuple[Slot, Key]],
        members: tuple[Member, ...],
        told: Sequence[frozenset[Key]],
    ) -> dict[int, ArrayRef]:
        """The dense arrays of a job, given as they were to be, of which ranks have `told` that they have
        tiles; by their numbers. They keep what is left of it."""
        found: dict[int, ArrayRef] = {}
        for number, (slot, key) in enumerate(slots):
            there = frozenset(rank for rank, keys in enumerate(told) if key in keys)
            if not there or slot.format != "dense":
                continue
            tiling, users = slot.tiling, there
            if tiling.duplicate:
                tiling = Tiling.single(len(slot.shape), min(there))
            else:
                users = frozenset(r for r in range(len(members)) if tiling.box_on(slot.shape, r) is not None)
            ref = found[number] = ArrayRef(slot.shape, slot.dtype, tiling=tiling)
            self.keep(ref, key, members)
            held = self._arrays[ref.serial]
            held.there = there
            held.lost = None if users <= there else "a worker whose job ended"
        scratch = {key[1] for _, key in slots if key[0] == job}
        self._left[job] = scratch & {self[ref].key[1] for ref in found.values()}
        self._give_back((job, -1))
        return found

    def _give_back(self, key: Key) -> None:
        """Let the workers drop tiles: an array's, or with the last that is needed of a job what is left of
        it. For finalizers: takes no lock."""
        owner, number = key
        if owner == self._link.name:
            self._link.release(number)
            return
        left = self._left.get(owner, set())
        left.discard(number)
        if not left and self._left.pop(owner, None) is not None:
            self._link.end(owner)

    def restore(self, ref: ArrayRef, by: ArrayRef) -> None:
        """Let an array that was lost have the tiles of an equal one."""
        with self._lock:
            self._arrays.pop(ref.serial, None)
            held = self._arrays.get(by.serial)
            ref.also = ()
            ref.value, ref.nnz, ref.tiling = by.value, by.nnz, by.tiling
            if held is None:
                ref.backend = ref.tiling = None
            else:
                self._arrays[ref.serial] = replace(held, ref=weakref.ref(ref), is_spare=False)
                del self._arrays[by.serial]

    @contextmanager
    def new_keys(self, count: int) -> Iterator[list[Key]]:
        """Keys for arrays that are made meanwhile."""
        with self._numbering:
            numbers = [next(self._numbers) for _ in range(count)]
            self._making.update(numbers)
        try:
            yield [(self._link.name, number) for number in numbers]
        finally:
            self._making.difference_update(numbers)

    # --- to the workers and back

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Put a driver array's tiles on the workers as `tiling` says; records it in `ref`.

        Raises MemoryBudgetError where a worker has no room, WorkerLost where one is gone.
        """
        members = self.settled.members
        if tiling.highest >= len(members):
            raise WorkerLost(f"a tiling for {tiling.highest + 1} workers, but {len(members)} are left")
        if ref.source is not None and tiling.duplicate:
            ref.tiling = tiling
            with self.new_keys(1) as (key,):
                self.keep(ref, key, members, SourceTile(ref.source))
            return
        if (
            isinstance(ref.value, np.ndarray)
            and ref.value.nbytes <= WITH_JOB_BYTES
            and tiling.ntiles <= len(members)
        ):
            ref.tiling = tiling
            with self.new_keys(1) as (key,):
                self.keep(ref, key, members, ref.value)
            return
        self._link.flush()
        drops = self._link.drops
        with self.new_keys(1) as (key,):
            self._carrier.put(ref, tiling, key, members)
            ref.tiling = tiling
            self.keep(ref, key, members, drops=drops)

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box` as a NumPy (or CSR) array; WorkerLost where they are gone."""
        held = self.get(ref)
        if held is None:
            return part_of_array(ref.value, box)
        if held.value is not None:
            return part_of_array(held.value, box)
        return self._gather(ref, box, held)

    def _gather(self, ref: ArrayRef, box: Box, held: Held) -> Any:
        return self._carrier.get(ref, box, held.key, held.members, lambda: held.lost is None)

    # --- leaving

    def retire(self) -> None:
        """Leave to the driver what it has, too."""
        with self._lock:
            for ref, held in self._ours():
                if isinstance(held.value, np.ndarray):
                    ref.value = held.value
                if ref.value is not None or ref.source is not None:
                    self._let_go(ref, held)

    def bring_home(self) -> None:
        """Have the value of every array in this process, and none on the workers."""
        with self._lock:
            for ref, held in self._ours():
                if held.lost is None and not held.is_spare:
                    if isinstance(held.value, np.ndarray):
                        ref.value = held.value
                    if ref.value is None and ref.source is None:
                        ref.value = self._gather(ref, box_of(ref.shape), held)
                    ref.also = ()
                    self._let_go(ref, held)

    def lost(self) -> list[ArrayRef]:
        """The arrays that live, and of which nobody has some tiles any more."""
        with self._lock:
            ours = [ref for ref, held in self._ours() if held.lost is not None and not held.is_spare]
            return [ref for ref in ours if ref.value is None and ref.source is None]

    def _ours(self) -> Iterator[tuple[ArrayRef, Held]]:
        """The arrays that live, and have not gone to another backend."""
        for ref, held in self._living():
            if ref.backend is self._backend():
                yield ref, held

    def _living(self) -> Iterator[tuple[ArrayRef, Held]]:
        """The arrays that live now, one by one: whoever has what is noted of one keeps its tiles."""
        for serial in list(self._arrays):
            held = self._arrays.get(serial)
            ref = None if held is None else held.ref()
            if held is not None and ref is not None:
                yield ref, held

    def _let_go(self, ref: ArrayRef, held: Held) -> None:
        """Leave an array to the driver, which has its value."""
        del self._arrays[ref.serial]
        ref.backend = ref.tiling = None

    # --- what the link's threads ask

    def _take_over(self, members: Members) -> None:
        """Have here what lies on workers that leave, once it is complete; on a thread of its own."""
        making = set(self._making)
        while making & self._making:
            self._link.check()
            time.sleep(_LOOK_S)
        for held in list(self._arrays.values()):
            with self._lock:
                ref = held.ref()
                if ref is None or ref.tiling is None or held.lost is not None:
                    continue
                if held.value is not None or ref.value is not None or ref.source is not None or held.is_spare:
                    continue
                users = _users(ref, held)
                stay = [held.members[r] in members.members for r in users]
                if not (any(stay) if ref.tiling.duplicate else all(stay)):
                    ref.value = self._gather(ref, box_of(ref.shape), held)

    def _holding(self) -> tuple[list[int], int]:
        """What is ours on the workers, or will be, up to a number; none of the locks that others hold for
        long, since the link's thread asks."""
        with self._numbering:
            last = next(self._numbers)
            making = list(self._making)  # first: what is made meanwhile is among those that are there
        every = list(self._arrays.values())
        for held in every:
            if held.key[0] in self._left:  # of jobs that were, nothing is left
                held.lost = _LOST_WITH
        return making + [held.key[1] for held in every if held.key[0] == self._link.name], last

    def _let_all_go(self) -> None:
        """The workers have nothing of ours any more; no lock, since the link's thread says so."""
        for held in list(self._arrays.values()):
            ref = held.ref()
            if ref is not None:
                ref.also = ()
                if isinstance(held.value, np.ndarray):
                    ref.value = held.value
            held.lost = _LOST_WITH

    # --- membership

    def settle(self) -> None:
        """Take notice of who came and went; see the module's text for what becomes of the arrays."""
        with self._lock:
            self.settled = self._link.members
            for ref, held in self._living():
                if held.lost is None and held.members != self.settled.members:
                    ref.also = ()
                    self._settle(ref, held)

    def _settle(self, ref: ArrayRef, held: Held) -> None:
        assert ref.tiling is not None, "an array on workers has a tiling"
        if ref.source is not None:
            self._let_go(ref, held)  # there is nothing to bring: whoever comes next reads it
            return
        if isinstance(held.value, np.ndarray):
            ref.value = held.value
        now = self.settled.members
        users = _users(ref, held)
        held.is_moved = False
        if all(r < len(now) and held.members[r] == now[r] for r in users) and not (
            ref.tiling.duplicate and len(now) > len(held.members)
        ):
            return
        there = (*now, *self.settled.leaving)  # who stays comes first
        survivors = sorted((held.members[r] for r in users if held.members[r] in there), key=there.index)
        if ref.tiling.duplicate and survivors:
            if now and now[0] in survivors:
                ref.tiling = Tiling.single(len(ref.shape))  # one of the copies: the others are not read
                held.members = now
                return
            held.members = (survivors[0],)
        elif len(survivors) < len(users):
            gone = next(held.members[r] for r in users if held.members[r] not in there)
            if ref.value is None:
                held.lost = f"worker {held.members.index(gone)} ({gone.label})"
                return
        if held.is_spare:
            held.lost = "the order of the workers"
            return
        is_apart = ref.format == "dense" and not ref.tiling.duplicate
        if ref.value is None and is_apart and all(member in now for member in survivors):
            held.is_moved = True
            return
        if ref.value is None:
            ref.value = self._gather(ref, box_of(ref.shape), held)
        self._let_go(ref, held)


def _users(ref: ArrayRef, held: Held) -> list[int]:
    """The ranks that have a tile."""
    assert ref.tiling is not None, "an array on workers has a tiling"
    return [r for r in range(len(held.members)) if ref.tiling.box_on(ref.shape, r) is not None]
