"""Single calls on small arrays against NumPy: what is asked before NumPy does the work.

`python -m benchmarks.small_calls "a + b" dot` measures a part. A figure is the calling thread's processor
time: the least of many short runs of both sides in turn, so that nothing else of the machine is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from time import thread_time_ns
from typing import Any

import numpy

import spartan_ng

SIZES = {"80 B": 10, "1 kB": 125, "10 kB": 1_250, "100 kB": 12_500}
"""Elements of the operands, of eight bytes each."""
ROUNDS = 15
SAMPLE_NS = 500_000

STATEMENTS = (
    *("a + b", "a * 2.0", "2.0 - a", "-a", "a < b", "a ** 2", "a @ b", "m @ m", "a += b", "a[3:-3] *= 0.5"),
    *("a[3]", "m[1, 1]", "m[1]", "m[:, 1]", "a[2:-2]", "a[::2]", "a[i]", "a[a > 0.5]", "m[i, i]"),
    *("a[3] = 0.5", "a[2:-2] = b[2:-2]", "m[:, 1] = 0.5", "a[b > 0.5] = 0.5", "m[i, i] = 0.5"),
    *("a[3] + a[4]", "a[3] < 0.5", "for x in m[0]: x", "m.T", "m.ravel()", "a.reshape(-1, 5)", "a.copy()"),
    *("np.sqrt(a)", "np.add(a, b)", "np.maximum(a, 0.5)", "np.add(a, b, out=c)", "np.where(a > 0.5, a, b)"),
    *("np.clip(a, 0.2, 0.8)", "np.isnan(a)", "a.astype(np.float32)", "a.sum()", "m.sum(axis=0)", "a.max()"),
    *("a.mean()", "np.std(a)", "a.argmax()", "a.any()", "np.cumsum(a)", "np.diff(a)", "np.sort(a)"),
    *("np.dot(a, b)", "np.outer(a[:9], b[:9])", "np.einsum('i,i->', a, b)", "np.linalg.norm(a)"),
    *("np.zeros(9)", "np.zeros((3, 3))", "np.arange(9)", "np.linspace(0.0, 1.0, 9)", "np.array([1.0, 2.0])"),
    *("np.concatenate([a, b])", "np.stack([a, b])", "np.roll(a, 1)", "np.asarray(a)", "np.zeros_like(a)"),
    *(
        "np.modf(a)",
        "np.add.reduce(a)",
        "np.add.outer(a[:9], b[:9])",
        "np.multiply(a, b, where=a > 0.5, out=c)",
    ),
    *("np.place(c, a > 0.5, b)", "np.copyto(c, b)", "np.put(c, [0, 1], 2.0)", "np.extract(a > 0.5, a)"),
    *(
        "np.tile(a, 2)",
        "np.select([a > 0.5], [a], b)",
        "np.choose(i % 2, [i, 7])",
        "np.diag(m[:9, :9])",
        "np.eye(9)",
    ),
    *("m[:, [0, 1]]", "m[:, i]", "m[:, [0, 1]] = 0.5", "for x in a[:99].flat: x"),
    "np.apply_along_axis(np.sum, 0, m[:, :4])",
    *(
        "memoryview(a)[0]",
        "np.stack([m[:4, :4]] * 9) @ m[:4, :4]",
        "np.exp(-((m[1:, 1:] - m[:-1, :-1]) ** 2))",
    ),
)
"""What is measured, from operators to joins."""


@dataclass(frozen=True, slots=True)
class Row:
    """A statement's figures at each size: NumPy's nanoseconds, and ours."""

    statement: str
    theirs: dict[str, float]
    ours: dict[str, float]


def operands(np: Any, n: int) -> dict[str, Any]:
    """The names that statements know, for vectors of `n` elements and a matrix of about as many."""
    random, side = numpy.random.default_rng(0), max(int(n**0.5), 4)
    return {
        "np": np,
        "a": np.array(random.random(n)),
        "b": np.array(random.random(n)),
        "c": np.zeros(n),
        "m": np.array(random.random((side, side))),
        "i": np.arange(side),
    }


def measure(statement: str, sizes: dict[str, int], rounds: int = ROUNDS) -> Row:
    """Both sides, taking turns."""
    code = f"def run(np, a, b, c, m, i, times):\n    for _ in range(times):\n        {statement}\n"
    names: dict[str, Any] = {}
    exec(code, names)
    run = names["run"]
    row = Row(statement, {}, {})
    for label, n in sizes.items():
        sides = [(row.theirs, operands(numpy, n)), (row.ours, operands(spartan_ng, n))]
        for found, given in sides:
            run(**given, times=2)
            found[label] = float("inf")
        times = max(1, int(SAMPLE_NS / max(_sample(run, sides[0][1], 1), 1)))
        for _ in range(rounds):
            for found, given in sides:
                found[label] = min(found[label], _sample(run, given, times))
    return row


def _sample(run: Any, given: dict[str, Any], times: int) -> float:
    start = thread_time_ns()
    run(**given, times=times)
    return (thread_time_ns() - start) / times


def text(rows: Sequence[Row], sizes: dict[str, int]) -> str:
    """The table as Markdown: NumPy's time, and ours over it and beyond it."""
    lines = [
        "### small calls",
        "",
        "NumPy's time for a call, ours over it, and what it takes longer in microseconds.",
        "",
        "| call | " + " | ".join(sizes) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for row in rows:
        cells = [
            f"{row.theirs[s] / 1e3:.2f} µs × {row.ours[s] / row.theirs[s]:.2f} "
            f"({(row.ours[s] - row.theirs[s]) / 1e3:+.2f})"
            for s in sizes
        ]
        lines.append(f"| `{row.statement}` | " + " | ".join(cells) + " |")
    means = [
        f"× {geometric_mean(r.ours[s] / r.theirs[s] for r in rows):.2f} "
        f"({sum(r.ours[s] - r.theirs[s] for r in rows) / len(rows) / 1e3:+.2f})"
        for s in sizes
    ]
    lines += ["| mean | " + " | ".join(means) + " |", ""]
    return "\n".join(lines)


def main(chosen: Sequence[str] = ()) -> None:
    """Measure and print the table, or the statements that have one of the texts in them."""
    statements = [s for s in STATEMENTS if not chosen or any(c in s for c in chosen)]
    print(text([measure(s, SIZES) for s in statements], SIZES))


if __name__ == "__main__":
    main(sys.argv[1:])
