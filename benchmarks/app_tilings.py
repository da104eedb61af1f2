"""Every app on four workers: the bytes that smart tiling moves, beside one tiling everywhere and the prediction.

Spartan (ATC '15), section 5.2 and Fig. 9. Bytes are counted, not timed: simulated workers move exactly the
bytes that real ones do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import spartan_ng as np
from spartan_ng import session
from spartan_ng.apps.cox import cox
from spartan_ng.apps.kaplan_meier import kaplan_meier
from spartan_ng.apps.kmeans import kmeans
from spartan_ng.apps.logistic_regression import logistic_regression
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import config

WORKERS = 4
TILINGS = (None, "row", "column", "block")
"""What the optimizer chooses, and what is forced everywhere."""

Workload = Callable[[float], Any]
"""Runs an app on data whose bytes are proportional to the scale (8 MB at 1)."""


def _points(scale: float) -> Any:
    return np.random.default_rng(0).standard_normal((int(20_000 * scale), 50))


def _kmeans(scale: float) -> Any:
    X = _points(scale)
    return kmeans(X, 8, init=X[:8], max_iter=3, tol=0.0).centers


def _logistic_regression(scale: float) -> Any:
    X = _points(scale)
    y = (X[:, 0] + X[:, 1] > 0).astype(float)
    return logistic_regression(X, y, max_iter=3, tol=0.0).objective


def _cox(scale: float) -> Any:
    X = _points(scale)[:, :10]
    times = np.random.default_rng(1).exponential(size=X.shape[0])
    return cox(X, times, times < 1.0, max_iter=2)


def _kaplan_meier(scale: float) -> Any:
    random = np.random.default_rng(2)
    times = np.floor(1000 * random.exponential(size=int(1_000_000 * scale)))
    return kaplan_meier(times, times % 4 < 3)


WORKLOADS: Mapping[str, Workload] = {
    "kmeans": _kmeans,
    "logistic_regression": _logistic_regression,
    "cox": _cox,
    "kaplan_meier": _kaplan_meier,
}
"""The apps by name."""


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
