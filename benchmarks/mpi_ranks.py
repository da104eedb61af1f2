"""One rank of the MPI baseline: local aggregate, Exscan, local offset and scan; see `benchmarks.cascades`.

`mpirun -n 4 python -m benchmarks.mpi_ranks ROWS COLUMNS ROUNDS` prints the seconds of the slowest rank, best
of all rounds, for NumPy's local operations, for compiled ones, and for compiled ones that write into the same
array every time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy
from mpi4py import MPI
from numba import njit


@njit  # type: ignore[untyped-decorator]
def aggregated(x: Any) -> Any:
    """The sum of each column."""
    total = numpy.zeros(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total[j] += x[i, j]
    return total


@njit  # type: ignore[untyped-decorator]
def scanned_into(x: Any, before: Any, y: Any) -> Any:
    """The cumulative sums behind `before`."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            before[j] += x[i, j]
            y[i, j] = before[j]
    return y


def numpy_scanned(x: Any, before: Any) -> Any:
    """The same with NumPy's operations."""
    y = numpy.cumsum(x, axis=0)
    y += before
    return y


def seconds(aggregate: Callable[..., Any], scan: Callable[..., Any], x: Any, rounds: int) -> float:
    """The best round of the slowest rank."""
    world = MPI.COMM_WORLD
    best = float("inf")
    for _ in range(rounds + 1):  # the first compiles
        world.Barrier()
        start = time.perf_counter()
        total = aggregate(x)
        before = numpy.zeros_like(total)
        world.Exscan(total, before, op=MPI.SUM)
        if world.rank == 0:
            before[:] = 0
        y = scan(x, before)
        best = min(best, world.allreduce(time.perf_counter() - start, op=MPI.MAX))
        del y
    return best


def main() -> None:
    """Print both figures on rank 0."""
    rows, columns, rounds = (int(a) for a in sys.argv[1:])
    world = MPI.COMM_WORLD
    n = rows * (world.rank + 1) // world.size - rows * world.rank // world.size
    x = numpy.random.default_rng(world.rank).random((n, columns))
    kept = numpy.empty_like(x)
    found = [
        seconds(lambda x: x.sum(axis=0), numpy_scanned, x, rounds),
        seconds(aggregated, lambda x, before: scanned_into(x, before, numpy.empty_like(x)), x, rounds),
        seconds(aggregated, lambda x, before: scanned_into(x, before, kept), x, rounds),
    ]
    if world.rank == 0:
        print(*found)


if __name__ == "__main__":
    main()
