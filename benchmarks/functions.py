"""Common functions against NumPy on tiny, small, medium and large arrays, each call forced to its value.

`python -m benchmarks.functions sort unique tiny large` measures a part.

A ratio is the median over rounds of our time over NumPy's in the same round. The result counts as there
when NumPy can read it (`numpy.asarray`), as NumPy's own does when the call returns.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

import numpy

import spartan_ng
from spartan_ng.kernels.compiled.compile import compiler

SIZES = {"tiny": 10, "small": 1_000, "medium": 300_000, "large": 10_000_000}
"""Elements of the main operand."""
LIMITS = {"tiny": 5.0, "small": 5.0, "medium": 2.0, "large": 1.0}
"""What is promised for our time over NumPy's: bounds of tiny operations, and never slower on large ones."""
SAMPLE_S = 0.02
NOISE = 1.1
"""A ratio so near its limit is met: the clock says no more."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the table.

    Parameters
    ----------
    name : as it is printed
    call : with the namespace and the operands
    operands : makes NumPy operands of about so many elements
    """

    name: str
    call: Callable[..., Any]
    operands: Callable[[int], tuple[Any, ...]]


def one(n: int) -> tuple[Any, ...]:
    """A vector of uniform doubles."""
    return (numpy.random.default_rng(0).random(n),)


def two(n: int) -> tuple[Any, ...]:
    """Two vectors."""
    random = numpy.random.default_rng(0)
    return random.random(n), random.random(n)


def table(n: int) -> tuple[Any, ...]:
    """A matrix with ten columns."""
    return (numpy.random.default_rng(0).random((max(n // 10, 1), 10)),)


def square(n: int) -> tuple[Any, ...]:
    """A square matrix of about `n` elements, at most 1,500 rows, so that its products take seconds."""
    side = min(max(int(n**0.5), 2), 1500)
    return (numpy.random.default_rng(0).random((side, side)) + side * numpy.eye(side),)


def counts(n: int) -> tuple[Any, ...]:
    """Integers from 0 to 99."""
    return (numpy.random.default_rng(0).integers(0, 100, n),)


def picked(n: int) -> tuple[Any, ...]:
    """A vector and positions in it."""
    random = numpy.random.default_rng(0)
    return random.random(n), random.integers(0, n, n)


def knots(n: int) -> tuple[Any, ...]:
    """A vector, and a sorted grid of a hundred points."""
    return numpy.random.default_rng(0).random(n), numpy.linspace(0, 1, 100)


FUNCTIONS = (
    Function("add", lambda np, a, b: a + b, two),
    Function("multiply", lambda np, a: a * 2.0, one),
    Function("divide", lambda np, a, b: a / b, two),
    Function("power", lambda np, a: a**2, one),
    Function("sqrt", lambda np, a: np.sqrt(a), one),
    Function("exp", lambda np, a: np.exp(a), one),
    Function("sin", lambda np, a: np.sin(a), one),
    Function("maximum", lambda np, a, b: np.maximum(a, b), two),
    Function("less", lambda np, a, b: a < b, two),
    Function("where", lambda np, a, b: np.where(a > 0.5, a, b), two),
    Function("clip", lambda np, a: np.clip(a, 0.2, 0.8), one),
    Function("isnan", lambda np, a: np.isnan(a), one),
    Function("astype", lambda np, a: a.astype(np.float32), one),
    Function("sum", lambda np, a: a.sum(), one),
    Function("sum axis=0", lambda np, a: a.sum(axis=0), table),
    Function("mean", lambda np, a: np.mean(a), one),
    Function("std", lambda np, a: np.std(a), one),
    Function("max", lambda np, a: a.max(), one),
    Function("argmax", lambda np, a: a.argmax(), one),
    Function("any", lambda np, a: (a > 2).any(), one),
    Function("count_nonzero", lambda np, a: np.count_nonzero(a > 0.5), one),
    Function("nansum", lambda np, a: np.nansum(a), one),
    Function("cumsum", lambda np, a: np.cumsum(a), one),
    Function("diff", lambda np, a: np.diff(a), one),
    Function("sort", lambda np, a: np.sort(a), one),
    Function("argsort", lambda np, a: np.argsort(a, kind="stable"), one),
    Function("unique", lambda np, a: np.unique(a), counts),
    Function("searchsorted", lambda np, a, g: np.searchsorted(g, a), knots),
    Function("median", lambda np, a: np.median(a), one),
    Function("histogram", lambda np, a: np.histogram(a, 50)[0], one),
    Function("bincount", lambda np, a: np.bincount(a), counts),
    Function("take", lambda np, a, i: a[i], picked),
    Function("mask", lambda np, a: a[a > 0.5], one),
    Function("concatenate", lambda np, a, b: np.concatenate([a, b]), two),
    Function("transpose", lambda np, a: a.T.copy(), table),
    Function("roll", lambda np, a: np.roll(a, 3), one),
    Function("repeat", lambda np, a: np.repeat(a, 2), one),
    Function("matmul", lambda np, a: a @ a, square),
    Function("solve", lambda np, a: np.linalg.solve(a, a[0]), square),
    Function("norm", lambda np, a: np.linalg.norm(a), one),
    Function("cov", lambda np, a: np.cov(a, rowvar=False), table),
    Function("fft", lambda np, a: np.fft.fft(a), table),
    Function("zeros", lambda np, a: np.zeros(a.shape), one),
    Function("arange", lambda np, a: np.arange(a.size), one),
)
"""The table, in the order of NumPy's manual."""


@dataclass(frozen=True, slots=True)
class Row:
    """A function's figures: for each size NumPy's seconds, and our time over it."""

    name: str
    seconds: dict[str, float]
    ratios: dict[str, float]


def measure(function: Function, sizes: dict[str, int], rounds: int = 5) -> Row:
    """Both sides, taking turns; AssertionError where the results differ."""
    seconds, ratios = {}, {}
    for label, n in sizes.items():
        theirs = function.operands(n)
        ours = tuple(spartan_ng.array(a) for a in theirs)

        def plain(theirs: tuple[Any, ...] = theirs) -> Any:
            return function.call(numpy, *theirs)

        def lazy(ours: tuple[Any, ...] = ours) -> Any:
            return numpy.asarray(function.call(spartan_ng, *ours))

        numpy.testing.assert_allclose(lazy(), plain(), rtol=1e-9, atol=1e-12, err_msg=function.name)
        _warm(lazy)
        base, mine = [], []
        repeats = max(1, int(SAMPLE_S / max(_sample(plain, 1), 1e-7)))
        gc.collect()
        for _ in range(rounds):
            base.append(_sample(plain, repeats))
            mine.append(_sample(lazy, repeats))
        seconds[label] = median(base)
        ratios[label] = median(m / b for m, b in zip(mine, base, strict=True))
    return Row(function.name, seconds, ratios)


def _warm(run: Callable[[], Any]) -> None:
    """Run until a plan has found its kernels: twenty times or for a second, and then what it has ordered."""
    start = time.perf_counter()
    for _ in range(20):
        run()
        if time.perf_counter() - start > 1:
            break
    compiler.wait()
    run()


def _sample(run: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def text(rows: list[Row], sizes: dict[str, int]) -> str:
    """The table as Markdown, with what is beyond its limit in bold."""
    lines = [
        "### functions",
        "",
        "Common functions, each forced to its value: NumPy's time, and ours over it.",
        "",
        "| function | " + " | ".join(f"{label} ({n:,})" for label, n in sizes.items()) + " |",
        "|---|" + "---|" * len(sizes),
    ]
    for row in rows:
        found = [
            f"{row.seconds[s] * 1e6:,.0f} µs × " + _marked(row.ratios[s], LIMITS[s] * NOISE) for s in sizes
        ]
        lines.append(f"| {row.name} | " + " | ".join(found) + " |")
    means = [f"× {geometric_mean(row.ratios[s] for row in rows):.2f}" for s in sizes]
    within = [f"{sum(r.ratios[s] <= LIMITS[s] * NOISE for r in rows)} of {len(rows)}" for s in sizes]
    limits = [f"at most {LIMITS[s]:g}: {w}" for s, w in zip(sizes, within, strict=True)]
    lines += ["| geometric mean | " + " | ".join(means) + " |", "| goal | " + " | ".join(limits) + " |", ""]
    return "\n".join(lines)


def _marked(ratio: float, limit: float) -> str:
    return f"{ratio:.2f}" if ratio <= limit else f"**{ratio:.2f}**"


def main(chosen: Sequence[str] = ()) -> None:
    """Measure and print the table, or its part: names of functions and of sizes."""
    sizes = {label: n for label, n in SIZES.items() if label in chosen} or SIZES
    functions = [f for f in FUNCTIONS if f.name in chosen] or FUNCTIONS
    print(text([measure(f, sizes) for f in functions], sizes))


if __name__ == "__main__":
    main(sys.argv[1:])
