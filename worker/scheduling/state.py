"""A worker's decisions about jobs, without I/O: what it hears in, what its server has to do out.

`handle(message)` takes the master's messages, `finished` and `failed` the end of this worker's part of a
job. Parts follow `PART_STEPS`; messages are looked up in `_HANDLERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import Key
from spartan_ng.wire.codec import NOTHING, Blob
from spartan_ng.wire.messages import (
    CancelJob,
    Discard,
    DropOwner,
    ForgetPlan,
    JobError,
    JobFinished,
    Members,
    Retain,
    RunJob,
    Stats,
)

PART_STEPS: dict[tuple[str, str], str] = {
    ("running", "finished"): "done",
    ("running", "failed"): "failed",
    ("running", "cancelled"): "stopping",
    ("stopping", "finished"): "failed",
    ("stopping", "failed"): "failed",
    ("stopping", "cancelled"): "stopping",
}
"""`(state, event) → state` of a part."""


class StartPart(Struct, frozen=True):
    """Run this worker's part of a job; `plan` is empty where the server has it already."""

    run: RunJob
    client: str
    rank: int
    names: tuple[str, ...]


class StopPart(Struct, frozen=True):
    """Tell a running part to stop, and fail the reads that it waits for."""

    job: str
    keys: tuple[Key, ...]
    """Arrays that only this part may be waiting for."""


class Drop(Struct, frozen=True):
    """Drop tiles, and all that `owners` have."""

    keys: tuple[Key, ...]
    owners: tuple[str, ...]


class TellLeft(Struct, frozen=True):
    """Have tiles of a job that has lost a worker stay until they are dropped, its results among them; tell
    the master that the part has ended, and which they are."""

    job: str
    results: tuple[Key, ...]
    kind: str
    message: str


class DropPlans(Struct, frozen=True):
    """Forget one plan of a client, or all of them (`plan_key` is None)."""

    client: str
    plan_key: str | None


class UsePeers(Struct, frozen=True):
    """The workers have changed; reads from those who are gone fail."""

    members: Members


class Tell(Struct, frozen=True):
    """Send to the master."""

    message: Any


Instruction = StartPart | StopPart | Drop | TellLeft | Retain | DropPlans | UsePeers | Tell


class _Part(Struct):
    run: RunJob
    state: str = "running"
    keeps: tuple[Key, ...] = ()
    """Results that stay when it is stopped, and with them all its tiles."""


class WorkerState:
    """The jobs that this worker has a part in."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._names: tuple[str, ...] = ()
        self._parts: dict[str, _Part] = {}

    def handle(self, message: Any) -> list[Instruction]:
        """What to do after the master said `message`."""
        handler = _HANDLERS.get(type(message))
        return [] if handler is None else handler(self, message)

    def finished(self, job: str, stats: Stats, nnz: tuple[int, ...], values: Blob) -> list[Instruction]:
        """What to do after this worker's part of `job` ended well."""
        part = self._step(job, "finished")
        if part.state == "done":
            return [Tell(JobFinished(job, stats, nnz, values))]
        # It ended well, but the job is over: what it made goes, unless somebody goes on from it.
        return self._clean(part, "JobCancelled", "the job was stopped")

    def failed(self, job: str, kind: str, message: str) -> list[Instruction]:
        """What to do after this worker's part of `job` raised."""
        return self._clean(self._step(job, "failed"), kind, message)

    def master_lost(self) -> list[Instruction]:
        """What to do when the master is gone: all that runs stops."""
        owners = tuple({part.run.job for part in self._parts.values()})
        out: list[Instruction] = []
        for job in owners:
            out += self._cancel(CancelJob(job))
        return out

    def _run(self, message: RunJob) -> list[Instruction]:
        names = self._names[: message.world]
        client = message.job.rpartition("/")[0]
        # Both may be large, and whoever starts the part has them.
        self._parts[message.job] = _Part(replace(message, plan=NOTHING, values=NOTHING))
        out: list[Instruction] = [StartPart(message, client, names.index(self._name), names)]
        if message.released or message.retired:
            out.insert(0, Drop(message.released, message.retired))
        return out

    def _cancel(self, message: CancelJob) -> list[Instruction]:
        if message.job not in self._parts:
            ended = TellLeft(message.job, message.keeps, "JobCancelled", "the part had ended")
            return [ended] if message.keeps else []
        self._parts[message.job].keeps = message.keeps
        run = self._step(message.job, "cancelled").run
        others = {
            k for p in self._parts.values() if p.run is not run for k in (*p.run.inputs, *p.run.outputs)
        }
        return [StopPart(run.job, tuple(k for k in (*run.inputs, *run.outputs) if k not in others))]

    def _discard(self, message: Discard) -> list[Instruction]:
        for job in message.owners:
            if job in self._parts:  # its client waits no longer for what it leaves
                self._parts[job].keeps = ()
        return [Drop(message.keys, message.owners)]

    def _members(self, message: Members) -> list[Instruction]:
        self._names = tuple(m.name for m in message.members)
        return [UsePeers(message)]

    def _step(self, job: str, event: str) -> _Part:
        part = self._parts[job]
        part.state = PART_STEPS[part.state, event]
        if part.state in ("done", "failed"):
            del self._parts[job]
        return part

    def _clean(self, part: _Part, kind: str, message: str) -> list[Instruction]:
        if part.keeps:
            return [TellLeft(part.run.job, part.keeps, kind, message)]
        return [Drop(part.run.outputs, (part.run.job,)), Tell(JobError(part.run.job, kind, message))]


_HANDLERS: dict[type, Callable[[WorkerState, Any], list[Instruction]]] = {
    RunJob: WorkerState._run,
    CancelJob: WorkerState._cancel,
    Members: WorkerState._members,
    Discard: WorkerState._discard,
    DropOwner: lambda _, m: [Drop((), (m.owner,)), DropPlans(m.owner, None)],
    Retain: lambda _, m: [m],
    ForgetPlan: lambda _, m: [DropPlans(m.owner, m.plan_key)],
}
"""What the master may say, and who answers it."""
