"""Scans over several workers: levels, bytes, the MPI baseline, weak scaling.

Distributed cumulative aggregates (BTW '19), sections 3.1 and 5.4. With p parts and up to f of them collected
at one place there are k = ceil(log_f p) levels; a level moves one aggregate row a part each way, but for
those that are where they are needed; and what must happen one after the other is k collections, k ways
back, and at most 2 f combinations of rows a level.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from math import ceil, log
from pathlib import Path

import numpy

import spartan_ng
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.stages import ScanOffsets, ScanTotals
from spartan_ng.worker.scheduling.shares import task_of

FAN = 32
ROWS, COLUMNS = 1_000_000, 64
MPI_MISSING = "MPI baseline: not run; it needs mpi4py and an mpirun: pip install 'spartan_ng[mpi]'"


@dataclass(frozen=True, slots=True)
class Cascade:
    """One scan over simulated workers: counted from all ranks' tasks, beside section 3.1's formulas."""

    workers: int
    levels: int
    path_rows: int
    """Rows that are combined one after the other, over all levels."""
    moved_bytes: int
    formula_levels: int
    formula_path_rows: int
    formula_bytes: int


def planned(workers: int, columns: int = COLUMNS) -> Plan:
    """The plan of a cumulative sum over rows that lie cut over the workers."""
    x = numpy.broadcast_to(1.0, (workers * 64, columns))
    root = build.scan("add", build.data(ArrayRef(x.shape, x.dtype, value=x)), 0)
    settings = Settings(Profile(workers=workers), "row", scan_fan=FAN)
    return lower(topological([root]), [root], settings, f"cascades {workers}")


def counted(workers: int, columns: int = COLUMNS) -> Cascade:
    """What all ranks of a cluster would do, by their own tasks."""
    plan = planned(workers, columns)
    moved = path = 0
    for stage in plan.stages:
        longest = 0
        for rank in range(workers):
            task = task_of(plan, stage, rank)
            for operand in (*task.operands, *task.later):
                size = numpy.dtype(plan.slots[operand.slot].dtype).itemsize
                for piece in operand.pieces:
                    n = numpy.prod([len(range(*r)) for r in piece.region], dtype=int)
                    moved += int(n) * size * (piece.rank != rank)
            if isinstance(stage, ScanOffsets) and task.box is not None:
                longest = max(longest, task.operands[0].shape[1])
        path += longest
    levels = max(1, ceil(log(workers, FAN) - 1e-9))
    parts = [workers]
    while parts[-1] > 1:
        parts.append(-(-parts[-1] // FAN))
    up_and_down = 2 * sum(parts[:-1]) - sum(parts[1:]) * 2
    return Cascade(
        workers,
        sum(isinstance(s, ScanTotals) for s in plan.stages),
        path,
        moved,
        levels,
        sum(-(-n // m) for n, m in pairwise(parts)),
        up_and_down * columns * 8,
    )


def simulated(workers: int) -> int:
    """Bytes that really move between simulated workers."""
    plan = planned(workers)
    x = numpy.ones((workers * 64, COLUMNS))
    ref = ArrayRef(x.shape, x.dtype, value=x)
    backend = SimulatedBackend(workers)
    try:
        backend.upload(ref, plan.slots[0].tiling)
        _, stats = backend.run(plan, [ref])
    finally:
        backend.close()
    return stats.bytes_moved


def best(run: Callable[[], object], rounds: int = 7) -> float:
    """Seconds of the best run after the first."""
    found = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found[1:])


def on_workers(workers: int, rows: int, axis: int = 0) -> tuple[float, int]:
    """Seconds of a cumulative sum along an axis that is cut over local workers, and the bytes it moved."""
    tiling = "column" if axis else "row"
    with config.override(kernels="compile", tiling=tiling), LocalCluster(workers, threads=1) as cluster:
        current = session.use(cluster)
        try:
            x = spartan_ng.asarray(numpy.random.default_rng(0).random((rows, COLUMNS)))
            x = spartan_ng.maximum(x, 0.0).persist()

            def run() -> None:
                spartan_ng.cumsum(x, axis=axis).persist()

            seconds = best(run)
            before = current.moved_bytes
            run()
            return seconds, current.moved_bytes - before
        finally:
            session.use(EmbeddedBackend())


def mpi(ranks: int, rows: int) -> list[float] | None:
    """Seconds of the baseline: with NumPy's local operations, with compiled ones, and with compiled ones into
    a kept array; None where MPI is missing."""
    mpirun = shutil.which("mpirun", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpirun is None or find_spec("mpi4py") is None:
        return None
    command = [mpirun, "-n", str(ranks), sys.executable, "-m", "benchmarks.mpi_ranks"]
    arguments = [str(rows), str(COLUMNS), "7"]
    out = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=True, timeout=600
    ).stdout
    return [float(word) for word in out.split()]


def main() -> None:
    """Print all tables."""
    print("simulated workers: levels, rows combined in turn, bytes (counted / section 3.1)")
    for workers in (4, 64, 1024):
        c = counted(workers)
        line = f"  {workers:>5}  levels {c.levels} / {c.formula_levels}  path {c.path_rows} / "
        line += f"{c.formula_path_rows}  bytes {c.moved_bytes:,} / {c.formula_bytes:,}"
        print(line + (f"  measured {simulated(workers):,}" if workers <= 64 else ""))
    seconds, moved = on_workers(4, ROWS)
    row = COLUMNS * 8
    print(f"4 workers, {ROWS:.0e} × {COLUMNS} cut by rows: {seconds:.4f} s, {moved:,} bytes moved")
    print(f"  one row a part each way, less the first part's: {2 * 3 * row:,} bytes")
    across, moved = on_workers(4, ROWS, axis=1)
    print(f"4 workers, cut by columns, along axis 1: {across:.4f} s, {moved:,} bytes moved")
    print(f"  one column a part each way, less the first part's: {2 * 3 * ROWS * 8:,} bytes")
    found = mpi(4, ROWS)
    if found is None:
        print(MPI_MISSING)
    else:
        for how, theirs in zip(("NumPy", "compiled loops", "compiled loops, kept array"), found, strict=True):
            print(f"  MPI, 4 ranks, {how}: {theirs:.4f} s (ours / MPI {seconds / theirs:.2f})")
    one, _ = on_workers(1, ROWS)
    two, _ = on_workers(2, 2 * ROWS)
    print(f"weak scaling: 1 worker {one:.4f} s, 2 workers {two:.4f} s ({two / one:.2f})")


if __name__ == "__main__":
    main()
