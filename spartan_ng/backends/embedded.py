"""One worker inside this process: the same plans and the same worker core, with threads, no sockets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, Key, Tiling, box_slices
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.backends.protocol import Audience, Progress, RunStats
from spartan_ng.callers import warn_user
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import INTERRUPTIBLE_S
from spartan_ng.costs.measured import rates
from spartan_ng.error_state import Heard, error_state
from spartan_ng.interrupts import is_interruptible, run_interruptibly
from spartan_ng.kernels.user import interrupt
from spartan_ng.memory import budget_bytes
from spartan_ng.plan.plan import Plan
from spartan_ng.sources import SourceTile
from spartan_ng.system import machine
from spartan_ng.system.heap import go_on_in_large_pages, keep_freed
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.memory.pool import BufferPool, tiles_bytes
from spartan_ng.worker.memory.recycle import Recycler
from spartan_ng.worker.memory.store import Store
from spartan_ng.worker.network.protocol import NoPeers


class EmbeddedBackend:
    """Runs plans in this process on `threads` threads (all cores if None).

    With `memory_bytes` arrays that plans read and make take no more than that at a time: what plans make is
    cut so that it fits, or goes to disk. Without, a plan that would take more than what the process may use
    is the first for which this holds. One that is told neither goes by the options.
    """

    audience: ClassVar[Audience | None] = None
    """Who looks at what all of them run: the page of this process."""
    _jobs: ClassVar[Iterator[int]] = count(1)

    def __init__(self, threads: int | None = None, memory_bytes: int | None = None) -> None:
        self.workers = 1
        self.follows_options = threads is None and memory_bytes is None
        """Whether it goes by the options as they are when a plan is made (`follow_options`)."""
        if self.follows_options:
            threads, memory_bytes = config.threads, config.memory_bytes
        self._recycler = Recycler()
        self._under_way: set[str] = set()
        """Jobs, where several threads of the program have some."""
        self._allow(threads, memory_bytes)

    def follow_options(self) -> None:
        """Have plans from now on take the threads and the memory that the options say."""
        self.follow(config.threads, config.memory_bytes)

    def follow(self, threads: int | None, memory_bytes: int | None) -> None:
        """Have plans from now on take so many threads, and so much memory; others go on as they began."""
        if self._allowed == (threads, memory_bytes):
            return
        before = self._executor
        self._allow(threads, memory_bytes)
        keep_freed(memory_bytes)
        if not self._under_way:
            before.close()

    def _allow(self, threads: int | None, memory_bytes: int | None) -> None:
        self._allowed = threads, memory_bytes
        """What was asked for."""
        self.threads = threads or machine.cores()
        bytes_s, flops_s = rates(self.threads)
        self.profile = Profile(
            memory_bytes_s=bytes_s,
            flops_s=flops_s,
            memory_bytes=memory_bytes or budget_bytes(),
        )
        self._memory_bytes: int | None = None
        if memory_bytes is None:
            self._begin()
        else:
            self.keep_to_memory()

    def keep_to_memory(self) -> None:
        """Have arrays take no more than the profile's memory from now on: a plan would take more.

        What goes to disk is slower, so nothing is limited that nobody asks to be before that.
        """
        self.profile = replace(self.profile, limited=True)
        self._memory_bytes = self.profile.memory_bytes
        keep_freed(self._memory_bytes)
        self._begin()

    def _begin(self) -> None:
        if self._memory_bytes is None:
            self._store = Store(recycler=self._recycler)
        else:
            self._store = Store(BufferPool(tiles_bytes(self._memory_bytes, self.threads)))
        self._executor = Executor(0, 1, self._store, NoPeers(), self.threads)

    def _begin_anew(self) -> None:
        """Leave a job that does not stop to itself, with the threads and the store that it has."""
        self._executor.close()
        self._begin()

    def reads(self, ref: ArrayRef) -> bool:
        """What is mapped is the worker's already."""
        return ref.value is None

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Nothing to do: the driver's memory is the worker's."""

    def prepare(self, plan: Plan) -> None:
        """Have ready what running a plan takes besides its inputs."""
        self._executor.program(plan).lay_out(self.threads)

    def expect(self, plan: Plan) -> None:
        """Have memory ready for the results of a run that is about to come."""
        results = [plan.slots[slot] for slot in plan.asked]
        self._recycler.expect([s.nbytes for s in results if s.format == "dense" and not s.is_outside])

    def run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None = None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run `plan` on this process's threads; NumPy's warnings there become warnings of the caller's line,
        but where users' functions run, which see the error state."""
        job, executor = f"job/{next(self._jobs)}", self._executor
        heard = None if error_state().is_strict or executor.program(plan).shows_state else Heard()
        executor.heard = heard
        go_on_in_large_pages()
        found = self._run_seen(job, plan, inputs, progress)
        for text in heard.texts if heard is not None else ():
            warn_user(text, RuntimeWarning)
        return found

    def _run_seen(
        self, job: str, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run it, and tell whoever looks."""
        audience = self.audience
        if audience is None:
            return self._run_job(job, plan, inputs, progress)
        audience.begins(job, plan)
        try:
            found = self._run_job(job, plan, inputs, progress)
        except BaseException as error:
            audience.ended(job, error)
            raise
        audience.ended(job, None)
        return found

    def _run_job(
        self, job: str, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None
    ) -> tuple[list[ArrayRef], RunStats]:
        cancelled = threading.Event()
        if not self._takes_long(plan) or not is_interruptible():
            try:
                return self._run(job, plan, inputs, cancelled, progress)
            except KeyboardInterrupt:
                cancelled.set()
                raise

        def stop() -> None:
            cancelled.set()
            interrupt(job)

        work = partial(self._run, job, plan, inputs, cancelled, progress)
        return run_interruptibly(work, stop, self._begin_anew)

    def _takes_long(self, plan: Plan) -> bool:
        """Whether the main thread should wait for a plan rather than work on it, for Ctrl-C's sake: nobody
        knows how long users' functions take, nor those of matrices, which are one call each."""
        program = self._executor.program(plan)
        if program.is_long is None:
            found = program.calls_users or program.calls_matrices
            expected_s = 0.0 if found else sum(s.seconds(plan.slots, 0, self.profile) for s in plan.stages)
            found = found or expected_s > INTERRUPTIBLE_S
            program.is_long = found
        return program.is_long

    def _run(
        self,
        job: str,
        plan: Plan,
        inputs: Sequence[ArrayRef],
        cancelled: threading.Event,
        progress: Progress | None,
    ) -> tuple[list[ArrayRef], RunStats]:
        start = time.perf_counter()
        store, executor = self._store, self._executor
        bound: list[Key] = []
        outputs = [(job, s) for s in plan.outputs]
        self._under_way.add(job)
        executor.errstate = error_state().kinds
        report = None if progress is None else self._by_seconds(plan, progress)
        try:
            for i, ref in enumerate(inputs):
                bound.append((job, -1 - i))
                tile = SourceTile(ref.source) if ref.value is None else ref.value
                store.put(bound[i], tile, lent=True)  # the program has it in its hands
            every = executor.run(job, plan, bound, outputs, cancelled, report)
            values = [store.get(k) for k in outputs]
        finally:
            self._under_way.discard(job)
            store.drop_owner(job)
        stats = RunStats(time.perf_counter() - start, every, job)
        return [self._result(plan, s, v, inputs) for s, v in zip(plan.outputs, values, strict=True)], stats

    def _by_seconds(self, plan: Plan, progress: Progress) -> Callable[[float], None]:
        """What tells `progress` how far a plan is, stages by how long they are predicted to take: so long
        work says when it will be done."""
        stages = len(plan.stages)
        each = [stage.seconds(plan.slots, 0, self.profile) for stage in plan.stages]
        ends = np.cumsum([0.0, *each]) * (stages / max(sum(each), 1e-9))
        ends[-1] = stages  # whatever rounding left
        return lambda done: progress(float(np.interp(done, range(stages + 1), ends)), stages)

    def _result(self, plan: Plan, number: int, value: Any, inputs: Sequence[ArrayRef]) -> ArrayRef:
        slot = plan.slots[number]
        nnz = int(value.nnz) if slot.format == "csr" else None
        ref = ArrayRef(slot.shape, slot.dtype, value=value, format=slot.format, nnz=nnz)
        if slot.format == "dense":
            ref.on_disk = is_mapped(value)
            ref.private = self._recycler.owns(value) or (ref.on_disk and not _is_lent(value, inputs))
        return ref

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """A view of the value."""
        return ref.value[box_slices(box)]

    def close(self) -> None:
        """Let the threads go."""
        self._executor.close()

    def retire(self) -> None:
        """Close now: the driver has every value."""
        self.close()


def _is_lent(value: Any, inputs: Sequence[ArrayRef]) -> bool:
    """Whether a result lies in the memory of an input that is a file's."""
    return any(ref.is_mapped and np.may_share_memory(value, ref.value) for ref in inputs)
