"""A worker process: one loop for all sockets, and its way with the master.

The loop's thread owns `WorkerState`, which decides. Jobs run in `worker.parts`, tiles move in
`worker.network`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import zmq
from msgspec import structs

from spartan_ng.costs.measured import measure_later, of_host
from spartan_ng.errors import ConnectionFailed, SpartanError
from spartan_ng.events import now_ns
from spartan_ng.memory import budget_bytes
from spartan_ng.system.processes import raise_descriptors
from spartan_ng.system.segments import host_identity
from spartan_ng.texts import encodable
from spartan_ng.wire.access import Access, leave
from spartan_ng.wire.connection import Handshake
from spartan_ng.wire.hosts import address_towards, label
from spartan_ng.wire.keys import Pair
from spartan_ng.wire.loop import Loop, Socket, send, send_frames
from spartan_ng.wire.messages import (
    PROTOCOL,
    TO_WORKER,
    Authorized,
    Back,
    Hello,
    Here,
    JobError,
    Leaving,
    Members,
    Printed,
    Probe,
    Refused,
    Retain,
    Stop,
    Welcome,
)
from spartan_ng.wire.pieces import Buffer
from spartan_ng.wire.port import greeting, name_of, new_identity
from spartan_ng.worker.descriptors import Lack
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.memory.pool import BufferPool, tiles_bytes
from spartan_ng.worker.memory.store import Store
from spartan_ng.worker.network.serving import TileServer
from spartan_ng.worker.network.transfer import Peers
from spartan_ng.worker.parts import MakeExecutor, Parts
from spartan_ng.worker.prints import Prints
from spartan_ng.worker.scheduling.state import (
    Drop,
    DropPlans,
    Instruction,
    StartPart,
    StopPart,
    Tell,
    TellLeft,
    UsePeers,
    WorkerState,
)
from spartan_ng.worker.scheduling.stealing import Offers

ALONE_S = 10.0
"""A worker without a master for this long says so, and goes on looking; one that is refused ends."""

LEAVE_S = 20.0
"""A worker that is to leave waits so long for those who need its tiles; systems kill after 30."""
_TIDY_S = 1.0
_LOOK_S = 0.5
_PRESS_S = 0.1
_TELL_S = 0.25
_log = logging.getLogger("spartan_ng.worker")


class WorkerStuck(SpartanError):
    """A part of a job does not stop."""


class WorkerServer:
    """Joins the master at `master` and works until it is told to stop.

    Parameters
    ----------
    master : the master's address
    threads : threads for blocks
    memory_bytes : budget for tiles and for the blocks that threads work on, None for no limit
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
        make_executor: MakeExecutor = Executor,
    ) -> None:
        raise_descriptors()
        self._identity = new_identity()
        self.name = name_of("worker", self._identity)
        access = access or Access()
        access.check(master)
        bind = bind or address_towards(master, self.name)
        self.error: SpartanError | None = None
        self.loop = Loop(lambda error: _log.error("an error of the worker's own", exc_info=error))
        pool = self._pool = BufferPool(None if memory_bytes is None else tiles_bytes(memory_bytes, threads))
        self.store = Store(pool)
        self.loop.every(_TIDY_S, pool.rest)  # an idle worker gives memory back, too
        self.leaves_stuck = False
        """Whether somebody starts a worker in our place when we leave."""
        self._state = WorkerState(self.name)
        offers = Offers()
        pair = None if access.keys is None else Pair.fresh()
        self._tiles = TileServer(self.loop, bind, access, pair, self.store, offers)
        hello = Hello(PROTOCOL, "worker", label())
        self._peers = Peers(self.loop, self._identity, hello, access, self.store.allocate)
        self._parts = Parts(
            self.loop,
            self.store,
            self._peers,
            offers,
            self._state,
            make_executor,
            threads,
            self._do,
            self._tell,
        )
        self._hello = Hello(
            PROTOCOL,
            "worker",
            label(),
            self._tiles.address,
            "" if pair is None else pair.public.decode(),
            host_identity(),
            threads,
            memory_bytes or 0,
            0,
            *of_host(),
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
        self.loop.every(_TIDY_S, self._parts.report)
        self._lack = Lack()
        self.loop.every(_TIDY_S, self._look_for_descriptors)
        self.loop.every(_TELL_S, self._parts.telling.tell)

    def take_streams(self, prints: Sequence[Prints]) -> None:
        """Have what stands in for this process's streams."""
        self._parts.prints = prints

    def tell_printed(self, job: str, text: str) -> None:
        """Let a job's program know what its functions print. Thread-safe."""
        printed = Printed(job, encodable(text))
        self.loop.call(lambda: self._tell(printed))

    def run(self) -> None:
        """Work until told to stop; raises ConnectionFailed if the master is gone or refuses."""
        measure_later(len(self._hello.processors), self._hello.memory_bytes or budget_bytes())
        try:
            self.loop.run()
        finally:
            self._parts.stopping()
            self._do(self._state.master_lost())
            self._peers.close(ConnectionFailed("the worker is stopping"))
            self._tiles.close()
            self._parts.close()
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
                    self._parts.start(instruction)
                case StopPart():
                    self._parts.stop(instruction)
                case Drop():
                    for key in instruction.keys:
                        self.store.drop(key)
                    for owner in instruction.owners:
                        self.store.drop_owner(owner)
                    self._parts.over(instruction.owners)
                case TellLeft(job, results, kind, text):
                    left = (*self.store.pin(job), *(key for key in results if self.store.holds(key)))
                    self._tell(JobError(job, kind, text, left))
                case DropPlans():
                    self._drop_plans(instruction.client, instruction.plan_key)
                case Retain():
                    holds = instruction.holds
                    self.store.retain(instruction.owner, holds.serials, holds.last, holds.last_job)
                case UsePeers():
                    self._known = structs.replace(instruction.members, lost=(), leaving=())
                    self._peers.use(instruction.members)
                    for lost in instruction.members.lost:
                        self._tiles.forget(lost.name)  # its leases
                        self._parts.lose(lost.name)

    # --- jobs

    def _look_for_descriptors(self) -> None:
        """Users' functions may have taken all that there are."""
        if self.leaves_stuck and self._lack.lasts(self._parts.any_runs, len(self.store.complete())):
            _log.warning("there are no descriptors left, and no job runs; this worker is replaced")
            self.error = WorkerStuck("users' functions keep all descriptors")
            self.loop.stop()

    def _press(self) -> None:
        """A part that was told to stop and never does takes us with it, where another one follows."""
        stuck = self._parts.press()
        if stuck is not None and self.leaves_stuck:
            job, what = stuck
            _log.warning("job %s does not stop; this worker is replaced", job)
            self.error = WorkerStuck(f"{what} of job {job} does not stop")
            self.loop.stop()

    def _drop_plans(self, client: str, plan_key: str | None) -> None:
        self._parts.drop_plans(client, plan_key)
        if plan_key is None:
            self._tiles.forget(client)
            # Its tiles' buffers come back when nobody looks at them any more.
            self.loop.after(_TIDY_S, self._pool.close_free)
