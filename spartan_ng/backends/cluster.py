"""A cluster as a backend: plans go through the master, tiles straight to and from the workers.

Ranks are those of one settled view of the membership: `workers` (asked before planning) takes notice of
who came and went, and `run` refuses a plan that was made for ranks which have changed since. New workers
never disturb what runs. What becomes of arrays when workers come and go: see `backends.holdings`.
"""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, Key, Tiling, box_shape, box_slices
from spartan_ng.backends import forked
from spartan_ng.backends.carrying import CHECK_S, part_of_array
from spartan_ng.backends.held import Held
from spartan_ng.backends.holdings import Holdings
from spartan_ng.backends.hosts import profile
from spartan_ng.backends.link import JobEvents, MasterLink
from spartan_ng.backends.protocol import INLINE_BYTES, Progress, RunStats, Way
from spartan_ng.callers import user_place
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.ending import at_end, not_at_end
from spartan_ng.errors import ConnectionFailed, Unfinished, WorkerLost, WorkersChanged, WorkerUnreachable
from spartan_ng.events import record
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stats import StageStats
from spartan_ng.wire.access import Access, is_local
from spartan_ng.wire.codec import NOTHING, Blob
from spartan_ng.wire.failures import rebuild_error
from spartan_ng.wire.keys import Keys
from spartan_ng.wire.messages import JobDone, JobFailed, Member, Printed, Status, Submit
from spartan_ng.wire.messages import Progress as ProgressMessage
from spartan_ng.wire.values import pack, unpack

_CANCEL_S = 0.5
"""How long the master has to confirm that an interrupted job is given up."""


class ClusterBackend:
    """A connection to a cluster; make it with `connect`."""

    def __init__(self, link: MasterLink) -> None:
        self._link = link
        self._held = Holdings(link, self)
        self.recover: Callable[[Sequence[ArrayRef]], bool] | None = None
        """See `Losing`."""
        self.is_better_anew: Callable[[Plan, Way, int], bool] | None = None
        """See `Losing`."""
        at_end(self.close)
        forked.sever_in_forks(self)

    @classmethod
    def connect(
        cls,
        address: str,
        keys: Keys | str | os.PathLike[str] | None = None,
        timeout_s: float | None = None,
        workers: int = 1,
        insecure: bool = False,
    ) -> ClusterBackend:
        """Connect to the master at `address`, and wait for that many workers.

        `keys` is the directory of CurveZMQ keys; without them, an address is a socket in a folder of this
        user's own, or `insecure` must say that anybody may be there. Raises MasterUnreachable,
        AuthenticationFailed or VersionMismatch, all ConnectionFailed, within about `timeout_s`, which is the
        option's where it is None.
        """
        timeout_s = config.timeout_s if timeout_s is None else timeout_s
        found = keys if keys is None or isinstance(keys, Keys) else Keys.load(keys, "client")
        link = MasterLink(address, Access(found, insecure), timeout_s)
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
        self._held.settle()
        return enough

    @property
    def workers(self) -> int:
        """Number of workers that plans are made for, as of now.

        Where there are none, it waits for those that are being started again: WorkerLost where none comes.
        """
        self._link.wait_for_master()
        if self._link.members is not self._held.settled:
            self._held.settle()
        timeout_s = config.timeout_s
        deadline = time.monotonic() + timeout_s
        while not (count := len(self._held.settled.members)):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self.wait_for_workers(1, left_s):
                raise WorkerLost(
                    f"the cluster at {self._link.address} has no workers left, and none in {timeout_s:g} s"
                )
        return count

    @property
    def is_busy(self) -> bool:
        """Whether a job of ours is under way."""
        return self._link.is_busy

    @property
    def profile(self) -> Profile:
        """What the workers have that plans are made for; see `hosts.profile`."""
        return profile(self._held.settled.members)

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
        """What the driver has mapped, workers on this machine map, too; others may not see the file. What it
        has of files that others have the names of by now only it has."""
        if ref.value is None:
            return not ref.source.is_held or ref.source.is_current()
        return self.is_local and ref.source.is_current()

    def run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None = None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run `plan` on the cluster; see `Backend.run`."""
        start = time.perf_counter()
        packed = self._link.packed(plan)  # before all else: functions may read arrays, by jobs of their own
        drops = self._link.drops
        self._check_ranks(plan.workers)
        if record.is_full:
            self._link.tune()
        held = [
            self._sent(ref, plan.slots[number].tiling)
            for number, ref in zip(plan.inputs, inputs, strict=True)
        ]
        try:
            with self._held.new_keys(len(plan.outputs)) as keys:
                return self._run(plan, packed, held, keys, progress, start, drops)
        except Exception as error:
            # Another thread may have had arrays come home, as where a cluster gets smaller: the workers drop
            # them under way.
            if all(ref.backend is self for ref in inputs):
                raise
            raise WorkersChanged("arrays that a job was to read have come home") from error
        finally:
            held.clear()  # what an error's traceback keeps would keep the tiles

    def _sent(self, ref: ArrayRef, tiling: Tiling) -> Held:
        """What is noted of an array that a job reads, and that is on the workers then."""
        held = self._held.get(ref)
        if held is None:
            self.upload(ref, tiling)
            held = self._held.get(ref)
        if held is None or held.is_moved:  # or has come home at once
            raise WorkersChanged(f"an array of shape {ref.shape} lies on other ranks than it did")
        return held

    def _run(
        self,
        plan: Plan,
        packed: Blob | None,
        inputs: Sequence[Held],
        keys: list[Key],
        progress: Progress | None,
        start: float,
        drops: int,
    ) -> tuple[list[ArrayRef], RunStats]:
        slots = [plan.slots[n] for n in plan.outputs]
        results = [ArrayRef(s.shape, s.dtype, format=s.format, tiling=s.tiling) for s in slots]
        inline = sum(s.nbytes for s in slots) <= INLINE_BYTES and all(s.format == "dense" for s in slots)
        members = self._held.settled.members[: plan.workers]
        small = [(i, held.value) for i, held in enumerate(inputs) if held.value is not None]
        submit = Submit(
            self._link.new_job(),
            plan.key,
            self._held.settled.epoch,
            plan.workers,
            plan.ranks,
            tuple(held.key for held in inputs),
            tuple(keys),
            inline,
            progress is not None,
            timeout_s=self._link.peers.timeout_s,
            deadline_s=config.job_timeout_s or 0.0,
            observed=record.is_full,
            line=user_place() if self._link.is_watched else "",
            values=pack(tuple(small)) if small else NOTHING,
        )
        try:
            begin = partial(self._link.submit, plan, packed, submit, drops)
            done = self._await(submit.job, begin, plan, progress)
            if isinstance(done, JobFailed):
                raise self._failure(done, plan, keys, members)
        except BaseException as error:
            left = error.left.values() if isinstance(error, Unfinished) else ()
            kept = {self._held[ref].key for ref in left}
            for key in keys:  # of parts that were done when the master was lost
                if key not in kept:
                    self._link.release(key[1])
            raise
        for i, _ in small:
            inputs[i].value = None
        for ref, key, nnz in zip(results, keys, done.nnz, strict=True):
            if ref.format == "csr":
                ref.nnz = nnz
            self._held.keep(ref, key, members, drops=drops)
        if inline:
            _fill_values(results, done)
        stages = [StageStats(*costs) for costs in done.stats]
        return results, RunStats(time.perf_counter() - start, stages, submit.job)

    def _failure(
        self, failed: JobFailed, plan: Plan, outputs: Sequence[Key], members: tuple[Member, ...]
    ) -> Exception:
        """What to raise for a job that has failed; with what is left of it, where the program goes on."""
        error = rebuild_error(failed.kind, failed.message)
        if isinstance(error, Unfinished):
            keys: list[Key] = [(failed.job, number) for number in range(len(plan.slots))]
            for number, key in zip(plan.outputs, outputs, strict=True):
                keys[number] = key
            told = [frozenset(tiles) for tiles in failed.left]
            slots = list(zip(plan.slots, keys, strict=True))
            error.left = self._held.left_of(failed.job, slots, members, told)
        return error

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box` as a NumPy (or CSR) array on the driver."""
        for left in reversed(range(config.retries + 1)):
            try:
                with record.span("gather", str(box_shape(box))):
                    return self._held.gather(ref, box)
            except WorkerUnreachable:  # it lives, and nobody else has its tiles
                raise
            except KeyError:
                if ref.value is None:
                    raise
                return part_of_array(ref.value, box)  # it has come home meanwhile
            except WorkerLost:
                if not left or self.recover is None or not self.recover([ref]):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def take_notice(self) -> None:
        """Take notice of who came and went."""
        self._held.settle()

    def close(self) -> None:
        """Leave the cluster, which drops all our arrays."""
        not_at_end(self.close)
        self._link.close()
        self._link.forget()
        self.recover = self.is_better_anew = None

    def sever(self) -> None:
        """See `forked`."""
        not_at_end(self.close)
        forked.keep_in_forks(self._link, self._held)
        self._link = self._held = forked.Severed()  # type: ignore[assignment]  # it stands for either
        self.recover = self.is_better_anew = None

    def retire(self) -> None:
        """Close when the last array is gone that only our workers have: now, where there is none."""
        self._held.retire()
        if self._held.is_idle():
            self.close()
        else:
            self._link.retire(self._held.is_idle, self.close)

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Put a driver array's tiles on the workers as `tiling` says; records it in `ref`.

        Raises MemoryBudgetError where a worker has no room, WorkerLost where one is gone.
        """
        self._held.upload(ref, tiling)

    def is_lost(self, ref: ArrayRef) -> bool:
        """See `Losing`."""
        return self._held.is_lost(ref)

    def is_gone(self) -> bool:
        """Its arrays are in its workers' memory, whoever comes back to them."""
        return False

    def is_moved(self, ref: ArrayRef) -> bool:
        """See `Losing`."""
        return self._held.is_moved(ref)

    def sparse_left(self, refs: Sequence[ArrayRef]) -> ArrayRef | None:
        """See `Losses`."""
        return self._held.sparse_left(refs)

    def tiles_of(self, ref: ArrayRef) -> dict[Box, ArrayRef | None]:
        """The tiles of an array that is lost: see `Losing`."""
        return self._held.tiles_of(ref)

    def spare(self, ref: ArrayRef) -> None:
        """Note that an array is a copy of another."""
        self._held.spare(ref)

    def living(self) -> list[ArrayRef]:
        """The arrays that the workers have."""
        return self._held.living()

    def partner(self) -> tuple[int, int]:
        """See `Losing`: of another host, for as many ranks as possible."""
        hosts = [member.host for member in self._held.settled.members]
        shifts = range(1, len(hosts))
        alike = {
            by: sum(a == b for a, b in zip(hosts, hosts[by:] + hosts[:by], strict=True)) for by in shifts
        }
        return min(shifts, key=alike.__getitem__, default=0), len(hosts)

    def restore(self, ref: ArrayRef, by: ArrayRef) -> None:
        """Let an array that was lost have the tiles of an equal one."""
        self._held.restore(ref, by)

    def tell_recovered(self, text: str) -> None:
        """Let who looks at the cluster's page know what has been computed again."""
        self._link.tell_recovered(text)

    def bring_home(self) -> None:
        """Have the value of every array in this process, and none on the workers; what was lost is computed
        again before."""
        for left in reversed(range(config.retries + 1)):
            try:
                self._held.settle()
                lost = self._held.lost()
                if lost and self.recover is not None and self._held.settled.members:
                    self.recover(lost)
                self._held.bring_home()
            except WorkerUnreachable:  # it lives, and nobody else has its tiles
                raise
            except WorkerLost:
                if not left:
                    raise
            else:
                return

    # --- jobs

    def _await(
        self, job: str, begin: Callable[[JobEvents], None], plan: Plan, progress: Progress | None
    ) -> JobDone | JobFailed:
        """Begin a job and wait for its end; an interrupt stops it first, whenever it comes."""
        events: JobEvents = queue.SimpleQueue()
        stages, begun, way, is_set_aside = len(plan.stages), time.monotonic(), Way(), False
        try:
            begin(events)
            while True:
                if not is_set_aside and self._is_better_anew(plan, way):
                    is_set_aside = True
                    self._link.cancel(job, goes_on=True)
                try:
                    event = events.get(timeout=CHECK_S)
                except queue.Empty:
                    self._link.check()
                    way = replace(way, now_s=time.monotonic() - begun)
                    continue
                if isinstance(event, Printed):
                    show(event.worker, event.text)
                    continue
                if isinstance(event, ProgressMessage):
                    now_s = time.monotonic() - begun
                    way = Way(event.done, now_s, now_s)
                    if progress is not None:
                        progress(event.done, stages)
                    continue
                break
        except BaseException:
            self._cancel(job, events)
            raise
        if isinstance(event, ConnectionFailed):
            raise event
        if progress is not None and isinstance(event, JobDone):
            progress(stages, stages)
        return event

    def _cancel(self, job: str, events: JobEvents) -> None:
        """Stop a job and wait, for a while, for the news that it has."""
        self._link.cancel(job)
        self._link.end(job)
        deadline = time.monotonic() + _CANCEL_S
        while time.monotonic() < deadline:
            try:
                if not isinstance(events.get(timeout=_CANCEL_S), ProgressMessage | Printed):
                    return
            except queue.Empty:
                return

    # --- membership

    def _is_better_anew(self, plan: Plan, way: Way) -> bool:
        """Whether workers have joined, and it pays to stop a plan that is under way for them."""
        before, now = self._held.settled.members, self._link.members.members
        if self.is_better_anew is None or len(now) <= len(before) or now[: len(before)] != before:
            return False
        return self.is_better_anew(plan, way, len(now))

    def _check_ranks(self, world: int) -> None:
        """WorkersChanged where a rank of the plan has not the worker any more that it was planned for."""
        self._link.check()
        now = self._link.members.members
        for rank, member in enumerate(self._held.settled.members[:world]):
            if member not in now:
                raise WorkersChanged(f"worker {rank} ({member.label}) died after the plan was made")


def show(worker: str, text: str) -> None:
    """Print what a function has printed on a worker."""
    for line in text.split("\n"):
        print(f"[{worker}] {line}", flush=True)


def _fill_values(results: Sequence[ArrayRef], done: JobDone) -> None:
    """Put the workers' tiles of small results together."""
    tiles = [unpack(blob) if blob else None for blob in done.values]
    for i, ref in enumerate(results):
        value = np.empty(ref.shape, ref.dtype)
        for rank, row in enumerate(tiles):
            box = ref.tiling.box_on(ref.shape, rank) if ref.tiling is not None else None
            if box is not None and row is not None:
                value[box_slices(box)] = row[i]
        ref.value = value
