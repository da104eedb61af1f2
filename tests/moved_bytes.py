"""Predicted beside measured bytes of random programs on simulated workers: `python -m tests.moved_bytes 500`.

Nothing here depends on the machine or its load: a seed moves the same bytes each time.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.protocol import RunStats
from spartan_ng.config import config
from spartan_ng.plan.plan import Plan
from tests.fusion_programs import ours, program
from tests.test_programs import running_on

WORKERS = 4
CUTS = ("row", "column", "block")
NEAR = 0.05
"""A prediction may be off by this part of what moved."""


class Recorded(SimulatedBackend):
    """Simulated workers that keep what was run on them."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.ran: list[tuple[Plan, RunStats]] = []

    def run(self, plan: Plan, *others: Any) -> Any:
        """Run a plan, and note it."""
        refs, stats = super().run(plan, *others)
        self.ran.append((plan, stats))
        return refs, stats


@dataclass(frozen=True, slots=True)
class Moved:
    """What all plans of one program were predicted to move between workers, and what they did, in bytes."""

    seed: int
    predicted: int
    measured: int

    @property
    def is_near(self) -> bool:
        """Whether the prediction is off by a twentieth at most."""
        return abs(self.predicted - self.measured) <= NEAR * self.measured


def moved(seeds: Iterable[int]) -> Iterator[Moved]:
    """Run the programs of seeds, each with its arrays cut in a drawn way: left alone, ones as small as these
    would lie on one worker."""
    backend = Recorded(WORKERS)
    with running_on(backend), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in seeds:
            backend.ran.clear()
            with config.override(small_bytes=0, tiling=random.Random(seed).choice(CUTS)):
                sp.compute(*program(seed).run(sp, ours))
            predicted = sum(sum(plan.predicted_bytes) for plan, _ in backend.ran)
            yield Moved(seed, predicted, sum(stats.bytes_moved for _, stats in backend.ran))


def main(count: int) -> None:
    """Print how many predictions are near, and the others."""
    found = list(moved(range(count)))
    off = [m for m in found if not m.is_near]
    predicted, measured = sum(m.predicted for m in found), sum(m.measured for m in found)
    print(f"{len(found) - len(off)} of {len(found)} programs within {NEAR:.0%} of the bytes they moved;")
    print(f"{predicted:,} bytes predicted in all, {measured:,} moved")
    for m in sorted(off, key=lambda m: -abs(m.predicted - m.measured)):
        print(f"  program {m.seed}: {m.predicted:,} predicted, {m.measured:,} moved")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
