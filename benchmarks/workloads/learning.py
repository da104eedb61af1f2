"""Iterative learning over a tall matrix: one text, run by every array library."""

from __future__ import annotations

from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from benchmarks.installed import installed

ROWS, COLUMNS = 2_000_000, 50
ITERATIONS = 10
RATE = 1e-6
CLUSTER_ROWS, CLUSTERS = 400_000, 32


def labelled_points() -> Inputs:
    """Points and the 0/1 labels that a noisy linear rule gives them."""
    random = numpy.random.default_rng(0)
    X = random.standard_normal((ROWS, COLUMNS))
    w = random.standard_normal(COLUMNS)
    y = (X @ w + random.standard_normal(ROWS) > 0).astype(numpy.float64)
    return {"X": X, "y": y, "start": numpy.zeros(COLUMNS)}


def blobs() -> Inputs:
    """Points around as many random places as there are clusters, and centers to start from."""
    random = numpy.random.default_rng(0)
    places = 4 * random.standard_normal((CLUSTERS, COLUMNS))
    X = places[random.integers(CLUSTERS, size=CLUSTER_ROWS)] + random.standard_normal((CLUSTER_ROWS, COLUMNS))
    return {"X": X, "start": X[:CLUSTERS].copy()}


def gradient_descent(np: Any, X: Any, y: Any, w: Any) -> Any:
    """Logistic regression by gradient descent: weights after the last iteration."""
    for _ in range(ITERATIONS):
        p = 1 / (1 + np.exp(-(X @ w)))
        w = w - RATE * (X.T @ (p - y))
    return w


def lloyd(np: Any, X: Any, centers: Any) -> Any:
    """Three iterations of k-means."""
    ids = np.arange(CLUSTERS)
    for _ in range(3):
        labels = ((centers * centers).sum(axis=1) - 2 * (X @ centers.T)).argmin(axis=1)
        member = (labels[:, None] == ids).astype(X.dtype)
        centers = (member.T @ X) / np.maximum(member.sum(axis=0), 1)[:, None]
    return centers


def numpy_logistic(inputs: Inputs) -> Run:
    """NumPy."""
    return lambda: gradient_descent(numpy, inputs["X"], inputs["y"], inputs["start"])


def our_logistic(inputs: Inputs) -> Run:
    """The same text with spartan_ng; the loop unrolls into one graph."""
    X, y, w = (spartan_ng.asarray(inputs[k]) for k in ("X", "y", "start"))
    return lambda: numpy.asarray(gradient_descent(spartan_ng, X, y, w))


def dask_logistic(inputs: Inputs) -> Run:
    """The same text with dask, threaded."""
    import dask.array as da

    chunk = ROWS // 16
    X, y = da.from_array(inputs["X"], chunks=(chunk, COLUMNS)), da.from_array(inputs["y"], chunks=chunk)
    w = da.from_array(inputs["start"])
    return lambda: gradient_descent(da, X, y, w).compute(scheduler="threads")


def jax_logistic(inputs: Inputs) -> Run:
    """The same text compiled by jax."""
    import jax

    jax.config.update("jax_enable_x64", True)
    X, y, w = (jax.numpy.asarray(inputs[k]) for k in ("X", "y", "start"))
    jitted = jax.jit(lambda X, y, w: gradient_descent(jax.numpy, X, y, w))
    return lambda: numpy.asarray(jitted(X, y, w))


def kernel_logistic(inputs: Inputs) -> Run:
    """One hand-written pass over the rows an iteration."""
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def gradient(X: Any, y: Any, w: Any) -> Any:
        parts = numba.get_num_threads()
        partial = numpy.zeros((parts, w.size))
        for t in numba.prange(parts):
            g = numpy.zeros(w.size)
            for i in range(t * y.size // parts, (t + 1) * y.size // parts):
                z = 0.0
                for j in range(w.size):
                    z += X[i, j] * w[j]
                r = 1 / (1 + numpy.exp(-z)) - y[i]
                for j in range(w.size):
                    g[j] += r * X[i, j]
            partial[t] = g
        return partial.sum(axis=0)

    def run() -> Any:
        w = inputs["start"]
        for _ in range(ITERATIONS):
            w = w - RATE * gradient(inputs["X"], inputs["y"], w)
        return w

    return run


def numpy_kmeans(inputs: Inputs) -> Run:
    """NumPy."""
    return lambda: lloyd(numpy, inputs["X"], inputs["start"])


def our_kmeans(inputs: Inputs) -> Run:
    """The same text with spartan_ng."""
    X, centers = spartan_ng.asarray(inputs["X"]), spartan_ng.asarray(inputs["start"])
    return lambda: numpy.asarray(lloyd(spartan_ng, X, centers))


def jax_kmeans(inputs: Inputs) -> Run:
    """The same text compiled by jax."""
    import jax

    jax.config.update("jax_enable_x64", True)
    X, centers = jax.numpy.asarray(inputs["X"]), jax.numpy.asarray(inputs["start"])
    jitted = jax.jit(lambda X, centers: lloyd(jax.numpy, X, centers))
    return lambda: numpy.asarray(jitted(X, centers))


LOGISTIC_SIDES: dict[str, Side] = {
    "numpy": numpy_logistic,
    OURS: our_logistic,
    **installed({"dask": dask_logistic, "jax": jax_logistic}),
    "numba kernel": kernel_logistic,
}

LOGISTIC = Case(
    name="logistic-regression",
    title=f"Logistic regression, {ROWS:.0e} × {COLUMNS} doubles, {ITERATIONS} iterations of gradient descent",
    inputs=labelled_points,
    sides=LOGISTIC_SIDES,
    bytes_read=8 * ROWS * (COLUMNS + 1) * ITERATIONS,
    rounds=5,
    ratio_limit=0.6,
)

KMEANS = Case(
    name="k-means",
    title=f"k-means, {CLUSTER_ROWS:.0e} × {COLUMNS} doubles, {CLUSTERS} centers, 3 iterations",
    inputs=blobs,
    sides={"numpy": numpy_kmeans, OURS: our_kmeans, **installed({"jax": jax_kmeans})},
    rounds=5,
)
