"""Whole programs over files, drawn by a number: a few pieces one after the other, answers in variables.

`… drawn NUMBER WORKERS FOLDER` runs one, alone in a process, and prints as JSON the most bytes that the
process and its workers have had beyond what they had before, and for each plan what it was projected to
take, and took.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy

import spartan_ng as np
from benchmarks.larger_sides import _embedded, _workers
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.plan.peak import projected_peak
from spartan_ng.session import Session
from tests.budgets.pieces import GROUPS, PIECES, Files
from tests.budgets.results import RESULTS
from tests.budgets.run import KEPT, BudgetWatch, warm_up

_ROWS_AT_A_TIME = 20_000
_SMALL = 20
"""The first part in so many of the files is asked first: libraries, threads and kernels come with it."""
PROJECTED, BESIDE = 1.15, 1 << 20
"""A plan may take so many times what it is projected to, and so many bytes for itself and its messages."""


@dataclass(frozen=True)
class Program:
    """A program as it was drawn."""

    number: int
    budget: int
    """Bytes that arrays may take, all workers together."""
    shape: tuple[int, int]
    dtype: str
    order: str
    pieces: tuple[str, ...]
    kept: bool
    """Whether what a piece has made is computed before the next begins, and stays in variables."""
    together: bool = False
    """Whether all that pieces give is computed together."""

    @property
    def said(self) -> str:
        """In words."""
        pieces = (" + " if self.together else " > ").join(self.pieces) + (", kept" if self.kept else "")
        return f"{pieces} of {self.dtype} {self.shape} {self.order}, {self.budget / 1e6:.0f} MB"


def program(number: int, piece: str = "") -> Program:
    """The program of a number; with `piece` of this alone."""
    draw = random.Random(number)
    budget = draw.choice([30, 40, 60, 80, 100]) * 1_000_000
    dtype = draw.choice(["f8", "f8", "f4"])
    columns = draw.choice([10, 40, 100])
    nbytes = budget * draw.choice([2, 3, 4])
    rows = nbytes // (columns * numpy.dtype(dtype).itemsize) // 100 * 100
    pieces = (piece,) if piece else tuple(draw.choices([*PIECES], k=draw.randint(1, 3)))
    order = draw.choice(["C", "C", "F"])
    return Program(number, budget, (rows, columns), dtype, order, pieces, draw.random() < 0.5)


def make(drawn: Program, folder: str) -> None:
    """The program's files: random numbers."""
    rows, columns = drawn.shape
    n = drawn.budget * 3 // 8 // 10_000 * 10_000
    opened = numpy.lib.format.open_memmap
    x = opened(f"{folder}/x.npy", "w+", drawn.dtype, drawn.shape, drawn.order == "F")
    w = opened(f"{folder}/w.npy", "w+", "f8", (n,))
    k = opened(f"{folder}/k.npy", "w+", "i8", (n,))
    values = numpy.random.default_rng(drawn.number)
    for i in range(0, rows, _ROWS_AT_A_TIME):
        x[i : i + _ROWS_AT_A_TIME] = values.standard_normal((min(_ROWS_AT_A_TIME, rows - i), columns), "f4")
    for i in range(0, n, 1_000_000):
        w[i : i + 1_000_000] = values.standard_normal(min(1_000_000, n - i))
        k[i : i + 1_000_000] = values.integers(0, GROUPS, min(1_000_000, n - i))


def opened(m: Any, folder: str, share: int = 1, **keywords: Any) -> Files:
    """The files, or the first part in so many."""
    every = [m.load(f"{folder}/{name}.npy", **keywords) for name in "xwk"]
    return Files(*(a[: len(a) // share // 100 * 100] for a in every))


def answers(m: Any, drawn: Program, files: Files) -> Iterator[list[Any]]:
    """What each piece gives."""
    for i, name in enumerate(drawn.pieces):
        yield (PIECES | RESULTS)[name](m, files, random.Random(drawn.number + i))


@dataclass
class Ran:
    """A plan that ran."""

    stage: str
    projected: int
    """Arrays, and what threads work on."""
    took: int = 0


@contextmanager
def plans_watched(found: list[Ran]) -> Iterator[None]:
    """Notes of each plan what it was projected to take, on all workers together, and took beyond what was
    there."""
    plain = Session.run

    def run(self: Session, planned: Any, *rest: Any) -> Any:
        with BudgetWatch() as before:
            pass
        try:
            with BudgetWatch() as watch:
                return plain(self, planned, *rest)
        finally:
            peak = projected_peak(planned.plan, self.backend.profile)
            ran = Ran(peak.stage, peak.together_bytes * planned.plan.workers)
            ran.took = max(watch.peak_bytes - before.peak_bytes, 0)
            found.append(ran)

    Session.run = run  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Session.run = plain  # type: ignore[method-assign]


def _answered(values: Sequence[Any], folder: str, piece: int) -> None:
    for k, value in enumerate(values):
        file = f"{folder}/answer-{piece}-{k}.npy"
        if getattr(value, "nbytes", 0) > KEPT:
            np.save(file, value)
        else:
            numpy.save(file, numpy.asarray(value))


def _run(drawn: Program, folder: str, share: int) -> None:
    history = []
    every: Iterable[list[Any]] = answers(np, drawn, opened(np, folder, share))
    if drawn.together:
        every = list(every)
        np.persist(*(value for values in every for value in values))
    for i, values in enumerate(every):
        if drawn.kept:
            history.append(np.persist(*map(np.asarray, values)))
        else:
            _answered(values, folder, i)
    for i, kept in enumerate(history):
        _answered(kept, folder, i)


def difference(drawn: Program, folder: str) -> str:
    """What is wrong with the answers that a run has left in the folder, "" where nothing is."""
    for i, values in enumerate(answers(numpy, drawn, opened(numpy, folder, mmap_mode="r"))):
        for k, value in enumerate(map(numpy.asarray, values)):
            ours = numpy.load(f"{folder}/answer-{i}-{k}.npy", "r")
            if ours.dtype != value.dtype or ours.shape != value.shape:
                return (
                    f"{drawn.pieces[i]} {k}: {ours.dtype} {ours.shape}, NumPy's {value.dtype} {value.shape}"
                )
            is_single = "f4" in drawn.dtype or value.dtype.char in "efF"
            close = 1e-2 if is_single else 1e-7
            if value.dtype.kind in "mM":
                is_same = numpy.array_equal(ours, value)
            else:
                is_same = numpy.allclose(ours, value, rtol=close, atol=close, equal_nan=True)
            if not is_same:
                return f"{drawn.pieces[i]} {k} is another"
    return ""


def run_watched(work: Callable[[int], None], workers: int, budget: int, folder: str) -> None:
    """Do work on the first part in so many of what there is, a small one, then on all of it, and print what
    the process and its workers have had at most for that, and each of its plans."""
    begin = _workers if workers else _embedded
    numpy.seterr(all="ignore")
    plans: list[Ran] = []
    with begin(budget, folder):
        warm_up(f"{folder}/x.npy")
        try:
            work(_SMALL)
            gc.collect()
            with BudgetWatch() as before:
                pass
            with BudgetWatch() as watch, plans_watched(plans):
                work(1)
        except MemoryBudgetError as error:
            print(json.dumps({"refused": str(error)}))
            return
        peak = max(watch.peak_bytes - before.peak_bytes, 0)
        print(json.dumps({"peak": peak, "plans": [vars(p) for p in plans]}))


def run_program(drawn: Program, workers: int, folder: str) -> None:
    """Run a program as `run_watched` does."""
    run_watched(lambda share: _run(drawn, folder, share), workers, drawn.budget, folder)


def main(number: str, workers: str, folder: str, piece: str = "") -> None:
    run_program(program(int(number), piece), int(workers), folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
