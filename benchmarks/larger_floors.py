"""What the arithmetic of a row of `larger` takes by itself: NumPy and its BLAS, or our sort where that is
sooner, on one thread, over and over the same few rows, which stay in the cache; shared by all cores.

No way to go over a file is faster than the slower of reading it and this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy
from threadpoolctl import threadpool_limits

from benchmarks.larger_answers import CLUSTERS, COLUMNS, QUANTILES, STEPS
from spartan_ng.kernels.sorts import sorted_lines

_ROWS, _TIMES = 1000, 9
"""Of a block, and how often it is worked on."""


def _kmeans(part: Any) -> None:
    distances = part @ part[:CLUSTERS].T
    marks = (distances.argmin(axis=1)[:, None] == numpy.arange(CLUSTERS)).astype(float)
    marks.T @ part


def _logistic_regression(part: Any) -> None:
    part.T @ (1 / (1 + numpy.exp(-(part @ part[0]))))


def _components(part: Any) -> None:
    part.sum(axis=0)
    part.T @ part


def _quantiles(part: Any) -> None:
    """Of one of two looks at least: how many lie below each of a few bounds."""
    for q in QUANTILES:
        numpy.count_nonzero(part < q)


FLOORS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "x.T @ x": (lambda part: part.T @ part, 1),
    "components": (_components, 1),
    "k-means": (_kmeans, STEPS),
    "logistic regression": (_logistic_regression, STEPS),
    "median and quantiles": (_quantiles, 1),
    "sort to a file": (lambda part: sorted_lines(part.reshape(-1)), 1),
    "cumsum to a file": (lambda part: numpy.cumsum(part, axis=0), 1),
}
"""What a row does with some rows of the array, and how often it goes over all of them. A sort's runs are as
short as the blocks: it merges them besides."""


def floor_s(row: str, nbytes: int) -> float | None:
    """Seconds that all cores take for the arithmetic of a row on so many bytes; None of what has next to
    none."""
    if row not in FLOORS:
        return None
    work, times = FLOORS[row]
    part = numpy.random.default_rng(0).random((_ROWS, COLUMNS))
    found = []
    with threadpool_limits(1):
        work(part)
        for _ in range(_TIMES):
            begin = time.perf_counter()
            work(part)
            found.append(time.perf_counter() - begin)
    return median(found) * times * nbytes / part.nbytes / (len(os.sched_getaffinity(0)))
