"""Jobs on their way through the cluster: their states, their parts, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.arrays import Key
from spartan_ng.master.peers import Client, Worker
from spartan_ng.wire.messages import (
    Cancel,
    CancelJob,
    Discard,
    Doing,
    Happened,
    JobDone,
    JobError,
    JobFailed,
    JobFinished,
    Member,
    Printed,
    Progress,
    StagesDone,
    Submit,
)

Instructions = list[tuple[str, Any]]
"""`(receiver, message)` in the order of sending."""

JOB_STEPS: dict[tuple[str, str], str] = {
    ("running", "part finished"): "running",
    ("running", "last part finished"): "done",
    ("running", "part failed"): "stopping",
    ("running", "last part failed"): "gone",
    ("running", "cancelled"): "stopping",
    ("running", "worker lost"): "saving",
    ("running", "set aside"): "saving",
    ("running", "last worker lost"): "gone",
    ("running", "client lost"): "stopping",
    ("running", "timed out"): "stopping",
    ("stopping", "part finished"): "stopping",
    ("stopping", "last part finished"): "gone",
    ("stopping", "part failed"): "stopping",
    ("stopping", "last part failed"): "gone",
    ("stopping", "cancelled"): "stopping",
    ("stopping", "set aside"): "stopping",
    ("stopping", "worker lost"): "stopping",
    ("stopping", "last worker lost"): "gone",
    ("stopping", "client lost"): "stopping",
    ("stopping", "timed out"): "stopping",
    ("saving", "part failed"): "saving",
    ("saving", "last part failed"): "saved",
    ("saving", "worker lost"): "saving",
    ("saving", "last worker lost"): "saved",
    ("saving", "cancelled"): "stopping",
    ("saving", "set aside"): "saving",
    ("saving", "client lost"): "stopping",
    ("saving", "waited for too long"): "late",
    ("late", "part failed"): "late",
    ("late", "last part failed"): "gone",
    ("late", "worker lost"): "late",
    ("late", "last worker lost"): "gone",
    ("late", "cancelled"): "late",
    ("late", "set aside"): "late",
    ("late", "client lost"): "stopping",
}
"""`(state, event) → state` of a job. "last" means that no worker has a part left to report. Where a worker is
lost, or the client sets a job aside, what workers have of it is saved for the client."""

SAVE_S = 1.0
"""A client waits so long at most for what workers have left of its job."""


class Job(Struct):
    """A job on its way."""

    client: str
    names: tuple[str, ...]
    outputs: tuple[Key, ...]
    waiting: set[str]
    state: str = "running"
    parts: dict[str, JobFinished] = field(default_factory=dict)
    stages: dict[str, int] = field(default_factory=dict)
    shown: int = 0
    deadline_s: float = 0.0
    since_s: float | None = None
    """When the clock was first looked at while it ran."""
    doing: dict[str, str] = field(default_factory=dict)
    """What workers have been at for a while."""
    observed: bool = False
    """Whether its client wants to know what happens."""
    left: dict[str, tuple[Key, ...]] = field(default_factory=dict)
    """What workers have kept of it, where it is saved,"""
    why: tuple[str, str] = ("", "")
    """the error's kind, and what is to be said of that; it was"""
    saved_s: float = 0.0

    def described(self, now_s: float) -> str:
        """How long it has run, and who waits for whom."""
        ran_s = 0.0 if self.since_s is None else now_s - self.since_s
        parts = [f"{self.state} for {ran_s:.0f} s"]
        for rank, name in enumerate(self.names):
            if name in self.waiting and name in self.doing:
                parts.append(f"worker {rank} {self.doing[name]}")
        return "; ".join(parts)

    def summary(self, job: str) -> JobDone:
        """What the client hears: a stage takes from when all workers had done the one before until all have
        done it, so that nobody's waiting for others counts twice; bytes add up."""
        parts = [self.parts[n] for n in self.names]
        done = [max(ends) for ends in zip(*[accumulate(s for s, *_ in p.stats) for p in parts], strict=True)]
        took = [end - before for before, end in pairwise([0.0, *done])]
        stages = zip(*[p.stats for p in parts], strict=True)
        counts = [map(sum, zip(*(c for _, *c in stage), strict=True)) for stage in stages]
        stats = tuple((s, *c) for s, c in zip(took, counts, strict=True))
        nnz = tuple(sum(counts) for counts in zip(*[p.nnz for p in parts], strict=True))
        return JobDone(job, stats, nnz, tuple(p.values for p in parts))


class Jobs:
    """All jobs that run on `workers` for `clients`, who come and go; the clock begins at `now_s`."""

    def __init__(self, workers: Mapping[str, Worker], clients: Mapping[str, Client], now_s: float) -> None:
        self._workers, self._clients = workers, clients
        self._jobs: dict[str, Job] = {}
        self._now_s = now_s

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    @property
    def busy(self) -> set[str]:
        """The workers whose tiles jobs may read: who has finished its part waits for the others'."""
        return {name for record in self._jobs.values() for name in record.names}

    def described(self) -> tuple[tuple[str, str], ...]:
        """What there is to say of each job, for people."""
        return tuple((job, record.described(self._now_s)) for job, record in self._jobs.items())

    def check(self, peer: str, message: Submit) -> None:
        """ValueError for a job that no program of ours would send."""
        if message.job in self or not message.job.startswith(peer + "/"):
            raise ValueError(f"{message.job!r} is no new job of {peer}")
        if not 1 <= message.ranks <= message.world:
            raise ValueError(f"{message.ranks} of {message.world} ranks cannot take part")
        if any(owner != peer for owner, _ in message.outputs):
            raise ValueError("results are their client's own")

    def begin(self, client: str, names: tuple[str, ...], message: Submit) -> None:
        """A job runs on the workers `names`."""
        self._jobs[message.job] = Job(
            client,
            names,
            message.outputs,
            set(names),
            deadline_s=message.deadline_s,
            observed=message.observed,
        )

    def tick(self, now_s: float) -> Instructions:
        """End what has run for too long."""
        self._now_s = now_s
        out: Instructions = []
        for job, record in list(self._jobs.items()):
            if record.since_s is None:
                record.since_s = now_s
            elif record.state == "running" and 0 < record.deadline_s <= now_s - record.since_s:
                text = f"the job has run for more than {record.deadline_s:g} s: {record.described(now_s)}"
                out += self._step(job, "timed out", "JobTimeout", text)
            elif record.state == "saving" and now_s - record.saved_s >= SAVE_S:
                out += self._step(job, "waited for too long")
        return out

    def cancel(self, peer: str, message: Cancel) -> Instructions:
        """A client wants its job to end."""
        record = self._jobs.get(message.job)
        if record is None or record.client != peer:
            return []
        if not message.goes_on:
            return self._step(message.job, "cancelled", "JobCancelled", "the job was cancelled")
        if record.state == "running":
            self._save(record, "JobSetAside", "the job was stopped for workers that have joined")
        return self._step(message.job, "set aside")

    def finished(self, peer: str, message: JobFinished) -> Instructions:
        """A worker's part is done."""
        record = self._jobs.get(message.job)
        if record is None or peer not in record.waiting or record.state in ("saving", "late"):
            return []  # an answer to the order that it has not heard yet follows
        # Whoever counts otherwise costs himself his connection, as the guard has it, and not all the summary.
        if any(_form(part) != _form(message) for part in record.parts.values()):
            raise ValueError(f"the parts of job {message.job} differ in their form")
        record.waiting.discard(peer)
        record.parts[peer] = message
        return self._step(message.job, "part finished" if record.waiting else "last part finished")

    def failed(self, peer: str, message: JobError) -> Instructions:
        """A worker's part has failed."""
        record = self._jobs.get(message.job)
        if record is None or peer not in record.waiting:
            return []
        record.waiting.discard(peer)
        if record.state == "saving":
            record.left[peer] = message.left
        event = "part failed" if record.waiting else "last part failed"
        return self._step(message.job, event, message.kind, message.message)

    def worker_lost(self, peer: str, member: Member) -> Instructions:
        """A worker is gone, and the tiles that a job was to make or read there."""
        out: Instructions = []
        for job in [j for j, record in self._jobs.items() if peer in record.names]:
            record = self._jobs[job]
            needed = peer in record.waiting or record.state == "running"
            record.waiting.discard(peer)
            record.left.pop(peer, None)
            if record.state == "running":
                rank = record.names.index(peer)
                text = f"worker {rank} ({member.label}) died while the job ran; its tiles are lost"
                self._save(record, "WorkerDied", text)
            if needed:
                event = "worker lost" if record.waiting else "last worker lost"
                out += self._step(job, event, *record.why)
        return out

    def _save(self, record: Job, kind: str, text: str) -> None:
        """Wait for what is left of a job; who has done its part has something left of it, too."""
        record.waiting = {name for name in record.names if name in self._workers}
        record.why, record.saved_s = (kind, text), self._now_s

    def client_lost(self, peer: str) -> Instructions:
        """Nobody wants a client's jobs any more."""
        out: Instructions = []
        for job in [j for j, record in self._jobs.items() if record.client == peer]:
            out += self._step(job, "client lost", "JobCancelled", "the client is gone")
        return out

    def stages_done(self, peer: str, message: StagesDone) -> Instructions:
        """Tell the client when the slowest worker has come further."""
        record = self._jobs.get(message.job)
        if record is None or record.state != "running":
            return []
        record.stages[peer] = message.done
        done = min(record.stages.get(n, 0) for n in record.names)
        if done <= record.shown:
            return []
        record.shown = done
        return [(record.client, Progress(message.job, done))]

    def doing(self, peer: str, message: Doing) -> Instructions:
        """Note what a worker is at."""
        record = self._jobs.get(message.job)
        if record is not None:
            record.doing[peer] = message.text
        return []

    def happened(self, peer: str, message: Happened) -> Instructions:
        """Tell a client that wants to know."""
        record = self._jobs.get(message.job)
        return [] if record is None or not record.observed else self.told(peer, message)

    def told(self, peer: str, message: Printed | Happened) -> Instructions:
        """Tell a job's client what a worker says, and which worker it is."""
        record = self._jobs.get(message.job)
        if record is None or peer not in record.names or record.client not in self._clients:
            return []
        where = f"worker {record.names.index(peer)} ({self._workers[peer].member.label})"
        return [(record.client, replace(message, worker=where))]

    def _step(self, job: str, event: str, kind: str = "", text: str = "") -> Instructions:
        """Move a job along `JOB_STEPS`; say what the new state asks for."""
        record = self._jobs[job]
        before, record.state = record.state, JOB_STEPS[record.state, event]
        out: Instructions = []
        if record.state == "done":
            out.append((record.client, record.summary(job)))
        if before == "saving" and record.state in ("saved", "late"):
            left = tuple(record.left.get(name, ()) for name in record.names)
            out.append((record.client, JobFailed(job, *record.why, left)))
        fails = before in ("running", "saving") and record.state in ("stopping", "gone")
        if fails and record.client in self._clients:
            out.append((record.client, JobFailed(job, kind, text)))
        if before == "running" and record.state in ("stopping", "saving", "gone"):
            keeps = record.outputs if record.state == "saving" else ()
            out += [(n, CancelJob(job, keeps)) for n in record.names if n in record.waiting]
            for name in record.names:  # who has finished may do the work of others
                if name in self._workers:
                    self._workers[name].tell(self._now_s)
        if record.state == "gone" and before != "late":
            discard = Discard(record.outputs, (job,))
            out += [(n, discard) for n in record.names if n in self._workers]
        if record.state in ("done", "saved", "gone"):
            del self._jobs[job]
        return out


def _form(part: JobFinished) -> tuple[int, int]:
    """What is equal in all parts of a job: the number of stages, and of results."""
    return len(part.stats), len(part.nnz)
