"""Every app on four workers: the bytes of smart tiling beside one tiling everywhere and the prediction.

Spartan (ATC '15), section 5.2 and Fig. 9. Bytes are counted, not timed: simulated workers move exactly the
bytes that real ones do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.app_workloads import WORKLOADS, Workload
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.costs import Profile

WORKERS = 4
TILINGS = ("row", "column", "block")
"""What is forced everywhere."""
BYTES = Profile(message_ns=0, task_ns=0)
"""A cluster whose messages and tasks are free: the cost that tilings are chosen by is the bytes, as in the
paper, and the arithmetic."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes that all plans of a run moved between workers, and were predicted to move."""

    measured: int
    predicted: int

    @property
    def error(self) -> float:
        """How far the prediction is off, in parts of what was measured."""
        return abs(self.predicted - self.measured) / max(self.measured, 1)


class _Counting(SimulatedBackend):
    """Simulated workers whose plans are counted."""

    measured = 0
    predicted = 0

    def run(self, plan: Any, inputs: Any, progress: Any = None) -> Any:
        """As of the simulated workers."""
        refs, stats = super().run(plan, inputs, progress)
        self.measured += stats.bytes_moved
        self.predicted += sum(plan.predicted_bytes)
        return refs, stats


def moved(
    workload: Workload,
    tiling: str | None,
    scale: float = 0.2,
    workers: int = WORKERS,
    profile: Profile | None = None,
) -> Moved:
    """Run a workload under a tiling (None: as chosen for `profile`), all of it on the workers."""
    before = session.current().backend
    backend = _Counting(workers, profile)
    session.use(backend)
    try:
        with config.override(tiling=tiling, small_bytes=0):
            workload(scale)
    finally:
        session.use(before)
        backend.close()
    return Moved(backend.measured, backend.predicted)


def main(scale: float = 0.2, workloads: Mapping[str, Workload] = WORKLOADS) -> None:
    """Print the table: what smart tiling moves where it counts bytes, what the forced tilings move, and what
    smart tiling moves where it counts time, with messages and tasks."""
    print(f"bytes moved between {WORKERS} workers")
    names = ("smart", "row", "column", "block", "predicted")
    head = "".join(f"{name:>13}" for name in names)
    print(f"{'app':<22}{head}{'off by':>8}{'for time':>13}{'off by':>8}")
    worst, beaten = 0.0, 0
    for name, workload in workloads.items():
        smart, timed = moved(workload, None, scale, profile=BYTES), moved(workload, None, scale)
        others = [moved(workload, tiling, scale).measured for tiling in TILINGS]
        row = "".join(f"{n:>13,}" for n in (smart.measured, *others, smart.predicted))
        print(f"{name:<22}{row}{smart.error:>8.1%}{timed.measured:>13,}{timed.error:>8.1%}", flush=True)
        worst = max(worst, smart.error, timed.error)
        beaten += smart.measured > min(others)
    print(f"predictions are off by at most {worst:.1%}; a forced tiling moves less for {beaten} apps")


if __name__ == "__main__":
    main()
