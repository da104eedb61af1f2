"""What planning takes: programs of 20 and of 100 operators, a plan that is found again, and fusion's search.

"On Optimizing Operator Fusion Plans", section 5.3 (compilation overhead, plan enumeration).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import FUSIONS, config
from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings

ROUNDS = 15
COLUMNS = [*((f, n) for f in FUSIONS for n in (1, 4)), ("cost", 8), ("cost", 16)]
"""Policies and workers."""


@dataclass(frozen=True, slots=True)
class Row:
    """One program: its operators, and the median milliseconds of planning it, by policy and workers."""

    name: str
    operators: int
    planned_ms: dict[tuple[str, int], float]
    hit_ms: float


def gradient_steps(count: int) -> Node:
    """Steps of logistic regression, unrolled: 12 operators a step."""
    x = sp.asarray(np.ones((1000, 50)))
    y, w = x[:, 0], sp.asarray(np.zeros(50))
    for _ in range(count):
        p = 1 / (1 + sp.exp(-(x @ w)))
        w = w - 1e-6 * (x.T @ (p - y))
    return _node(w)


def shared_values(count: int) -> Node:
    """Values that several later ones ask for, elementwise and along rows: ten operators a round."""
    x = sp.asarray(np.ones((1000, 50)))
    for _ in range(count):
        e = sp.exp(x - x.max(axis=1, keepdims=True))
        x = e / e.sum(axis=1, keepdims=True) + sp.sqrt(e) * (e - e.sum())
    return _node(x.sum(axis=0))


def _node(array: sp.ndarray) -> Node:
    """The graph behind an array."""
    return array._node()


def median_ms(run: Callable[[], object]) -> float:
    """The median of several runs, the first left out."""
    run()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def measure(name: str, root: Node) -> Row:
    """Plan a program anew and again."""

    def plan(fusion: str, n: int) -> None:
        roots = run_passes(PASSES, [root], ())
        lower(topological(roots), roots, Settings(Profile(workers=n), fusion=fusion), "benchmark")

    planned = {(f, n): median_ms(lambda f=f, n=n: plan(f, n)) for f, n in COLUMNS}  # type: ignore[misc]
    one = session.Session(EmbeddedBackend(1))
    operators = sum(n.op is not Op.DATA for n in topological([root]))
    hit = median_ms(lambda: one.plan([root]))
    one.backend.close()
    return Row(name, operators, planned, hit)


def run() -> list[Row]:
    """All programs."""
    with config.override(small_bytes=0):
        programs = {
            "gradient steps": gradient_steps,
            "shared values": shared_values,
        }
        return [
            measure(name, make(count))
            for name, make in programs.items()
            for count in ((2, 8) if name == "gradient steps" else (2, 9))
        ]


def report(rows: list[Row]) -> str:
    """A table in Markdown."""
    names = [f"{f}, {n} workers" if n > 1 else f for f, n in COLUMNS]
    lines = [
        "## planning: milliseconds to plan a program, by `config.fusion`, and to find its plan again",
        "",
        f"| program | operators | {' | '.join(names)} | found again |",
        f"|---|{'---:|' * (len(names) + 2)}",
    ]
    for row in rows:
        times = [f"{row.planned_ms[c]:.2f}" for c in COLUMNS]
        lines.append(f"| {row.name} | {row.operators} | {' | '.join(times)} | {row.hit_ms:.3f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Print the table."""
    print(report(run()))
