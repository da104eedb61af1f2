"""Large arrays, where memory or the matrix unit is the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from benchmarks.installed import installed

SUM_ELEMENTS = 50_000_000
MATMUL_SIZE = 4000


def two_vectors() -> Inputs:
    """Two vectors of doubles."""
    random = numpy.random.default_rng(0)
    return {"X": random.random(SUM_ELEMENTS), "Y": random.random(SUM_ELEMENTS)}


def two_matrices() -> Inputs:
    """Two square matrices of doubles."""
    random = numpy.random.default_rng(0)
    shape = (MATMUL_SIZE, MATMUL_SIZE)
    return {"X": random.random(shape), "Y": random.random(shape)}


def numpy_side(compute: Callable[[Any, Any, Any], Any]) -> Side:
    """`compute(numpy, X, Y)` on the inputs themselves."""

    def side(inputs: Inputs) -> Run:
        X, Y = inputs["X"], inputs["Y"]
        return lambda: compute(numpy, X, Y)

    return side


def our_side(compute: Callable[[Any, Any, Any], Any]) -> Side:
    """The same text with `import spartan_ng as np`."""

    def side(inputs: Inputs) -> Run:
        X, Y = spartan_ng.asarray(inputs["X"]), spartan_ng.asarray(inputs["Y"])
        return lambda: numpy.asarray(compute(spartan_ng, X, Y))

    return side


def dask_side(compute: Callable[[Any, Any, Any], Any]) -> Side:
    """The same text on dask arrays, threaded, with dask's own choice of chunks."""

    def side(inputs: Inputs) -> Run:
        import dask.array as da

        X, Y = da.from_array(inputs["X"], chunks="auto"), da.from_array(inputs["Y"], chunks="auto")
        return lambda: compute(da, X, Y).compute(scheduler="threads")

    return side


def jax_side(compute: Callable[[Any, Any, Any], Any]) -> Side:
    """The same text compiled by jax, in double precision."""

    def side(inputs: Inputs) -> Run:
        import jax

        jax.config.update("jax_enable_x64", True)
        X, Y = jax.numpy.asarray(inputs["X"]), jax.numpy.asarray(inputs["Y"])
        jitted = jax.jit(lambda x, y: compute(jax.numpy, x, y))
        return lambda: numpy.asarray(jitted(X, Y))

    return side


def sum_product(np: Any, X: Any, Y: Any) -> Any:
    """The workload's text."""
    return np.sum(X * Y)


def matmul(np: Any, X: Any, Y: Any) -> Any:
    """The workload's text."""
    return np.matmul(X, Y)


def kernel_side(inputs: Inputs) -> Run:
    """sum(X * Y) as a hand-written parallel loop."""
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def kernel(X: Any, Y: Any) -> float:
        total = 0.0
        for i in numba.prange(X.size):
            total += X[i] * Y[i]
        return total

    X, Y = inputs["X"], inputs["Y"]
    return lambda: kernel(X, Y)


def _sides(compute: Callable[[Any, Any, Any], Any]) -> dict[str, Side]:
    others = {"dask": dask_side(compute), "jax": jax_side(compute)}
    return {"numpy": numpy_side(compute), OURS: our_side(compute), **installed(others)}


SUM_PRODUCT = Case(
    name="sum-product",
    title=f"sum(X * Y) over {SUM_ELEMENTS:.0e} doubles",
    inputs=two_vectors,
    sides=_sides(sum_product) | {"numba kernel": kernel_side},
    bytes_read=16 * SUM_ELEMENTS,
    ratio_limit=0.5,
)

MATMUL = Case(
    name="matmul",
    title=f"X @ Y, {MATMUL_SIZE} × {MATMUL_SIZE} doubles",
    inputs=two_matrices,
    sides=_sides(matmul),
    rounds=5,
    ratio_limit=1.05,
)
