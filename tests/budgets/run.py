"""One operation on one kind of array, alone in a process: `… run NAME KIND WORKERS FILE FOLDER`.

Prints the most bytes that the process and its workers have had beyond what they had before, as JSON; the
answer is left in the folder.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any

import numpy

import spartan_ng as np
from benchmarks.larger import Watch
from benchmarks.larger_sides import _embedded, _workers
from spartan_ng.errors import MemoryBudgetError
from tests.budgets.operations import COLUMNS, OPERATIONS, ROWS, box

LIMIT = 40_000_000
"""Bytes that arrays may take, a quarter of the array."""
SMALL = 4_000
"""Rows of the array with which libraries, threads and kernels come first."""
KEPT = 1 << 20
"""Answers of so many bytes go to files as they are."""


def _source(kind: str, file: str, rows: int) -> Any:
    match kind:
        case "mapped":
            return np.load(file)[:rows]
        case "computed":
            return np.from_function(box, (rows, COLUMNS), chunks=(2000, COLUMNS)) * 1
        case "kept":
            return np.persist(np.load(file)[:rows] * 1)[0]
    raise ValueError(kind)


def _answered(found: Any, folder: str) -> None:
    values = found if isinstance(found, (tuple, list)) else [found]
    for k, value in enumerate(values):
        if value.nbytes > KEPT:
            np.save(f"{folder}/{k}.npy", value)
        else:
            numpy.save(f"{folder}/{k}.npy", numpy.asarray(value))


def main(name: str, kind: str, workers: str, file: str, folder: str) -> None:
    np.config.kernels = "interpret"  # a compiler's memory is no array's
    opened = _workers if int(workers) else _embedded
    with opened(LIMIT, folder):
        work = OPERATIONS[name]
        try:
            for rows in (SMALL, ROWS):
                gc.collect()
                with Watch() as before:
                    pass
                with Watch() as watch:
                    x = _source(kind, file, rows)
                    _answered(work(np, x, x.reshape(-1)), folder)
                    del x
        except MemoryBudgetError as error:
            print(json.dumps({"refused": str(error)}))
            return
        print(json.dumps({"peak": max(watch.peak_bytes - before.peak_bytes, 0)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
