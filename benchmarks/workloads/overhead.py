"""What capturing, planning and dispatching cost where the arithmetic costs next to nothing."""

from __future__ import annotations

from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run
from benchmarks.installed import installed
from spartan_ng.config import config

LINKS = 100_000


def two_small() -> Inputs:
    """Two vectors of a thousand doubles."""
    random = numpy.random.default_rng(0)
    return {"a": random.random(1000), "b": random.random(1000)}


def numpy_small(inputs: Inputs) -> Run:
    """NumPy."""
    a, b = inputs["a"], inputs["b"]
    return lambda: float((a + b).sum())


def our_small(inputs: Inputs) -> Run:
    """The same text; forced by float()."""
    a, b = spartan_ng.asarray(inputs["a"]), spartan_ng.asarray(inputs["b"])
    return lambda: float((a + b).sum())


def jax_small(inputs: Inputs) -> Run:
    """The same text, not compiled, forced by float()."""
    import jax

    jax.config.update("jax_enable_x64", True)
    a, b = jax.numpy.asarray(inputs["a"]), jax.numpy.asarray(inputs["b"])
    return lambda: float((a + b).sum())


def shift_items(values: Any) -> Any:
    """Two hundred reads and writes of single elements."""
    for i in range(200):
        values[i] = values[i - 1]
    return values[:1]


def numpy_items(inputs: Inputs) -> Run:
    """NumPy."""
    values = inputs["a"].copy()
    return lambda: shift_items(values)


def our_items(inputs: Inputs) -> Run:
    """The same text."""
    values = spartan_ng.array(inputs["a"])
    return lambda: shift_items(values)


def body(X: Any, w: Any) -> Any:
    """The body of a gradient step."""
    return w - 0.001 * (X.T @ (X @ w))


def loop_inputs() -> Inputs:
    """A matrix so small that its arithmetic does not count."""
    random = numpy.random.default_rng(0)
    return {"X": random.random((64, 8)), "w": random.random(8)}


def numpy_loop(inputs: Inputs) -> Run:
    """NumPy."""
    return lambda: body(inputs["X"], inputs["w"])


def our_loop(inputs: Inputs) -> Run:
    """The same text with the fast path off: each run is captured, looked up, and dispatched."""
    with config.override(small_bytes=0):
        X = spartan_ng.asarray(inputs["X"]).persist()

    def run() -> Any:
        with config.override(small_bytes=0):
            return numpy.asarray(body(X, spartan_ng.asarray(inputs["w"])))

    return run


def chain(x: Any) -> Any:
    """A chain of additions."""
    for _ in range(LINKS):
        x = x + 1.0
    return x


def numpy_chain(inputs: Inputs) -> Run:
    """NumPy."""
    return lambda: chain(inputs["a"])


def our_chain(inputs: Inputs) -> Run:
    """The same text, captured as a graph of 100,000 nodes."""

    def run() -> Any:
        with config.override(small_bytes=0):
            return numpy.asarray(chain(spartan_ng.asarray(inputs["a"])))

    return run


SMALL = Case(
    name="small",
    title="(a + b).sum() on 1,000 doubles",
    inputs=two_small,
    sides={"numpy": numpy_small, OURS: our_small, **installed({"jax": jax_small})},
    seconds_limit=60e-6,
)

ITEMS = Case(
    name="items",
    title="a loop of 200 element reads and writes",
    inputs=two_small,
    sides={"numpy": numpy_items, OURS: our_items},
    ratio_limit=10.0,
)

LOOP_BODY = Case(
    name="loop-body",
    title="w - c * (X.T @ (X @ w)) on a 64 × 8 matrix, planned once, dispatched again and again, embedded",
    inputs=loop_inputs,
    sides={"numpy": numpy_loop, OURS: our_loop},
    seconds_limit=300e-6,
)

CHAIN = Case(
    name="chain",
    title=f"A chain of {LINKS:,} additions on 1,000 doubles, captured and evaluated as one graph",
    inputs=two_small,
    sides={"numpy": numpy_chain, OURS: our_chain},
    rounds=3,
)
