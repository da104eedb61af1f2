"""What processes hold: memory, descriptors and threads, as the kernel counts them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spartan_ng.backends.local import LocalCluster


@dataclass(frozen=True, slots=True)
class Usage:
    """One process at one time."""

    memory_bytes: int
    """Its own, and what it shares with others: not the files that it maps, whose pages the system takes and
    gives as it likes."""
    descriptors: int
    threads: int

    @classmethod
    def of(cls, pid: int) -> Usage:
        """What a process holds now."""
        lines = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        memory = sum(int(lines[kind].split()[0]) << 10 for kind in ("RssAnon", "RssShmem"))
        return cls(memory, len(os.listdir(f"/proc/{pid}/fd")), int(lines["Threads"]))

    @classmethod
    def least(cls, samples: list[Usage]) -> Usage:
        """The least of each number."""
        return cls(
            min(s.memory_bytes for s in samples),
            min(s.descriptors for s in samples),
            min(s.threads for s in samples),
        )

    def __str__(self) -> str:
        return f"{self.memory_bytes / 1e6:.1f} MB, {self.descriptors} descriptors, {self.threads} threads"


def own_bytes(pid: int) -> int:
    """Memory that a process has taken for itself: not what it maps of files and of others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def children(pid: int) -> list[int]:
    """The processes that a process has started, and that have not ended."""
    found = []
    for process in (p for p in os.listdir("/proc") if p.isdigit()):
        with suppress(OSError):  # it has just ended
            state, parent = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.append(int(process))
    return found


def of_cluster(cluster: LocalCluster) -> dict[str, Usage]:
    """What the cluster's processes and this one hold now."""
    assert cluster.master is not None, "the cluster runs"
    pids: Mapping[str, int] = {
        "program": os.getpid(),
        "master": cluster.master.pid,
        **{f"worker {i}": w.pid for i, w in enumerate(cluster.workers)},
    }
    return {name: Usage.of(pid) for name, pid in pids.items()}
