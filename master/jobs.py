"""A job on its way through the cluster: its states, its parts, and what they come to."""

from __future__ import annotations

from dataclasses import dataclass, field

from spartan_ng.wire.messages import JobDone, JobFinished, Key

JOB_STEPS: dict[tuple[str, str], str] = {
    ("running", "part finished"): "running",
    ("running", "last part finished"): "done",
    ("running", "part failed"): "stopping",
    ("running", "last part failed"): "gone",
    ("running", "cancelled"): "stopping",
    ("running", "worker lost"): "stopping",
    ("running", "last worker lost"): "gone",
    ("running", "client lost"): "stopping",
    ("running", "timed out"): "stopping",
    ("stopping", "part finished"): "stopping",
    ("stopping", "last part finished"): "gone",
    ("stopping", "part failed"): "stopping",
    ("stopping", "last part failed"): "gone",
    ("stopping", "cancelled"): "stopping",
    ("stopping", "worker lost"): "stopping",
    ("stopping", "last worker lost"): "gone",
    ("stopping", "client lost"): "stopping",
    ("stopping", "timed out"): "stopping",
}
"""`(state, event) → state` of a job. "last" means that no worker has a part left to report."""


@dataclass(slots=True)
class Job:
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

    def described(self, now_s: float) -> str:
        """How long it has run, and who waits for whom."""
        ran_s = 0.0 if self.since_s is None else now_s - self.since_s
        parts = [f"{self.state} for {ran_s:.0f} s"]
        for rank, name in enumerate(self.names):
            if name in self.waiting and name in self.doing:
                parts.append(f"worker {rank} {self.doing[name]}")
        return "; ".join(parts)

    def summary(self, job: str) -> JobDone:
        """What the client hears: a stage takes as long as on its slowest worker; bytes add up."""
        parts = [self.parts[n] for n in self.names]
        stats = tuple(
            (
                max(s for s, *_ in stage),
                *(sum(counts) for counts in zip(*(c for _, *c in stage), strict=True)),
            )
            for stage in zip(*[p.stats for p in parts], strict=True)
        )
        nnz = tuple(sum(counts) for counts in zip(*[p.nnz for p in parts], strict=True))
        return JobDone(job, stats, nnz, tuple(p.values for p in parts))


def form(part: JobFinished) -> tuple[int, int]:
    """What is equal in all parts of a job: the number of stages, and of results."""
    return len(part.stats), len(part.nnz)
