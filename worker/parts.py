"""The parts of jobs that a worker runs: a thread for each, and what it is at, for as long as it runs.

All but the running itself is on the loop's thread. How a part ends is said to `WorkerState`, which decides
what follows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.arrays import Key
from spartan_ng.arrays.sparse import is_csr
from spartan_ng.errors import JobCancelled
from spartan_ng.events import now_ns, record
from spartan_ng.kernels.user import interrupt, running
from spartan_ng.ops.functions import named_functions
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stats import StageStats
from spartan_ng.sources import SourceTile
from spartan_ng.texts import encodable, error_trace
from spartan_ng.wire.codec import NOTHING, Blob
from spartan_ng.wire.failures import describe_error
from spartan_ng.wire.functions import load_function
from spartan_ng.wire.hosts import label
from spartan_ng.wire.loop import Loop
from spartan_ng.wire.messages import Doing, JobError, StagesDone, Stats
from spartan_ng.wire.plans import decode_plan
from spartan_ng.wire.values import pack, unpack
from spartan_ng.worker.memory.store import Store, read_region
from spartan_ng.worker.network.ranked import RankedPeers
from spartan_ng.worker.network.transfer import Peers
from spartan_ng.worker.prints import Prints
from spartan_ng.worker.scheduling.state import Instruction, StartPart, StopPart, WorkerState
from spartan_ng.worker.scheduling.stealing import Offers
from spartan_ng.worker.telling import Telling

_PROGRESS_S = 0.1
_LONG_S = 1.0
"""A job that takes longer is told of where nobody looks, too: its client may want to stop it."""
_SETTLED_S = 0.5
"""What a part that began a moment ago is at, nobody is told."""
STUCK_S = 5.0
"""A function that still runs this long after its job was to stop, in C code perhaps, never will."""
HELD_UP_S = 60.0
"""So does any other part of a job; one call of NumPy's on a large tile may take a while, and is let end."""

_log = logging.getLogger("spartan_ng.worker")


class PartExecutor(Protocol):
    """What parts need of an executor."""

    def run(
        self,
        job: str,
        plan: Plan,
        inputs: Sequence[Key],
        outputs: Sequence[Key],
        cancelled: threading.Event,
        progress: Callable[[float], None] | None = None,
    ) -> Sequence[StageStats]:
        """Run this rank's stages."""
        ...

    @property
    def waiting(self) -> Mapping[str, tuple[int, str]]:
        """By job: for which rank this one has waited for a while, and in which stage."""
        ...

    def help(self, job: str, stopped: threading.Event) -> None:
        """Do what others have not done yet of a job."""
        ...

    def forget(self, is_over: Callable[[str], bool]) -> None:
        """Keep nothing of plans whose keys are over."""
        ...

    def close(self) -> None:
        """Let the threads go."""
        ...


MakeExecutor = Callable[[int, int, Store, RankedPeers, int], PartExecutor]


class _RunningPart(Struct):
    """A part that runs."""

    begun_s: float
    timeout_s: float
    cancelled: threading.Event = field(default_factory=threading.Event)
    told: str = ""
    """What the master has been told that it does."""
    pressed_s: float | None = None
    """When it was told to stop."""


class Parts:
    """Runs parts with the executors that `make_executor` makes, and tells the master their doings.

    What `state` decides when one has ended, `do` does.
    """

    def __init__(
        self,
        loop: Loop,
        store: Store,
        peers: Peers,
        offers: Offers,
        state: WorkerState,
        make_executor: MakeExecutor,
        threads: int,
        do: Callable[[Sequence[Instruction]], None],
        tell: Callable[[Any], None],
    ) -> None:
        self.prints: Sequence[Prints] = ()
        """What stands in for this process's streams."""
        self.telling = Telling(tell)
        self._loop, self._store, self._peers, self._offers = loop, store, peers, offers
        self._state, self._do, self._tell = state, do, tell
        self._make_executor, self._threads = make_executor, threads
        self._executors: dict[tuple[str, ...], PartExecutor] = {}
        """By the names of their ranks."""
        self._plans: dict[tuple[str, str], Future[Plan]] = {}
        """By client and key."""
        self._running: dict[str, _RunningPart] = {}
        """By job."""
        self._helping: dict[str, threading.Event] = {}
        """By job whose part here has ended: set when nobody needs help with it any more."""
        # As many as there may be jobs: a part that waited for a thread would be waited for by other workers'
        # parts.
        self._pool = ThreadPoolExecutor(4096, "job")

    @property
    def any_runs(self) -> bool:
        """Whether there is a part that has not ended."""
        return bool(self._running)

    def start(self, part: StartPart) -> None:
        """Run a part."""
        run = part.run
        at = (part.client, run.plan_key)
        if run.plan:
            self._plans[at] = self._pool.submit(_load_plan, run.plan, part.client)
        executor = self._executors.get(part.names)
        if executor is None:
            transfer = RankedPeers(self._peers, part.names, self._offers)
            executor = self._make_executor(part.rank, len(part.names), self._store, transfer, self._threads)
            self._executors[part.names] = executor
        begun = self._running[run.job] = _RunningPart(self._loop.now(), run.timeout_s)
        self.telling.begin(run.job, run.observed)
        self._peers.timeout_s = min(p.timeout_s for p in self._running.values())
        self._pool.submit(self._run, part, self._plans[at], executor, begun.cancelled)

    def stop(self, part: StopPart) -> None:
        """Have a part end before its time."""
        pressed = self._running[part.job]
        pressed.cancelled.set()
        if pressed.pressed_s is None:
            pressed.pressed_s = self._loop.now()
        interrupt(part.job)
        keys = set(part.keys)
        error = JobCancelled(f"job {part.job} was cancelled")
        self._peers.abort(lambda key: key[0] == part.job or key in keys, error)

    def press(self) -> tuple[str, str] | None:
        """Interrupt functions of parts that were told to stop; a job that never does, and what of it runs."""
        stuck = None
        for job, part in self._running.items():
            if part.pressed_s is not None:
                calls = interrupt(job)
                if self._loop.now() - part.pressed_s > (STUCK_S if calls else HELD_UP_S):
                    stuck = job, "a user's function" if calls else "a part"
        return stuck

    def report(self) -> None:
        """Tell the master for whom parts wait, and what they run."""
        for job, part in self._running.items():
            functions = running(job)
            waits = next((r.waiting[job] for r in self._executors.values() if job in r.waiting), None)
            text = f"runs {named_functions(functions)}" if functions else "computes"
            if waits is not None:
                waiting = f"waits for worker {waits[0]} in stage {waits[1]!r}"
                text = f"{waiting}, and {text} for another" if functions else waiting
            if text != part.told and self._loop.now() - part.begun_s > _SETTLED_S:
                part.told = text
                self._tell(Doing(job, encodable(text)))

    def lose(self, peer: str) -> None:
        """Let the executors go whose ranks a worker was one of."""
        for names in [n for n in self._executors if peer in n]:
            self._executors.pop(names).close()

    def drop_plans(self, client: str, plan_key: str | None) -> None:
        """Forget a client's plan, or all of them."""
        own_key = _own_key(client, plan_key or "")
        for executor in self._executors.values():
            executor.forget(lambda key: key == own_key if plan_key is not None else key.startswith(own_key))
        for at in [at for at in self._plans if at[0] == client and plan_key in (None, at[1])]:
            del self._plans[at]

    def over(self, jobs: Sequence[str]) -> None:
        """Help nobody any more with jobs that have ended everywhere."""
        for job in jobs:
            helping = self._helping.get(job)
            if helping is not None:
                helping.set()

    def stopping(self) -> None:
        """Help no other worker any more."""
        self.over(tuple(self._helping))

    def close(self) -> None:
        """Begin nothing more, and let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for executor in self._executors.values():
            executor.close()

    # --- on a part's thread

    def _run(
        self, part: StartPart, plan: Future[Plan], executor: PartExecutor, cancelled: threading.Event
    ) -> None:
        """Run the part, and let the loop's thread know how it ended."""
        run = part.run
        begun_ns = now_ns()
        try:
            with record.span("prepare", "", run.job):
                progress = self._progress(run.job, 0.0 if run.progress else _LONG_S)
                program = plan.result()
                if run.values:
                    self._put_values(part, program)
            try:
                stats = executor.run(run.job, program, run.inputs, run.outputs, cancelled, progress)
            finally:
                self._finish_prints(run.job)
            costs: Stats = tuple((s.seconds, s.bytes_moved, s.bytes_made, s.stolen) for s in stats)
            with record.span("results", "", run.job):
                nnz, values = self._results(run.outputs, run.inline)
            _note_part(run.job, begun_ns)
        except BaseException as error:  # noqa: BLE001 - whatever a job raises is its client's
            if not isinstance(error, JobCancelled):
                _log.info("job %s failed:\n%s", run.job, error_trace(error))
            kind, text = describe_error(error, f"{part.rank} ({label()})")
            _note_part(run.job, begun_ns, error)
            self._loop.call(lambda: self._ended(run.job, self._state.failed(run.job, kind, text)))
        else:
            over = self._helping[run.job] = threading.Event()
            self._loop.call(lambda: self._ended(run.job, self._state.finished(run.job, costs, nnz, values)))
            try:
                executor.help(run.job, over)
            finally:
                del self._helping[run.job]
            self._finish_prints(run.job)

    def _put_values(self, part: StartPart, plan: Plan) -> None:
        """Store this rank's tiles of the small inputs that came with the job."""
        for position, value in unpack(part.run.values, load_function):
            slot = plan.slots[plan.inputs[position]]
            box = slot.tiling.box_on(slot.shape, part.rank)
            if isinstance(value, SourceTile):
                self._store.put(part.run.inputs[position], value)
            elif box is not None:
                region = tuple((lo, hi, 1) for lo, hi in box)
                self._store.put(part.run.inputs[position], read_region(value, region))

    def _finish_prints(self, job: str) -> None:
        """Tell what functions have begun to print, whatever they have done to the streams."""
        for stream in self.prints:
            stream.finish(job)
        Prints.stay(self.prints)

    def _progress(self, job: str, begins_s: float) -> Callable[[float], None]:
        """Report stages after so many seconds, but not more often than a person can see."""
        last = time.monotonic() + begins_s - _PROGRESS_S

        def report(done: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _PROGRESS_S:
                last = now
                self._loop.call(lambda: self._tell(StagesDone(job, int(done))))

        return report

    def _results(self, outputs: Sequence[Key], inline: bool) -> tuple[tuple[int, ...], Blob]:
        """Non-zeros of the results' tiles here, and the tiles themselves if they are small."""
        tiles = []
        for key in outputs:
            try:
                tiles.append(self._store.get(key))
            except KeyError:
                tiles.append(None)  # the tiling gives this rank no tile
        nnz = tuple(int(t.nnz) if is_csr(t) else 0 for t in tiles)
        shown = inline and any(t is not None for t in tiles)
        return nnz, pack(tuple(tiles)) if shown else NOTHING

    # --- on the loop's thread again

    def _ended(self, job: str, instructions: Sequence[Instruction]) -> None:
        del self._running[job]
        self.telling.end(job)
        left = (p.timeout_s for p in self._running.values())
        self._peers.timeout_s = min(left, default=self._peers.timeout_s)
        try:
            self._do(instructions)
        except Exception as error:  # noqa: BLE001 - somebody waits for the end of the job
            kind, text = describe_error(error)
            self._tell(JobError(job, kind, f"how a part of the job ended cannot be told: {text}"))


def _note_part(job: str, begun_ns: int, error: BaseException | None = None) -> None:
    if record.wants("part"):
        record.note("part", "", begun_ns, now_ns(), job, error=error)


def _load_plan(blob: Blob, client: str) -> Plan:
    """A client's plan; its key is made the client's own, because executors of all clients share programs."""
    plan = decode_plan(blob)
    return replace(plan, key=_own_key(client, plan.key))


def _own_key(client: str, plan_key: str) -> str:
    return f"{client}:{plan_key}"
