"""A skewed sparse array on four workers: each worker's share of the non-zeros, and the time of a gradient.

Row i of the matrix has about 1 / i as many non-zeros as the first. Cut into equal numbers of rows, the first
worker has most of the work; cut at equal non-zeros, all have the same.
"""

from __future__ import annotations

import time
from typing import Any

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config

WORKERS = 4


def power_law(rows: int, columns: int, exponent: float = 1.0) -> Any:
    """A CSR array whose rows' non-zeros fall with the row's number; none has more than `columns`."""
    random = numpy.random.default_rng(0)
    wanted = 40 * columns * numpy.arange(1, rows + 1) ** -exponent
    counts = numpy.clip(wanted, 1, columns).astype(numpy.int64)
    ends = numpy.concatenate([[0], numpy.cumsum(counts)])
    first = random.integers(columns, size=rows)
    within = numpy.arange(ends[-1]) - numpy.repeat(ends[:-1], counts)
    indices = (numpy.repeat(first, counts) + within) % columns
    a = sparse.csr_array((random.random(int(ends[-1])), indices, ends), (rows, columns))
    a.sort_indices()
    return a


def shares(x: Any, a: Any) -> list[float]:
    """Each worker's non-zeros, in units of the mean."""
    tiling = x._node().data.tiling
    boxes = [tiling.box_on(a.shape, rank) for rank in range(WORKERS)]
    return [WORKERS * float(a.indptr[b[0][1]] - a.indptr[b[0][0]]) / a.nnz if b else 0.0 for b in boxes]


def seconds(x: Any, w: Any, y: Any, rounds: int = 7) -> float:
    """The best time of one gradient."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        (x.T @ (x @ w - y)).compute()
        times.append(time.perf_counter() - start)
    return min(times)


def main(rows: int = 400_000, columns: int = 5_000) -> None:
    """Print both tilings side by side."""
    a = power_law(rows, columns)
    print(f"power-law rows {a.shape}, {a.nnz:,} non-zeros, {WORKERS} workers")
    print(f"{'cut':<22}{'slowest/mean':>14}{'gradient ms':>13}  shares")
    before = session.current().backend
    with LocalCluster(WORKERS) as backend:
        session.use(backend)
        try:
            w, y = np.ones(columns), np.ones(rows)
            for tiling, name in (("row", "equal rows"), (None, "equal non-zeros")):
                with config.override(tiling=tiling):
                    x = np.asarray(a)
                    took = seconds(x, w, y)
                found = shares(x, a)
                text = " ".join(f"{s:.2f}" for s in found)
                print(f"{name:<22}{max(found):>14.2f}{1e3 * took:>13.1f}  {text}", flush=True)
        finally:
            session.use(before)


if __name__ == "__main__":
    main()
