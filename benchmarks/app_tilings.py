"""Every app on four workers: the bytes of smart tiling beside one tiling everywhere and the prediction.

Spartan (ATC '15), section 5.2 and Fig. 9. Bytes are counted, not timed: simulated workers move exactly the
bytes that real ones do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spartan_ng import session
from spartan_ng.apps.workloads import WORKLOADS, Workload
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import config

WORKERS = 4
TILINGS = (None, "row", "column", "block")
"""What the optimizer chooses, and what is forced everywhere."""


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


def moved(workload: Workload, tiling: str | None, scale: float = 0.2, workers: int = WORKERS) -> Moved:
    """Run a workload under a tiling, everything on the workers."""
    before = session.current().backend
    backend = _Counting(workers)
    session.use(backend)
    try:
        with config.override(tiling=tiling, small_bytes=0):
            workload(scale)
    finally:
        session.use(before)
        backend.close()
    return Moved(backend.measured, backend.predicted)


def main(scale: float = 0.2, workloads: Mapping[str, Workload] = WORKLOADS) -> None:
    """Print the table."""
    print(f"bytes moved between {WORKERS} workers")
    print(f"{'app':<22}{'smart':>12}{'row':>14}{'column':>14}{'block':>14}{'predicted':>14}{'off by':>8}")
    for name, workload in workloads.items():
        rows = [moved(workload, tiling, scale) for tiling in TILINGS]
        smart = rows[0]
        others = "".join(f"{r.measured:>14,}" for r in rows[1:])
        print(f"{name:<22}{smart.measured:>12,}{others}{smart.predicted:>14,}{smart.error:>8.1%}", flush=True)


if __name__ == "__main__":
    main()
