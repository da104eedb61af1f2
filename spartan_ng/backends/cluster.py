"""A cluster as a backend: plans go through the master, tiles straight to and from the workers.

Ranks are those of one settled view of the membership: `workers` (asked before planning) takes notice of
who came and went, and `run` refuses a plan that was made for ranks which have changed since. New workers
never disturb what runs. When a worker is lost, arrays with a tile on it are lost, unless the driver has their
value; arrays that only changed ranks are brought to the driver; copies on all workers live on.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from spartan_ng.arrays import ArrayRef, Box, Tiling, box_of, box_shape, intersect
from spartan_ng.arrays.sparse import csr_array, stacked
from spartan_ng.backends.link import JobEvents, Link
from spartan_ng.backends.protocol import Progress, RunStats, StageStats
from spartan_ng.callers import user_place
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import ConnectionFailed, WorkerLost, WorkersChanged, WorkerUnreachable
from spartan_ng.events import record
from spartan_ng.kernels.formats import dense
from spartan_ng.plan.plan import Plan
from spartan_ng.sources import SourceTile
from spartan_ng.wire.access import Access, is_local
from spartan_ng.wire.codec import NOTHING
from spartan_ng.wire.failures import rebuild
from spartan_ng.wire.keys import Keys
from spartan_ng.wire.messages import JobDone, JobFailed, Key, Member, Members, Printed, Status, Submit
from spartan_ng.wire.messages import Progress as ProgressMessage
from spartan_ng.wire.values import pack, unpack

INLINE_BYTES = 64 * 1024
"""Results of up to this size in all come back with the news that the job is done."""

WITH_JOB_BYTES = 4 * 1024
"""Arrays of up to this size go to the workers with the first job that reads them."""

_CANCEL_S = 0.5
"""How long the master has to confirm that an interrupted job is given up."""

_CHECK_S = 1.0
_LOOK_S = 0.02

_LOST_WITH = "the connection to the master"


@dataclass(slots=True)
class _Held:
    """An array with tiles on the workers."""

    ref: weakref.ref[ArrayRef]
    key: Key
    """What its tiles are called; never used twice, since news of a release may come after a new upload."""
    members: tuple[Member, ...]
    """By rank, at the time when the tiles were made."""
    value: np.ndarray[Any, Any] | SourceTile | None = None
    """A small array's value, or a source, that is still to go to the workers, with the first job that reads
    it."""
    lost: str | None = None
    """Which worker took tiles with it."""


class ClusterBackend:
    """A connection to a cluster; make it with `connect`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._settled = link.members
        self._arrays: dict[int, _Held] = {}
        """By the array's serial number."""
        self._numbers = count(1)
        self._numbering = threading.Lock()
        self._making: set[int] = set()
        """Arrays whose tiles are on their way to the workers, or are being computed there."""
        self._lock = threading.RLock()
        link.holding, link.let_go, link.hand_over = self._holding, self._let_all_go, self._take_over
        self.recover: Callable[[Sequence[ArrayRef]], bool] | None = None
        """See `Losing`."""
        atexit.register(self.close)

    @classmethod
    def connect(
        cls,
        address: str,
        keys: Keys | str | os.PathLike[str] | None = None,
        timeout_s: float = 30.0,
        workers: int = 1,
        insecure: bool = False,
    ) -> ClusterBackend:
        """Connect to the master at `address`, and wait for that many workers.

        `keys` is the directory of CurveZMQ keys; without them, an address is a socket in a folder of this
        user's own, or `insecure` must say that anybody may be there. Raises MasterUnreachable,
        AuthenticationFailed or VersionMismatch, all ConnectionFailed, within about `timeout_s`.
        """
        found = keys if keys is None or isinstance(keys, Keys) else Keys.load(keys, "client")
        link = Link(address, Access(found, insecure), timeout_s)
        link.open()
        try:
            if not link.wait_for_workers(workers, timeout_s):
                raise ConnectionFailed(
                    f"the master at {address} has {len(link.members.members)} workers after {timeout_s:g} s, "
                    f"{workers} are needed; start them with `spartan-ng worker --master {address}`"
                )
        except BaseException:
            link.close()
            raise
        return cls(link)

    def wait_for_workers(self, least: int, timeout_s: float) -> bool:
        """Wait until that many workers are there, and take notice of them; whether they are."""
        enough = self._link.wait_for_workers(least, timeout_s)
        with self._lock:
            self._settle()
        return enough

    @property
    def workers(self) -> int:
        """Number of workers that plans are made for, as of now.

        Where there are none, it waits for those that are being started again: WorkerLost where none comes.
        """
        self._link.wait_for_master()
        if self._link.members is not self._settled:
            with self._lock:
                self._settle()
        timeout_s = config.timeout_s
        deadline = time.monotonic() + timeout_s
        while not (count := len(self._settled.members)):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self.wait_for_workers(1, left_s):
                raise WorkerLost(
                    f"the cluster at {self._link.address} has no workers left, and none in {timeout_s:g} s"
                )
        return count

    @property
    def profile(self) -> Profile:
        """Assumed rates, the memory of the smallest of the workers that plans are made for, and what share of
        the work each can take: by its threads, and by its memory where that is less. One worker is assumed
        where there are none yet."""
        members = self._settled.members
        memory = min((m.memory_bytes for m in members if m.memory_bytes), default=0)
        usual = Profile(workers=max(1, len(members)), weights=_weights(members))
        return replace(usual, memory_bytes=memory, limited=True) if memory else usual

    def page(self) -> str:
        """The link of the cluster's page; ConnectionFailed where it has none."""
        return self._link.page()

    def status(self) -> Status:
        """Who is there and what runs."""
        return self._link.status()

    @property
    def is_local(self) -> bool:
        """Whether the workers are on this machine, and see its files."""
        return is_local(self._link.address)

    def reads(self, ref: ArrayRef) -> bool:
        """What the driver has mapped, workers on this machine map, too; others may not see the file."""
        return ref.value is None or (self.is_local and ref.source.is_current())

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Put a driver array's tiles on the workers as `tiling` says; records it in `ref`.

        Raises MemoryBudgetError where a worker has no room, WorkerLost where one is gone.
        """
        members = self._settled.members
        highest = sum((p - 1) * s for p, s in zip(tiling.parts, tiling.strides, strict=True))
        if highest >= len(members):
            raise WorkerLost(f"a tiling for {highest + 1} workers, but {len(members)} are left")
        if ref.source is not None and tiling.duplicate:
            ref.tiling = tiling
            with self._new_keys(1) as (key,):
                self._keep(ref, key, members, SourceTile(ref.source))
            return
        if (
            isinstance(ref.value, np.ndarray)
            and ref.value.nbytes <= WITH_JOB_BYTES
            and tiling.ntiles <= len(members)
        ):
            ref.tiling = tiling
            with self._new_keys(1) as (key,):
                self._keep(ref, key, members, ref.value)
            return
        self._link.flush()
        drops = self._link.drops
        with self._new_keys(1) as (key,):
            self._put(ref, tiling, key, members)
            ref.tiling = tiling
            self._keep(ref, key, members, drops=drops)

    def _put(self, ref: ArrayRef, tiling: Tiling, key: Key, members: tuple[Member, ...]) -> None:
        futures = []
        try:
            with record.span("upload", str(ref.shape)):
                for rank, member in enumerate(members):
                    box = tiling.box_on(ref.shape, rank)
                    if box is not None:
                        tile = _slice(ref.value, box)
                        futures.append(self._link.peers.put(member.name, key, tile, member.since))
                for future in futures:
                    self._wait(future)
        except BaseException:
            self._withdraw(key, futures)
            raise

    def run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None = None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run `plan` on the cluster; see `Backend.run`."""
        start = time.perf_counter()
        drops = self._link.drops
        self._check_ranks(plan.workers)
        if record.is_on:
            self._link.tune()
        small = []
        for i, (number, ref) in enumerate(zip(plan.inputs, inputs, strict=True)):
            if self._held(ref) is None:
                self.upload(ref, plan.slots[number].tiling)
            value = self._arrays[ref.serial].value
            if value is not None:
                small.append((i, value))
        with self._new_keys(len(plan.outputs)) as keys:
            return self._run(plan, inputs, keys, small, progress, start, drops)

    def _run(
        self,
        plan: Plan,
        inputs: Sequence[ArrayRef],
        keys: list[Key],
        small: list[tuple[int, Any]],
        progress: Progress | None,
        start: float,
        drops: int,
    ) -> tuple[list[ArrayRef], RunStats]:
        slots = [plan.slots[n] for n in plan.outputs]
        results = [ArrayRef(s.shape, s.dtype, format=s.format, tiling=s.tiling) for s in slots]
        inline = sum(s.nbytes for s in slots) <= INLINE_BYTES and all(s.format == "dense" for s in slots)
        members = self._settled.members[: plan.workers]
        submit = Submit(
            self._link.new_job(),
            plan.key,
            self._settled.epoch,
            plan.workers,
            plan.ranks,
            tuple(self._arrays[r.serial].key for r in inputs),
            tuple(keys),
            inline,
            progress is not None,
            timeout_s=self._link.peers.timeout_s,
            deadline_s=config.job_timeout_s or 0.0,
            observed=record.is_on,
            line=user_place() if self._link.is_watched else "",
            values=pack(tuple(small)) if small else NOTHING,
        )
        try:
            begin = partial(self._link.submit, plan, submit, drops)
            done = self._await(submit.job, begin, len(plan.stages), progress)
        except BaseException:
            for _, number in keys:  # of parts that were done when the master was lost
                self._link.release(number)
            raise
        for i, _ in small:
            self._arrays[inputs[i].serial].value = None
        for ref, key, nnz in zip(results, keys, done.nnz, strict=True):
            if ref.format == "csr":
                ref.nnz = nnz
            self._keep(ref, key, members, drops=drops)
        if inline:
            _fill_values(results, done)
        stages = [StageStats(*costs) for costs in done.stats]
        return results, RunStats(time.perf_counter() - start, stages)

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box` as a NumPy (or CSR) array on the driver."""
        for left in reversed(range(config.retries + 1)):
            try:
                with record.span("gather", str(box_shape(box))):
                    return self._gathered(ref, box)
            except WorkerUnreachable:  # it lives, and nobody else has its tiles
                raise
            except WorkerLost:
                if not left or self.recover is None or not self.recover([ref]):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def is_lost(self, ref: ArrayRef) -> bool:
        """Whether a worker that is gone took tiles of the array with it."""
        held = self._arrays.get(ref.serial)
        return held is not None and held.lost is not None

    def restore(self, ref: ArrayRef, by: ArrayRef) -> None:
        """Let an array that was lost have the tiles of an equal one."""
        with self._lock:
            before = self._arrays.pop(ref.serial, None)
            if before is not None:
                self._link.release(before.key[1])
            ref.also = ()
            held = self._arrays.get(by.serial)
            ref.value, ref.nnz, ref.tiling = by.value, by.nnz, by.tiling
            if held is None:
                ref.backend = ref.tiling = None
            else:
                self._arrays[ref.serial] = replace(held, ref=weakref.ref(ref))
                del self._arrays[by.serial]

    def take_notice(self) -> None:
        """Take notice of who came and went."""
        with self._lock:
            self._settle()

    def _gathered(self, ref: ArrayRef, box: Box) -> Any:
        held = self._held(ref)
        if held is None:
            return _slice(ref.value, box)
        if held.value is not None:
            return _slice(held.value, box)
        return self._gather(ref, box, held)

    def close(self) -> None:
        """Leave the cluster, which drops all our arrays."""
        atexit.unregister(self.close)
        self._link.close()
        self._link.forget()
        self.recover = None

    def retire(self) -> None:
        """Close when the last array is gone that only our workers have: now, where there is none."""
        with self._lock:
            for held in list(self._arrays.values()):
                ref = held.ref()
                if ref is not None and ref.backend is self:
                    if isinstance(held.value, np.ndarray):
                        ref.value = held.value
                    if ref.value is not None or ref.source is not None:
                        self._let_go(ref, held)
        if self._is_idle():
            self.close()
        else:
            self._link.retire(self._is_idle, self.close)

    def bring_home(self) -> None:
        """Have the value of every array in this process, and none on the workers."""
        with self._lock:
            for held in list(self._arrays.values()):
                ref = held.ref()
                if ref is not None and ref.backend is self and held.lost is None:
                    if isinstance(held.value, np.ndarray):
                        ref.value = held.value
                    if ref.value is None and ref.source is None:
                        ref.value = self._gather(ref, box_of(ref.shape), held)
                    ref.also = ()
                    self._let_go(ref, held)

    def _is_idle(self) -> bool:
        return not self._arrays

    # --- arrays

    @contextmanager
    def _new_keys(self, count: int) -> Iterator[list[Key]]:
        """Keys for arrays that are made meanwhile."""
        with self._numbering:
            numbers = [next(self._numbers) for _ in range(count)]
            self._making.update(numbers)
        try:
            yield [(self._link.name, number) for number in numbers]
        finally:
            self._making.difference_update(numbers)

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
                if held.value is not None or ref.value is not None or ref.source is not None:
                    continue
                users = [r for r in range(len(held.members)) if ref.tiling.box_on(ref.shape, r) is not None]
                stay = [held.members[r] in members.members for r in users]
                if not (any(stay) if ref.tiling.duplicate else all(stay)):
                    ref.value = self._gather(ref, box_of(ref.shape), held)

    def _holding(self) -> tuple[list[int], int]:
        """What is ours on the workers, or will be, up to a number; none of the locks that others hold for
        long, since the link's thread asks."""
        with self._numbering:
            last = next(self._numbers)
            making = list(self._making)  # first: what is made meanwhile is among those that are there
        return making + [held.key[1] for held in list(self._arrays.values())], last

    def _let_all_go(self) -> None:
        """The workers have nothing of ours any more; no lock, since the link's thread says so."""
        for held in list(self._arrays.values()):
            ref = held.ref()
            if ref is not None:
                ref.also = ()
                if isinstance(held.value, np.ndarray):
                    ref.value = held.value
            held.lost = _LOST_WITH

    def _keep(
        self,
        ref: ArrayRef,
        key: Key,
        members: tuple[Member, ...],
        value: np.ndarray[Any, Any] | SourceTile | None = None,
        drops: int | None = None,
    ) -> None:
        """Note what the workers have; its tiles were sent or made after so many `drops`."""
        held = self._arrays[ref.serial] = _Held(weakref.ref(ref), key, members, value)
        if drops not in (None, self._link.drops):  # only now: what is noted before a drop hears of it
            held.lost = _LOST_WITH
        if ref.backend is not self:
            link, arrays = self._link, self._arrays

            def release(serial: int) -> None:
                held = arrays.pop(serial, None)
                if held is not None:
                    link.release(held.key[1])

            ref.on_release(self, release)

    def _held(self, ref: ArrayRef) -> _Held | None:
        """The tiles of `ref`, None where only the driver has it; WorkerLost where they are gone."""
        held = self._arrays.get(ref.serial) if ref.backend is self else None
        if held is not None and held.lost is not None and (ref.value is not None or ref.source is not None):
            self._let_go(ref, held)
            return None
        if held is not None and held.lost is not None:
            raise WorkerLost(f"{held.lost} died and took tiles of an array of shape {ref.shape} with it")
        if held is None and ref.value is None and ref.source is None:
            raise WorkerLost(f"an array of shape {ref.shape} has no tiles on this cluster")
        return held

    def _withdraw(self, key: Key, futures: Sequence[Future[Any]]) -> None:
        """Give an upload up: drop its tiles once the last of them has arrived."""
        left = list(futures)

        def arrived(future: Future[Any]) -> None:
            left.pop()
            if not left:
                self._link.release(key[1])

        for future in futures:
            future.add_done_callback(arrived)

    def _gather(self, ref: ArrayRef, box: Box, held: _Held) -> Any:
        assert ref.tiling is not None, "an array on workers has a tiling"
        out = None if ref.format == "csr" else np.empty(box_shape(box), ref.dtype)
        parts = []
        for rank, tile in ref.tiling.tiles(ref.shape, box):
            common = intersect(tile, box) if box else ()
            assert common is not None, "tiles() yields tiles that meet the box"
            region = tuple((lo - t, hi - t, 1) for (lo, hi), (t, _) in zip(common, tile, strict=True))
            member = held.members[rank]
            place = tuple((lo - o, hi - o) for (lo, hi), (o, _) in zip(common, box, strict=True))
            into = None if out is None else _slice(out, place)
            fetched = self._link.peers.fetch(
                member.name, held.key, region, member.since, into, lambda: held.lost is None
            )
            parts.append((common, into, fetched))
        if out is None:
            return _stack([(at, self._wait(f)) for at, _, f in parts], box, ref.dtype)
        for _, into, future in parts:
            part = self._wait(future)
            if into is not None and part is not into:
                into[...] = dense(part)
        return out

    def _wait(self, future: Future[Any]) -> Any:
        """A transfer's result. It always ends: lost workers and a lost master fail what waits for them."""
        while not wait([future], _CHECK_S).done:
            self._link.check()
        return future.result()

    # --- jobs

    def _await(
        self, job: str, begin: Callable[[JobEvents], None], stages: int, progress: Progress | None
    ) -> JobDone:
        """Begin a job and wait for its end; an interrupt stops it first, whenever it comes."""
        events: JobEvents = queue.SimpleQueue()
        try:
            begin(events)
            while True:
                try:
                    event = events.get(timeout=_CHECK_S)
                except queue.Empty:
                    self._link.check()
                    continue
                if isinstance(event, Printed):
                    show(event.worker, event.text)
                    continue
                if isinstance(event, ProgressMessage):
                    if progress is not None:
                        progress(event.done, stages)
                    continue
                break
        except BaseException:
            self._cancel(job, events)
            raise
        if isinstance(event, JobFailed):
            raise rebuild(event.kind, event.message)
        if isinstance(event, ConnectionFailed):
            raise event
        if progress is not None:
            progress(stages, stages)
        return event

    def _cancel(self, job: str, events: JobEvents) -> None:
        """Stop a job and wait, for a while, for the news that it has."""
        self._link.cancel(job)
        deadline = time.monotonic() + _CANCEL_S
        while time.monotonic() < deadline:
            try:
                if not isinstance(events.get(timeout=_CANCEL_S), ProgressMessage | Printed):
                    return
            except queue.Empty:
                return

    # --- membership

    def _check_ranks(self, world: int) -> None:
        """WorkersChanged where a rank of the plan has not the worker any more that it was planned for."""
        self._link.check()
        now = self._link.members.members
        for rank, member in enumerate(self._settled.members[:world]):
            if member not in now:
                raise WorkersChanged(f"worker {rank} ({member.label}) died after the plan was made")

    def _settle(self) -> None:
        """Take notice of who came and went; see the module's text for what becomes of the arrays."""
        self._settled = self._link.members
        for held in list(self._arrays.values()):
            ref = held.ref()
            if ref is not None and held.lost is None and held.members != self._settled.members:
                ref.also = ()
                self._settle_array(ref, held)

    def _settle_array(self, ref: ArrayRef, held: _Held) -> None:
        assert ref.tiling is not None, "an array on workers has a tiling"
        if ref.source is not None:
            self._let_go(ref, held)  # there is nothing to bring: whoever comes next reads it
            return
        if isinstance(held.value, np.ndarray):
            ref.value = held.value
        now = self._settled.members
        users = [r for r in range(len(held.members)) if ref.tiling.box_on(ref.shape, r) is not None]
        if all(r < len(now) and held.members[r] == now[r] for r in users) and not (
            ref.tiling.duplicate and len(now) > len(held.members)
        ):
            return
        there = (*now, *self._settled.leaving)  # who stays comes first
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
        if ref.value is None:
            ref.value = self._gather(ref, box_of(ref.shape), held)
        self._let_go(ref, held)

    def _let_go(self, ref: ArrayRef, held: _Held) -> None:
        """Leave an array to the driver, which has its value."""
        del self._arrays[ref.serial]
        ref.backend = ref.tiling = None
        self._link.release(held.key[1])


def show(worker: str, text: str) -> None:
    """Print what a function has printed on a worker."""
    for line in text.split("\n"):
        print(f"[{worker}] {line}", flush=True)


def _weights(members: tuple[Member, ...]) -> tuple[int, ...]:
    """The workers' power in sixteenths of the strongest one's; empty where all are equal."""
    threads = max((m.threads for m in members), default=0) or 1
    memory = max((m.memory_bytes for m in members), default=0) or 1
    power = [min((m.threads or threads) / threads, (m.memory_bytes or memory) / memory) for m in members]
    weights = tuple(max(1, round(16 * p)) for p in power)
    return weights if len(set(weights)) > 1 else ()


def _slice(value: Any, box: Box) -> Any:
    """The part of a driver's array inside `box`."""
    slices: tuple[Any, ...] = tuple(slice(lo, hi) for lo, hi in box)
    return value[(*slices, ...)] if isinstance(value, np.ndarray) else value[slices]  # 0-d stays an array


def _fill_values(results: Sequence[ArrayRef], done: JobDone) -> None:
    """Put the workers' tiles of small results together."""
    tiles = [unpack(blob) if blob else None for blob in done.values]
    for i, ref in enumerate(results):
        value = np.empty(ref.shape, ref.dtype)
        for rank, row in enumerate(tiles):
            box = ref.tiling.box_on(ref.shape, rank) if ref.tiling is not None else None
            if box is not None and row is not None:
                value[tuple(slice(lo, hi) for lo, hi in box)] = row[i]
        ref.value = value


def _stack(parts: list[tuple[Box, Any]], box: Box, dtype: np.dtype[Any]) -> Any:
    """CSR parts put together: beside each other within a band of rows, then the bands below each other."""
    if not parts:
        return csr_array(box_shape(box), dtype=dtype)
    bands: dict[int, list[tuple[int, Any]]] = {}
    for at, part in parts:
        bands.setdefault(at[0][0], []).append((at[1][0], part))
    return stacked([p for _, p in sorted(band, key=lambda b: b[0])] for _, band in sorted(bands.items()))
