"""The cluster against the embedded backend on the same cores: what transport and dispatch cost.

Each run says which backend it is for, and plans anew when the backend changes; the plan's cost is part of the
figures of both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from benchmarks.workloads.learning import (
    CLUSTER_ROWS,
    CLUSTERS,
    COLUMNS,
    ITERATIONS,
    ROWS,
    blobs,
    gradient_descent,
    labelled_points,
    lloyd,
)
from benchmarks.workloads.overhead import loop_inputs, numpy_loop, our_loop
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.backends.protocol import Backend

Program = Callable[..., Any]


@contextmanager
def local_workers(n: int) -> Iterator[Mapping[str, Backend]]:
    """A local cluster of single-threaded workers, and an embedded backend with as many threads."""
    embedded = EmbeddedBackend(threads=n)
    with LocalCluster(n, threads=1) as cluster:
        try:
            yield {"embedded": embedded, "cluster": cluster}
        finally:
            session.use(EmbeddedBackend())
    embedded.close()


def two_workers() -> Any:
    """Two local workers."""
    return local_workers(2)


def four_workers() -> Any:
    """Four local workers."""
    return local_workers(4)


def on(backend: str, program: Program, names: tuple[str, ...]) -> Side:
    """`program(spartan_ng, *inputs)` on one of the case's backends."""

    def side(inputs: Inputs) -> Run:
        chosen = inputs["backends"][backend]
        arrays = [spartan_ng.asarray(inputs[name]) for name in names]

        def run() -> Any:
            session.use(chosen)
            return numpy.asarray(program(spartan_ng, *arrays))

        return run

    return side


def cluster_loop(inputs: Inputs) -> Run:
    """The loop body on the cluster, its plan known since the first run."""
    session.use(inputs["backends"]["cluster"])
    return our_loop(inputs)


LOGISTIC_WORKERS = Case(
    name="logistic-regression-workers",
    title=f"Logistic regression, {ROWS:.0e} × {COLUMNS}, {ITERATIONS} iterations, two 1-thread workers",
    inputs=labelled_points,
    sides={
        "embedded, 2 threads": on("embedded", gradient_descent, ("X", "y", "start")),
        f"{OURS}, 2 workers": on("cluster", gradient_descent, ("X", "y", "start")),
    },
    backends=two_workers,
    rounds=5,
    ratio_limit=1.2,
)

KMEANS_WORKERS = Case(
    name="k-means-workers",
    title=f"k-means, {CLUSTER_ROWS:.0e} × {COLUMNS}, {CLUSTERS} centers: two single-threaded workers",
    inputs=blobs,
    sides={
        "embedded, 2 threads": on("embedded", lloyd, ("X", "start")),
        f"{OURS}, 2 workers": on("cluster", lloyd, ("X", "start")),
    },
    backends=two_workers,
    rounds=5,
    ratio_limit=1.2,
)

LOOP_BODY_WORKERS = Case(
    name="loop-body-workers",
    title="w - c * (X.T @ (X @ w)) on a 64 × 8 matrix, planned once, dispatched again and again, 4 workers",
    inputs=loop_inputs,
    sides={"numpy": numpy_loop, f"{OURS}, 4 workers": cluster_loop},
    backends=four_workers,
    seconds_limit=2e-3,
)

CLUSTER_CASES = (LOOP_BODY_WORKERS, LOGISTIC_WORKERS, KMEANS_WORKERS)
