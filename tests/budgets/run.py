"""One operation on one kind of array, alone in a process: `… run NAME KIND WORKERS FILE FOLDER`.

Prints the most bytes that the process and its workers have had beyond what they had before, as JSON; the
answer is left in the folder.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy

import spartan_ng as np
from benchmarks.larger import Watch
from benchmarks.larger_sides import _embedded, _workers
from spartan_ng.errors import MemoryBudgetError
from tests.budgets.chains import chain
from tests.budgets.operations import BY_PLACES, COLUMNS, OPERATIONS, ROWS, box, places

LIMIT = 40_000_000
"""Bytes that arrays may take, a quarter of the array."""
SMALL = 4_000
"""Rows of the array with which libraries, threads and kernels come first."""
KEPT = 1 << 20
"""Answers of so many bytes go to files as they are."""


def places_of(file: str) -> str:
    """Where the places lie that go with a file's line."""
    return file.replace("x.npy", "places.npy")


FILES = {
    "mapped": "x.npy",
    "columns": "x-columns.npy",
    "chunked": "x.h5",
    "packed": "x.parquet",
    "grouped": "x-grouped.parquet",
}
"""Kinds of arrays that are read from files: the rows, or the columns, one after the other; HDF5's chunks; a
table with one row group, and with many."""


def file_of(kind: str, file: str) -> str:
    """Where the same array lies as another kind of file."""
    return file.replace("x.npy", FILES[kind])


def work_of(name: str) -> Any:
    """What one of the tables has under a name, or the chain of a number."""
    return chain(int(name))[1] if name.isdecimal() else OPERATIONS.get(name) or BY_PLACES[name]


def _source(kind: str, file: str, rows: int, of: Any = box) -> Any:
    line, dtype = ((), numpy.int64) if of is places else ((COLUMNS,), numpy.float64)
    match kind:
        case "computed":
            return np.from_function(of, (rows, *line), dtype, chunks=(2000, *line)) * 1
        case "kept":
            return np.persist(np.load(file)[:rows] * 1)[0]
    return np.load(file if of is places else file_of(kind, file))[:rows]


class BudgetWatch(Watch):
    """As the benchmark's, but that a compiler's memory is no array's."""

    def processes(self) -> Iterator[int]:
        return (pid for pid in super().processes() if not _is_compiler(pid))


def _is_compiler(pid: int) -> bool:
    try:
        return b"kernels/compiled/child.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def warm_up(file: str) -> None:
    """Have all processes load what compiled loops need, which small arrays do without."""
    x = np.load(file)
    numpy.asarray(((x * 2 + 1 > x) & (x == x)).sum(axis=0))
    numpy.asarray(np.from_function(_loaded, (64, 1), numpy.float64, chunks=(1, 1)).sum())


def _loaded(at: tuple[tuple[int, int], ...]) -> Any:
    """Where kernels are loaded into, which else may come with one that is compiled much later."""
    from spartan_ng.kernels.compiled import native

    native.begin()

    return numpy.zeros([hi - lo for lo, hi in at])


def _answered(found: Any, folder: str) -> None:
    values = found if isinstance(found, (tuple, list)) else [found]
    for k, value in enumerate(values):
        if value.nbytes > KEPT:
            np.save(f"{folder}/{k}.npy", value)
        else:
            numpy.save(f"{folder}/{k}.npy", numpy.asarray(value))


def main(name: str, kind: str, workers: str, file: str, folder: str) -> None:
    opened = _workers if int(workers) else _embedded
    with opened(LIMIT, folder):
        work = work_of(name)
        warm_up(file)
        try:
            for rows in (SMALL, ROWS):
                gc.collect()
                with BudgetWatch() as before:
                    pass
                with BudgetWatch() as watch:
                    x = _source(kind, file, rows)
                    given: Any = x, x.reshape(-1)
                    if name in BY_PLACES:
                        given = given[1], _source(kind, places_of(file), rows * COLUMNS, places)
                    _answered(work(np, *given), folder)
                    del x, given
        except MemoryBudgetError as error:
            print(json.dumps({"refused": str(error)}))
            return
        print(json.dumps({"peak": max(watch.peak_bytes - before.peak_bytes, 0)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
