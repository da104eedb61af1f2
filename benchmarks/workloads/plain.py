"""Sorts, PageRank and k-means as people write them: the text is NumPy's, and only the import is replaced.

PageRank's edges lead anywhere, as many from each node. It is asked for its last ranks alone ("pagerank"), or
after each step for how far they moved, as a loop that waits for them to settle does ("pagerank-steps").
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from scipy import sparse

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from benchmarks.installed import installed
from benchmarks.texts import CLUSTERS, COLUMNS, POINTS, ROUNDS, Text, points
from benchmarks.workloads.passes import scikit_lloyd

SORTED, SORTED_SIDE = 20_000_000, 4_000
DEGREE, STEPS = 10, 10
EDGES = 10_000_000
FEWER_EDGES = (10_000, 100_000, 1_000_000)


def doubles(*shape: int) -> Callable[[], Inputs]:
    """One array of random doubles."""
    return lambda: {"a": numpy.random.default_rng(0).random(shape)}


def links(edges: int) -> Callable[[], Inputs]:
    """The links of a graph by their ends, a column a node, each divided among those that leave the node."""

    def inputs() -> Inputs:
        nodes = edges // DEGREE
        ends = numpy.random.default_rng(0).integers(0, nodes, edges)
        starts = numpy.repeat(numpy.arange(nodes), DEGREE)
        A = sparse.coo_array((numpy.full(edges, 1 / DEGREE), (ends, starts)), (nodes, nodes)).tocsr()
        return {"A": A, "ranks": numpy.full(nodes, 1 / nodes)}

    return inputs


def pagerank(np: Any, A: Any, ranks: Any) -> Any:
    """The workload's text: the ranks after ten steps."""
    for _ in range(STEPS):
        ranks = 0.85 * (A @ ranks) + 0.15 / len(ranks)
    return ranks


def pagerank_steps(np: Any, A: Any, ranks: Any) -> Any:
    """The workload's text, which asks after each step whether it was the last one."""
    for _ in range(STEPS):
        before = ranks
        ranks = 0.85 * (A @ ranks) + 0.15 / len(ranks)
        if np.abs(ranks - before).sum() < 1e-30:
            break
    return ranks


def lloyd_by_masks(np: Any, X: Any, start: Any) -> Any:
    """The workload's text: iterations of k-means, a cluster's mean at a time."""
    centers = start.copy()
    for _ in range(ROUNDS):
        labels = np.argmin((centers**2).sum(axis=1) - 2 * X @ centers.T, axis=1)
        for k in range(CLUSTERS):
            centers[k] = X[labels == k].mean(axis=0)
    return centers


def numpy_side(text: Text) -> Side:
    """The text on the inputs themselves."""
    return lambda inputs: lambda: text(numpy, *_given(inputs))


def our_side(text: Text) -> Side:
    """The text with `import spartan_ng as np`, of arrays that are ours, SciPy's too."""

    def side(inputs: Inputs) -> Run:
        given = [spartan_ng.asarray(x) for x in _given(inputs)]
        return lambda: numpy.asarray(text(spartan_ng, *given))

    return side


def _given(inputs: Inputs) -> list[Any]:
    return [x for name, x in inputs.items() if name != "backends"]


def _sides(text: Text) -> dict[str, Side]:
    return {"numpy": numpy_side(text), OURS: our_side(text)}


def _sorted(np: Any, a: Any, axis: int = -1) -> Any:
    return np.sort(a, axis=axis)


def _argsorted(np: Any, a: Any) -> Any:
    return np.argsort(a)


def _ranked(text: Text, edges: int, limit: float | None = None) -> Case:
    size = "" if limit else f"-{edges:.0e}".replace("+0", "")
    title = f"PageRank, {edges // DEGREE:.0e} nodes, {edges:.0e} edges, {STEPS} steps"
    asked = ", asked after each" if text is pagerank_steps else ""
    name = text.__name__.replace("_", "-") + size
    return Case(name, title + asked, links(edges), _sides(text), rounds=5, ratio_limit=limit)


PLAIN_CASES = (
    Case("sort", "sort of 2e7 doubles", doubles(SORTED), _sides(_sorted), rounds=5, ratio_limit=0.65),
    Case(
        "argsort", "argsort of 2e7 doubles", doubles(SORTED), _sides(_argsorted), rounds=3, ratio_limit=0.65
    ),
    Case(
        "sort-columns",
        f"sort of {SORTED_SIDE}² along axis 0",
        doubles(SORTED_SIDE, SORTED_SIDE),
        _sides(partial(_sorted, axis=0)),
        rounds=5,
        ratio_limit=0.8,
    ),
    *(_ranked(text, EDGES, 0.6) for text in (pagerank, pagerank_steps)),
    *(_ranked(text, edges) for text in (pagerank, pagerank_steps) for edges in FEWER_EDGES),
    Case(
        "lloyd-masks",
        f"k-means a cluster at a time, {POINTS:.0e} × {COLUMNS}, {CLUSTERS} centers, {ROUNDS} iterations",
        points,
        {**installed({"sklearn": scikit_lloyd}), OURS: our_side(lloyd_by_masks)},
        rounds=5,
        ratio_limit=0.8,
        rtol=1e-6,
    ),
)
"""Whole texts in which nothing says how they are to be computed."""
