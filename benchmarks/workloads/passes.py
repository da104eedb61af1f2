"""Several results of one pass, beside hand-written kernels that make them in one pass, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from benchmarks.installed import installed
from benchmarks.texts import (
    CLUSTERS,
    COLUMNS,
    ELEMENTS,
    POINTS,
    ROUNDS,
    ROWS,
    lloyd,
    moments,
    points,
    table,
    two_sums,
    vectors,
)
from spartan_ng.config import config


def kernel_two_sums(inputs: Inputs) -> Run:
    """One hand-written loop over three vectors."""
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def sums(X: Any, Y: Any, Z: Any) -> tuple[float, float]:
        a = b = 0.0
        for i in numba.prange(X.size):
            a += X[i] * Y[i]
            b += X[i] * Z[i]
        return a, b

    return lambda: numpy.array(sums(inputs["X"], inputs["Y"], inputs["Z"]))


def kernel_moments(inputs: Inputs) -> Run:
    """One hand-written pass: sums and sums of squares about the first row, which lies near the mean here."""
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def sums(X: Any) -> Any:
        parts = numba.get_num_threads()
        partial = numpy.zeros((parts, 2, X.shape[1]))
        for t in numba.prange(parts):
            own = numpy.zeros((2, X.shape[1]))
            for i in range(t * X.shape[0] // parts, (t + 1) * X.shape[0] // parts):
                for j in range(X.shape[1]):
                    d = X[i, j] - X[0, j]
                    own[0, j] += d
                    own[1, j] += d * d
            partial[t] = own
        return partial.sum(axis=0)

    def run() -> Any:
        X = inputs["X"]
        first, second = sums(X) / len(X)
        var = second - first**2
        return numpy.stack([first + X[0], var, numpy.sqrt(var)])

    return run


def scikit_lloyd(inputs: Inputs) -> Run:
    """scikit-learn's Lloyd, for as many iterations (its last labelling of the points is one more)."""
    from sklearn.cluster import KMeans

    def run() -> Any:
        model = KMeans(CLUSTERS, init=inputs["start"], n_init=1, max_iter=ROUNDS, tol=0, algorithm="lloyd")
        return model.fit(inputs["X"]).cluster_centers_

    return run


def numpy_side(text: Callable[..., Any]) -> Side:
    """The text on the inputs themselves."""
    return lambda inputs: lambda: numpy.stack(text(numpy, *_needed(text, inputs)))


def our_side(text: Callable[..., Any]) -> Side:
    """The same text with `import spartan_ng as np`, all results asked for at once."""

    def side(inputs: Inputs) -> Run:
        ours = [spartan_ng.asarray(x) for x in _needed(text, inputs)]

        def run() -> Any:
            with config.override(kernels="compile"):
                return numpy.stack(spartan_ng.compute(*text(spartan_ng, *ours)))

        return run

    return side


def our_lloyd(inputs: Inputs) -> Run:
    """The text with `import spartan_ng as np`."""
    X, centers = spartan_ng.asarray(inputs["X"]), spartan_ng.asarray(inputs["start"])
    return lambda: numpy.asarray(lloyd(spartan_ng, X, centers))


def _needed(text: Callable[..., Any], inputs: Inputs) -> list[Any]:
    names = text.__code__.co_varnames[1 : text.__code__.co_argcount]
    return [inputs[n] for n in names]


PASS_CASES = (
    Case(
        "two-sums",
        "sum(X * Y) and sum(X * Z) together, 5e7 doubles",
        vectors,
        {"numpy": numpy_side(two_sums), OURS: our_side(two_sums), "numba kernel": kernel_two_sums},
        bytes_read=24 * ELEMENTS,
        rounds=5,
        ratio_limit=0.2,
    ),
    Case(
        "moments",
        "mean, var and std over axis 0 of 2e6 × 50",
        table,
        {"numpy": numpy_side(moments), OURS: our_side(moments), "numba kernel": kernel_moments},
        bytes_read=8 * ROWS * COLUMNS,
        rounds=5,
        rtol=1e-6,
    ),
    Case(
        "lloyd",
        f"k-means in plain array code, {POINTS:.0e} × {COLUMNS}, {CLUSTERS} centers, {ROUNDS} iterations",
        points,
        {**installed({"sklearn": scikit_lloyd}), OURS: our_lloyd},
        rounds=5,
        ratio_limit=0.8,
        rtol=1e-6,
    ),
)
"""Bodies of several results."""
