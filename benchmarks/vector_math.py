"""Vector math: elementary functions of many doubles by each library that the machine has, and by us.

Everybody may use all cores and writes into memory that is there already, where a caller can give it
(ours and jax take what their last result has left). Sides take turns; the least of the rounds counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numexpr
import numpy
from jax.scipy import special as jax_special
from scipy import special

import spartan_ng
from benchmarks.case import OURS
from spartan_ng.config import config

ELEMENTS = 10_000_000
ROUNDS = 5
LIMIT = 1.2
"""What ours may take, in times of the fastest other."""
Run = Callable[[], Any]

FUNCTIONS: dict[str, tuple[float, float]] = {
    "exp": (-20, 20),
    "log": (1e-6, 100),
    "log1p": (-0.9, 10),
    "expm1": (-5, 5),
    "pow": (1e-3, 50),
    "tanh": (-5, 5),
    "sin": (-100, 100),
    "cos": (-100, 100),
    "erf": (-4, 4),
}
"""Each function with the range its arguments are drawn from; pow is x ** 2.7."""


def sides(name: str, x: Any) -> Mapping[str, Run]:
    """For each library a run of the function over `x`."""
    out = numpy.empty_like(x)
    theirs, ours = jax.numpy.asarray(x), spartan_ng.array(x)
    texts = {"pow": "x ** 2.7"}
    found: dict[str, Run] = {}
    if name == "pow":
        traced = jax.jit(lambda a: a**2.7)
        found["numpy"] = lambda: numpy.power(x, 2.7, out=out)
        found[OURS] = lambda: numpy.asarray(ours**2.7)
    elif name == "erf":
        traced = jax.jit(jax_special.erf)
        found["scipy"] = lambda: special.erf(x, out=out)
        found[OURS] = lambda: numpy.asarray(special.erf(ours))
    else:
        traced = jax.jit(getattr(jax.numpy, name))
        found["numpy"] = lambda: getattr(numpy, name)(x, out=out)
        found[OURS] = lambda: numpy.asarray(getattr(spartan_ng, name)(ours))
    found["jax"] = lambda: traced(theirs).block_until_ready()
    if name != "erf":
        text = texts.get(name, f"{name}(x)")
        found["numexpr"] = lambda: numexpr.evaluate(text, {"x": x}, out=out)
    return found


def seconds(runs: Mapping[str, Run]) -> dict[str, float]:
    """The least of each side's times; results must agree."""
    expected = None
    for run in runs.values():
        for _ in range(2):
            value = numpy.array(run())
        expected = value if expected is None else expected
        numpy.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14)
    best = dict.fromkeys(runs, numpy.inf)
    for _ in range(ROUNDS):
        for side, run in runs.items():
            start = time.perf_counter()
            run()
            best[side] = min(best[side], time.perf_counter() - start)
    return best


def main(names: tuple[str, ...] = ()) -> None:
    """Print a line for each function."""
    jax.config.update("jax_enable_x64", True)
    random = numpy.random.default_rng(0)
    others = ("numpy", "scipy", "numexpr", "jax")
    print(f"| {ELEMENTS:.0e} doubles, ms | {' | '.join(others)} | {OURS} | of the best, goal {LIMIT} |")
    print("|---|---|---|---|---|---|---|")
    for name in names or tuple(FUNCTIONS):
        x = random.uniform(*FUNCTIONS[name], ELEMENTS)
        with config.override(kernels="compile"):
            best = seconds(sides(name, x))
        ratio = best[OURS] / min(s for side, s in best.items() if side != OURS)
        cells = " | ".join(f"{best[o] * 1e3:.0f}" if o in best else "" for o in (*others, OURS))
        print(f"| {name} | {cells} | {ratio:.2f} {'met' if ratio <= LIMIT else 'MISSED'} |", flush=True)
