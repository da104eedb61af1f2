"""A worker process: one loop for all sockets, a thread for each job, and the executor between them.

The loop's thread owns `WorkerState`; job threads hand their results to it. Everything that decides is in
`worker.state`, everything that moves tiles in `worker.transfer` and `worker.serving`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Protocol

import zmq
from msgspec import structs

from spartan_ng.arrays.sparse import is_csr
from spartan_ng.errors import ConnectionFailed, JobCancelled, SpartanError
from spartan_ng.events import now_ns, record
from spartan_ng.kernels.user import interrupt, running
from spartan_ng.ops.functions import named
from spartan_ng.plan.plan import Plan
from spartan_ng.sources import SourceTile
from spartan_ng.texts import encodable, error_trace
from spartan_ng.wire.access import Access, leave
from spartan_ng.wire.codec import NOTHING, Blob
from spartan_ng.wire.connection import Handshake
from spartan_ng.wire.failures import describe
from spartan_ng.wire.functions import load_function
from spartan_ng.wire.hosts import address_towards, host_identity, label
from spartan_ng.wire.keys import Pair
from spartan_ng.wire.loop import Loop, Socket, send, send_frames
from spartan_ng.wire.messages import (
    PROTOCOL,
    TO_WORKER,
    Authorized,
    Back,
    Doing,
    Hello,
    Here,
    JobError,
    Key,
    Leaving,
    Members,
    Printed,
    Probe,
    Refused,
    Retain,
    StagesDone,
    Stats,
    Stop,
    Welcome,
)
from spartan_ng.wire.pieces import Buffer
from spartan_ng.wire.plans import decode_plan
from spartan_ng.wire.port import greeting, name_of, new_identity
from spartan_ng.wire.values import pack, unpack
from spartan_ng.worker.descriptors import Lack, raise_limit
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.memory.pool import BufferPool
from spartan_ng.worker.memory.store import Store, read_region
from spartan_ng.worker.network.serving import TileServer
from spartan_ng.worker.network.transfer import Peers, RankedPeers
from spartan_ng.worker.prints import Prints
from spartan_ng.worker.scheduling.state import (
    Drop,
    DropPlans,
    Instruction,
    StartPart,
    StopPart,
    Tell,
    UsePeers,
    WorkerState,
)
from spartan_ng.worker.scheduling.stealing import Offers
from spartan_ng.worker.telling import Telling

ALONE_S = 10.0
"""A worker without a master for this long says so, and goes on looking; one that is refused ends."""

LEAVE_S = 20.0
"""A worker that is to leave waits so long for those who need its tiles; systems kill after 30."""
_PROGRESS_S = 0.1
_TIDY_S = 1.0
_LOOK_S = 0.5
_PRESS_S = 0.1
_TELL_S = 0.25
STUCK_S = 5.0
"""A function that still runs this long after its job was to stop, in C code perhaps, never will."""
HELD_UP_S = 60.0
"""So does any other part of a job; one call of NumPy's on a large tile may take a while, and is let end."""

_log = logging.getLogger("spartan_ng.worker")


class WorkerStuck(SpartanError):
    """A part of a job does not stop."""


class StageCost(Protocol):
    """What an executor says of a stage."""

    seconds: float
    bytes_moved: int
    bytes_made: int
    stolen: int


class Runner(Protocol):
    """What a server needs of an executor."""

    def run(
        self,
        job: str,
        plan: Plan,
        inputs: Sequence[Key],
        outputs: Sequence[Key],
        cancelled: threading.Event,
        progress: Callable[[float], None] | None = None,
    ) -> Sequence[StageCost]:
        """Run this rank's stages."""
        ...

    @property
    def waiting(self) -> Mapping[str, tuple[int, str]]:
        """By job: for which rank this one has waited for a while, and in which stage."""
        ...

    def help(self, job: str, plan: Plan, stopped: threading.Event) -> None:
        """Do what others have not done yet of a job."""
        ...

    def forget(self, is_over: Callable[[str], bool]) -> None:
        """Keep nothing of plans whose keys are over."""
        ...

    def close(self) -> None:
        """Let the threads go."""
        ...


MakeRunner = Callable[[int, int, Store, RankedPeers, int], Runner]


class WorkerServer:
    """Joins the master at `master` and works until it is told to stop.

    Parameters
    ----------
    master : the master's address
    threads : threads for blocks
    memory_bytes : budget for tiles, None for no limit
    access : keys, where the master is reached over TCP
    bind : where this worker serves its tiles; by default the interface that reaches the master
    runner : makes an executor for `(rank, world, store, transfer, threads)`
    """

    def __init__(
        self,
        master: str,
        threads: int = 1,
        memory_bytes: int | None = None,
        access: Access | None = None,
        bind: str | None = None,
        runner: MakeRunner = Executor,
    ) -> None:
        raise_limit()
        self._identity = new_identity()
        self.name = name_of("worker", self._identity)
        access = access or Access()
        access.check(master)
        bind = bind or address_towards(master, self.name)
        self.error: SpartanError | None = None
        self.loop = Loop(lambda error: _log.error("an error of the worker's own", exc_info=error))
        pool = self._pool = BufferPool(memory_bytes)
        self.store = Store(pool)
        self.loop.every(_TIDY_S, pool.rest)  # an idle worker gives memory back, too
        self._threads = threads
        self._runner = runner
        self._runners: dict[tuple[str, ...], Runner] = {}
        self._plans: dict[tuple[str, str], Future[Plan]] = {}
        self._cancelled: dict[str, threading.Event] = {}
        self._begun: dict[str, tuple[float, str]] = {}
        """When a part began, and what the master has been told that it does."""
        self._timeouts: dict[str, float] = {}
        self._pressed: dict[str, float] = {}
        """Parts that have been told to stop, and when."""
        self.prints: Sequence[Prints] = ()
        """What stands in for this process's streams."""
        self.leaves_stuck = False
        """Whether somebody starts a worker in our place when we leave."""
        self._jobs = ThreadPoolExecutor(4096, "job")
        self._state = WorkerState(self.name)
        self._offers = Offers()
        self._stopping = threading.Event()
        pair = None if access.keys is None else Pair.fresh()
        self._tiles = TileServer(self.loop, bind, access, pair, self.store, self._offers)
        self._peers = Peers(self.loop, self._identity, Hello(PROTOCOL, "worker", label()), access)
        self._hello = Hello(
            PROTOCOL,
            "worker",
            label(),
            self._tiles.address,
            "" if pair is None else pair.public.decode(),
            host_identity(),
            threads,
            memory_bytes or 0,
        )
        self._address, self._access = master, access
        self._master: Socket | None = None
        self._leaves = False
        self._known = Members(0, ())
        """What the master has said last of who is there."""
        self._words = 0
        """How often it has been said that there is no master."""
        self._connect()
        self.loop.every(_LOOK_S, self._look)
        self.loop.every(_PRESS_S, self._press)
        self.loop.every(_TIDY_S, self._report)
        self._lack = Lack()
        self.loop.every(_TIDY_S, self._look_for_descriptors)
        self._telling = Telling(self._tell)
        self.loop.every(_TELL_S, self._telling.tell)

    def tell_printed(self, job: str, text: str) -> None:
        """Let a job's program know what its functions print. Thread-safe."""
        printed = Printed(job, encodable(text))
        self.loop.call(lambda: self._tell(printed))

    def run(self) -> None:
        """Work until told to stop; raises ConnectionFailed if the master is gone or refuses."""
        try:
            self.loop.run()
        finally:
            self._stopping.set()
            self._do(self._state.master_lost())
            self._peers.close(ConnectionFailed("the worker is stopping"))
            self._tiles.close()
            self._jobs.shutdown(wait=False, cancel_futures=True)
            for runner in self._runners.values():
                runner.close()
            self.loop.close()
            leave(self._tiles.address)
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        """End `run`. Thread-safe."""
        self.loop.stop()

    def leave(self) -> None:
        """End `run` once nobody needs our tiles, or after a while; the second time, now. Thread-safe."""
        if self._leaves:
            self.loop.stop()
        self._leaves = True
        self.loop.call(self._leave)

    def _leave(self) -> None:
        if not self._joined:
            self.loop.stop()
        self._tell(Leaving())
        self.loop.after(LEAVE_S, self.loop.stop)

    # --- the master

    def _connect(self) -> None:
        """Connect, or connect again: what is under way on a broken connection must not reach the next."""
        if self._master is not None:
            self.loop.release(self._master)
        self._connected = self._joined = False
        self._alone_since = self._tried_since = self.loop.now()
        self._handshake = Handshake(self._address)
        server = None if self._access.keys is None else self._access.keys.server_public
        self._master = self.loop.dealer(
            self._address, self._identity, self._access, server, self._connection_event
        )
        self.loop.receive(self._master, self._receive, self._master_broken, copy=True)

    def _connection_event(self, event: int) -> None:
        self._handshake.note(event)
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._connected = True
            assert self._master is not None, "what is connected has a socket"
            send_frames(self._master, greeting(structs.replace(self._hello, epoch=self._known.epoch)))
        elif event == zmq.EVENT_DISCONNECTED and self._connected:
            self._leave_master()

    def _master_broken(self, error: Exception) -> None:
        """The master said what cannot be read: begin anew."""
        _log.error("the master at %s is not understood", self._address, exc_info=error)
        if self._connected:
            self._leave_master()

    def _leave_master(self) -> None:
        """Stop what runs, and look for a master: this one, or one that follows it (`master.succession`)."""
        self._connected = self._joined = False
        self._do(self._state.master_lost())
        self.loop.call(self._connect_again)

    def _come_back(self, keeps: bool) -> None:
        """Tell a master what we know of the cluster; nothing, and have nothing, where it has given us up."""
        owners = {key[0].partition("/")[0] for key in self.store.complete()}
        if not keeps:
            self._known = Members(0, ())
            self._peers.use(self._known)
            self._tiles.forget_all()
            for owner in owners:
                self.store.drop_owner(owner)
            owners = set()
        self._tell(Back(self._known, tuple(owners)))

    def _connect_again(self) -> None:
        try:
            self._connect()
        except ConnectionFailed as error:  # others could be the master there by now
            self._end(error)

    def _look(self) -> None:
        """Where there is no master: say so, more and more rarely."""
        now = self.loop.now()
        if self._joined or now - self._tried_since <= ALONE_S:
            return
        alone_s = now - self._alone_since
        error = self._handshake.error(alone_s)
        if self._handshake.failed:
            self._end(error)
            return
        if alone_s > ALONE_S * 2**self._words:
            self._words += 1
            _log.warning("%s; this worker goes on trying", error)
        self._tried_since = now
        self._handshake = Handshake(self._address)  # what happens now and then, is no refusal

    def _tell(self, message: Any) -> None:
        if self._connected and self._master is not None:
            send(self._master, message)

    def _end(self, error: ConnectionFailed) -> None:
        self.error = error
        self.loop.stop()

    def _receive(self, frames: Sequence[Buffer]) -> None:
        message = TO_WORKER(frames)
        match message:
            case _ if not self._connected:
                pass  # from the connection that has just broken
            case Probe():
                self._tell(self._here(message))
            case Welcome():
                self._joined = True
                self._words = 0
                if self._known.epoch:
                    self._come_back(message.keeps)
            case Refused():
                self._end(self._handshake.refused(message))
            case Stop():
                self.loop.stop()
            case Authorized():
                self._tiles.authorize(dict(message.users))
            case _:
                self._do(self._state.handle(message))

    def _here(self, probe: Probe) -> Here:
        pool = self._pool
        return Here(
            probe.sent_ns,
            now_ns(),
            pool.used_bytes,
            pool.free_bytes,
            self.store.spilled_bytes,
            self._peers.received_bytes,
            self._tiles.sent_bytes,
        )

    def _do(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Tell():
                    self._tell(instruction.message)
                case StartPart():
                    self._start(instruction)
                case StopPart():
                    self._stop_part(instruction)
                case Drop():
                    for key in instruction.keys:
                        self.store.drop(key)
                    for owner in instruction.owners:
                        self.store.drop_owner(owner)
                case DropPlans():
                    self._drop_plans(instruction.client, instruction.plan_key)
                case Retain():
                    holds = instruction.holds
                    self.store.retain(instruction.owner, holds.serials, holds.last, holds.last_job)
                case UsePeers():
                    self._known = structs.replace(instruction.members, lost=(), leaving=())
                    self._peers.use(instruction.members)
                    for lost in instruction.members.lost:
                        self._lose(lost.name)

    def _lose(self, peer: str) -> None:
        """A worker is gone: so are its leases, and the executors whose ranks it was one of."""
        self._tiles.forget(peer)
        for names in [n for n in self._runners if peer in n]:
            self._runners.pop(names).close()

    # --- jobs

    def _start(self, part: StartPart) -> None:
        run = part.run
        at = (part.client, run.plan_key)
        if run.plan:
            self._plans[at] = self._jobs.submit(_load_plan, run.plan, part.client)
        runner = self._runners.get(part.names)
        if runner is None:
            transfer = RankedPeers(self._peers, part.names, self._offers)
            runner = self._runner(part.rank, len(part.names), self.store, transfer, self._threads)
            self._runners[part.names] = runner
        cancelled = self._cancelled[run.job] = threading.Event()
        self._begun[run.job] = (self.loop.now(), "")
        self._timeouts[run.job] = run.timeout_s
        self._telling.begin(run.job, run.observed)
        self._peers.timeout_s = min(self._timeouts.values())
        self._jobs.submit(self._run_part, part, self._plans[at], runner, cancelled)

    def _stop_part(self, part: StopPart) -> None:
        self._cancelled[part.job].set()
        self._pressed.setdefault(part.job, self.loop.now())
        interrupt(part.job)
        keys = set(part.keys)
        error = JobCancelled(f"job {part.job} was cancelled")
        self._peers.abort(lambda key: key[0] == part.job or key in keys, error)

    def _report(self) -> None:
        """Tell the master for whom parts wait, and what they run."""
        for job, (begun, told) in list(self._begun.items()):
            functions = running(job)
            waits = next((r.waiting[job] for r in self._runners.values() if job in r.waiting), None)
            if functions:
                text = f"runs {named(functions)}"
            elif waits is not None:
                text = f"waits for worker {waits[0]} in stage {waits[1]!r}"
            else:
                text = "computes"
            if text != told and self.loop.now() - begun > _TIDY_S / 2:
                self._begun[job] = (begun, text)
                self._tell(Doing(job, encodable(text)))

    def _look_for_descriptors(self) -> None:
        """Users' functions may have taken all that there are."""
        if self.leaves_stuck and self._lack.lasts(bool(self._begun), len(self.store.complete())):
            _log.warning("there are no descriptors left, and no job runs; this worker is replaced")
            self.error = WorkerStuck("users' functions keep all descriptors")
            self.loop.stop()

    def _press(self) -> None:
        """Interrupt functions whose parts have been told to stop; a part that never does takes us with it."""
        for job, since in self._pressed.items():
            calls = interrupt(job)
            if self.leaves_stuck and self.loop.now() - since > (STUCK_S if calls else HELD_UP_S):
                _log.warning("job %s does not stop; this worker is replaced", job)
                what = "a user's function" if calls else "a part"
                self.error = WorkerStuck(f"{what} of job {job} does not stop")
                self.loop.stop()

    def _run_part(
        self, part: StartPart, plan: Future[Plan], runner: Runner, cancelled: threading.Event
    ) -> None:
        """On a job thread: run the part, and let the loop's thread know how it ended."""
        run = part.run
        begun_ns = now_ns()
        try:
            with record.span("prepare", "", run.job):
                progress = self._progress(run.job) if run.progress else None
                program = plan.result()
                if run.values:
                    self._put_values(part, program)
            try:
                stats = runner.run(run.job, program, run.inputs, run.outputs, cancelled, progress)
            finally:
                self._finish_prints(run.job)
            costs: Stats = tuple((s.seconds, s.bytes_moved, s.bytes_made, s.stolen) for s in stats)
            with record.span("results", "", run.job):
                nnz, values = self._results(run.outputs, run.inline)
            self._note_part(run.job, begun_ns)
        except BaseException as error:  # noqa: BLE001 - whatever a job raises is its client's
            if not isinstance(error, JobCancelled):
                _log.info("job %s failed:\n%s", run.job, error_trace(error))
            kind, text = describe(error, f"{part.rank} ({label()})")
            self._note_part(run.job, begun_ns)
            self.loop.call(lambda: self._ended(run.job, self._state.failed(run.job, kind, text)))
        else:
            self.loop.call(lambda: self._ended(run.job, self._state.finished(run.job, costs, nnz, values)))
            runner.help(run.job, program, self._stopping)
            self._finish_prints(run.job)

    @staticmethod
    def _note_part(job: str, begun_ns: int) -> None:
        if record.is_on:
            record.note("part", "", begun_ns, now_ns(), job)

    def _put_values(self, part: StartPart, plan: Plan) -> None:
        """Store this rank's tiles of the small inputs that came with the job."""
        for position, value in unpack(part.run.values, load_function):
            slot = plan.slots[plan.inputs[position]]
            box = slot.tiling.box_on(slot.shape, part.rank)
            if isinstance(value, SourceTile):
                self.store.put(part.run.inputs[position], value)
            elif box is not None:
                region = tuple((lo, hi, 1) for lo, hi in box)
                self.store.put(part.run.inputs[position], read_region(value, region))

    def _finish_prints(self, job: str) -> None:
        """Tell what functions have begun to print, whatever they have done to the streams."""
        for stream in self.prints:
            stream.finish(job)
        Prints.stay(self.prints)

    def _ended(self, job: str, instructions: Sequence[Instruction]) -> None:
        del self._cancelled[job], self._begun[job], self._timeouts[job]
        self._telling.end(job)
        self._peers.timeout_s = min(self._timeouts.values(), default=self._peers.timeout_s)
        self._pressed.pop(job, None)
        try:
            self._do(instructions)
        except Exception as error:  # noqa: BLE001 - somebody waits for the end of the job
            kind, text = describe(error)
            self._tell(JobError(job, kind, f"how a part of the job ended cannot be told: {text}"))

    def _progress(self, job: str) -> Callable[[float], None]:
        """Report stages, but not more often than a person can see."""
        last = 0.0

        def report(done: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _PROGRESS_S:
                last = now
                self.loop.call(lambda: self._do([Tell(StagesDone(job, int(done)))]))

        return report

    def _results(self, outputs: Sequence[Key], inline: bool) -> tuple[tuple[int, ...], Blob]:
        """Non-zeros of the results' tiles here, and the tiles themselves if they are small."""
        tiles = []
        for key in outputs:
            try:
                tiles.append(self.store.get(key))
            except KeyError:
                tiles.append(None)  # the tiling gives this rank no tile
        nnz = tuple(int(t.nnz) if is_csr(t) else 0 for t in tiles)
        shown = inline and any(t is not None for t in tiles)
        return nnz, pack(tuple(tiles)) if shown else NOTHING

    def _drop_plans(self, client: str, plan_key: str | None) -> None:
        own_key = _own_key(client, plan_key or "")
        for runner in self._runners.values():
            runner.forget(lambda key: key == own_key if plan_key is not None else key.startswith(own_key))
        if plan_key is not None:
            self._plans.pop((client, plan_key), None)
            return
        for at in [at for at in self._plans if at[0] == client]:
            del self._plans[at]
        self._tiles.forget(client)
        # Its tiles' buffers come back when nobody looks at them any more.
        self.loop.after(_TIDY_S, self._pool.close_free)


def _load_plan(blob: Blob, client: str) -> Plan:
    """A client's plan; its key is made the client's own, because executors of all clients share programs."""
    plan = decode_plan(blob)
    return replace(plan, key=_own_key(client, plan.key))


def _own_key(client: str, plan_key: str) -> str:
    return f"{client}:{plan_key}"
