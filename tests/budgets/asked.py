"""Functions of a table one after the other, in a process that is told which: `… asked WORKERS FILE FOLDER`.

Reads names, a line each, and prints for each what `Outcome` has, as JSON. Who asks looks at the clock and
ends the process where one takes too long.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

import spartan_ng as np
from benchmarks.larger_sides import _embedded, _workers
from spartan_ng.errors import MemoryBudgetError
from tests.budgets.functions import is_open, program
from tests.budgets.run import KEPT, LIMIT, SMALL, BudgetWatch, warm_up

_MOST = 3
"""Answers of one call that are looked at."""
_COMPARED = 1 << 23
"""Bytes that are compared at a time."""


def _values(found: Any) -> list[Any]:
    return list(found)[:_MOST] if isinstance(found, (tuple, list)) else [found]


def _answered(found: Any, folder: str) -> list[str]:
    """Where the answers are."""
    files = []
    for k, value in enumerate(_values(found)):
        files.append(f"{folder}/{k}.npy")
        if getattr(value, "nbytes", 0) > KEPT:
            np.save(files[-1], value)
        else:
            numpy.save(files[-1], numpy.asarray(value))
    return files


def _difference(found: Any, files: list[str]) -> str:
    values = [numpy.asarray(v) for v in _values(found)]
    if len(values) != len(files):
        return f"{len(files)} answers, NumPy's {len(values)}"
    for k, (value, file) in enumerate(zip(values, files, strict=True)):
        ours = numpy.load(file, "r")
        if ours.dtype != value.dtype or ours.shape != value.shape:
            return f"answer {k}: {ours.dtype} {ours.shape}, NumPy's {value.dtype} {value.shape}"
        rows = max(_COMPARED // max(value[:1].nbytes, 1), 1) if value.ndim else 1
        for start in range(0, len(value) if value.ndim else 1, rows):
            a, b = (v[start : start + rows] if v.ndim else v for v in (ours, value))
            if a.dtype.kind in "fc":
                same = numpy.allclose(a, b, rtol=1e-7, atol=1e-7, equal_nan=True)
            else:
                same = bool((a == b).all())
            if not same:
                return f"answer {k} is another"
    return ""


def _peak(name: str, x: Any, folder: str) -> tuple[int, list[str]]:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with BudgetWatch() as before:
        pass
    with BudgetWatch() as watch:
        files = _answered(program(name)(np, x, x.reshape(-1)), folder)
    return max(watch.peak_bytes - before.peak_bytes, 0), files


def _asked(name: str, file: str, folder: str) -> Iterator[dict[str, Any]]:
    """What a call has taken; and behind it what NumPy has, and what is wrong."""
    begin = time.monotonic()
    raised, files = "", list[str]()
    try:
        peak, files = _peak(name, np.load(file), folder)
        yield {"peak": peak, "took": time.monotonic() - begin}
    except MemoryBudgetError as error:
        yield {"refused": str(error)}
        return
    except Exception as error:  # noqa: BLE001 - which NumPy may raise, too
        raised = f"{type(error).__name__}: {error}"
        yield {}
    x = numpy.load(file, "c")  # some write to it
    begin = time.monotonic()
    try:
        found = program(name)(numpy, x, x.reshape(-1))
    except Exception:  # noqa: BLE001 - of such values, or with such lengths
        yield {"wrong": "" if raised else "NumPy raises an error"}
        return
    theirs = time.monotonic() - begin
    yield {"theirs": theirs, "wrong": raised or ("" if is_open(name) else _difference(found, files))}


def main(workers: str, file: str, folder: str) -> None:
    warnings.simplefilter("ignore")
    numpy.seterr(all="ignore")
    opened = _workers if int(workers) else _embedded
    with opened(LIMIT, folder):
        warm_up(file)
        few = np.load(file)[:SMALL]
        for work in ("sort(line)", "add(x, x)", "sum(x, axis=0)", "matmul(x.T, x)"):  # libraries and threads
            if "matmul" in work:
                (few.T @ few).compute()
            else:
                numpy.asarray(program(work)(np, few, few.reshape(-1)))
        print("ready", flush=True)
        for line in sys.stdin:
            for said in _asked(line.strip(), file, folder):
                print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
