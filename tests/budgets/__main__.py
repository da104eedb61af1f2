"""Run the table: `python -m tests.budgets [NAMES] --kind mapped --workers 0`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy

from tests.budgets import drawn, lines, together
from tests.budgets.asking import Asked
from tests.budgets.chains import chain
from tests.budgets.functions import programs as of_functions
from tests.budgets.operations import BY_PLACES, COLUMNS, OPERATIONS, ROWS, box, places
from tests.budgets.run import FILES, LIMIT, file_of, places_of, work_of

KINDS = (*FILES, "computed", "kept")
GROUP = 4000
"""Rows of a chunk, or of a group of rows."""
BOUND = 1.2
"""Of the limit, the most memory that a program may have."""


def made(folder: str) -> str:
    """The array in a file."""
    file = f"{folder}/x.npy"
    x = numpy.lib.format.open_memmap(file, "w+", numpy.float64, (ROWS, COLUMNS))
    for k in range(0, ROWS, 10_000):
        x[k : k + 10_000] = box(((k, k + 10_000), (0, COLUMNS)))
    x.flush()
    return file


def _made_places(file: str) -> None:
    """The places that go with it, in a file beside it."""
    if not Path(file).exists():
        n = ROWS * COLUMNS
        p = numpy.lib.format.open_memmap(file, "w+", numpy.int64, (n,))
        for k in range(0, n, 1_000_000):
            p[k : k + 1_000_000] = places(((k, k + 1_000_000),))
        p.flush()


def _made_as(kind: str, file: str) -> None:
    """The same array as another kind of file, beside it."""
    made = file_of(kind, file)
    if Path(made).exists():
        return
    x = numpy.load(file, "r")
    if kind == "columns":
        y = numpy.lib.format.open_memmap(made, "w+", x.dtype, x.shape, fortran_order=True)
        for k in range(0, ROWS, 10_000):
            y[k : k + 10_000] = x[k : k + 10_000]
        y.flush()
    elif kind == "chunked":
        import h5py

        with h5py.File(made, "w") as opened:
            opened.create_dataset("data", data=x, chunks=(GROUP, COLUMNS))
    else:
        from pyarrow import parquet, table

        columns = {f"c{k}": numpy.ascontiguousarray(x[:, k]) for k in range(COLUMNS)}
        parquet.write_table(table(columns), made, row_group_size=GROUP if kind == "grouped" else ROWS)


def ask_functions(
    names: Iterable[str], workers: int, file: str, seconds: float, late_s: float, bound: float = BOUND
) -> Iterator[tuple[str, int, str]]:
    """For each function, the bytes that it has taken, and what is wrong with it, "" where nothing is."""
    end = time.monotonic() + seconds
    with Asked(workers, file, late_s) as asked:
        for name in names:
            if time.monotonic() > end:
                print(f"stopped before {name}")
                return
            found = asked(name)
            peak = found.get("peak", 0)
            if "refused" in found:
                wrong = "refused: " + found["refused"]
            else:
                wrong = found["wrong"] or (f"{peak:,} bytes" if peak > bound * LIMIT else "")
            took = "".join(f", {found[who]:.1f} s" for who in ("took", "theirs") if who in found)
            print(f"{name}, {workers} workers{took}, {peak / 1e6:.0f} MB: {wrong or 'right'}", flush=True)
            yield name, peak, wrong


def outcome(name: str, kind: str, workers: int, file: str, bound: float = BOUND) -> tuple[int, str]:
    """The bytes that one run has taken, and what is wrong with it, "" where nothing is."""
    if name in BY_PLACES:
        _made_places(places_of(file))
    if kind in FILES:
        _made_as(kind, file)
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        words = [sys.executable, "-m", "tests.budgets.run", name, kind, str(workers), file, folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            return 0, "failed: " + done.stderr.strip()[-600:]
        found = json.loads(done.stdout.splitlines()[-1])
        if "refused" in found:
            return 0, "refused: " + found["refused"]
        over = f"{found['peak']:,} bytes" if found["peak"] > bound * LIMIT else ""
        return found["peak"], over or _difference(name, file, folder)


def ask_program(number: int, workers: int, folder: str, piece: str = "", bound: float = BOUND) -> str:
    """Draw a whole program, and run it; in words what is wrong with it, "" where nothing is."""
    return _ask_drawn(drawn, drawn.program(number, piece), workers, folder, piece, bound)


def ask_lines(number: int, workers: int, folder: str, name: str = "", bound: float = BOUND) -> str:
    """The same of a function of long lines."""
    return _ask_drawn(lines, lines.lines(number, name), workers, folder, name, bound)


def ask_together(number: int, workers: int, folder: str, name: str = "", bound: float = BOUND) -> str:
    """The same of several results."""
    return _ask_drawn(together, together.together(number, name), workers, folder, name, bound)


def _ask_drawn(of: Any, asked: Any, workers: int, folder: str, piece: str, bound: float) -> str:
    """Make the files of what was drawn of a module, run it, and look at its memory, plans and answers."""
    of.make(asked, folder)
    words = [sys.executable, "-m", of.__name__, str(asked.number), str(workers), folder, piece]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"{asked.said}: failed: {done.stderr.strip()[-600:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    if "refused" in found:
        return f"{asked.said}: refused: {found['refused']}"
    wrong = of.difference(asked, folder)
    wrong += f", {found['peak']:,} bytes" if found["peak"] > bound * asked.budget else ""
    low = [p for p in found["plans"] if p["took"] > drawn.PROJECTED * p["projected"] + drawn.BESIDE]
    wrong += f", more than explain projects: {low}" if low else ""
    said = f"{asked.said}, {workers} workers, {found['peak'] / 1e6:.0f} MB"
    print(f"{asked.number}: {said}: {wrong.strip(', ') or 'right'}", flush=True)
    return f"{said}: {wrong}" if wrong else ""


def _drawn(ask: Callable[[int, int, str], str], numbers: range, workers: tuple[int, ...], end: float) -> int:
    """How many of what is drawn are wrong."""
    bad = 0
    for number in numbers:
        for n in workers:
            if time.monotonic() > end:
                print(f"stopped before {number}")
                return bad
            with tempfile.TemporaryDirectory() as folder:
                bad += bool(ask(number, n, folder))
    return bad


def _difference(name: str, file: str, folder: str) -> str:
    x: Any = numpy.load(file, "r")
    if name in BY_PLACES:
        p: Any = numpy.load(places_of(file), "r")
        expected = BY_PLACES[name](numpy, x.reshape(-1), p)
    else:
        expected = work_of(name)(numpy, x, x.reshape(-1))
    values = expected if isinstance(expected, (tuple, list)) else [expected]
    for k, value in enumerate(values):
        ours = numpy.load(f"{folder}/{k}.npy", "r")
        if ours.dtype != value.dtype or ours.shape != numpy.shape(value):
            return f"answer {k}: {ours.dtype} {ours.shape}, NumPy's {value.dtype} {value.shape}"
        close = 1e-3 if name.isdecimal() else 1e-7  # which may have gone on in single precision
        if not numpy.allclose(ours, value, rtol=close, atol=close, equal_nan=True):
            return f"answer {k} is another"
    return ""


def _functions(
    names: tuple[str, ...], workers: tuple[int, ...], seconds: float, after: str, late_s: float
) -> int:
    """How many functions are wrong of those whose names begin as one of `names`, or of all."""
    chosen = [p for p in of_functions() if not names or p.startswith(names)]
    chosen = chosen[chosen.index(after) + 1 :] if after else chosen
    with tempfile.TemporaryDirectory() as folder:
        file = made(folder)
        found = [f for n in workers for f in ask_functions(chosen, n, file, seconds, late_s)]
    return sum(bool(wrong) for _, _, wrong in found)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), default=KINDS)
@click.option("--workers", multiple=True, type=int, default=(0, 2))
@click.option("--seconds", default=1e9, help="Begin nothing after this long.")
@click.option("--after", default="", help="Begin behind this name.")
@click.option("--chains", nargs=2, type=int, help="Ask drawn chains of these numbers, from and to.")
@click.option("--programs", nargs=2, type=int, help="Ask drawn whole programs of these numbers.")
@click.option("--lines", "of_lines", nargs=2, type=int, help="Ask drawn functions of long lines.")
@click.option("--together", "of_several", nargs=2, type=int, help="Ask drawn results together.")
@click.option("--functions", is_flag=True, help="Ask all of NumPy's functions, NAMES or what begins so.")
@click.option("--late", default=30.0, help="Of functions, end what takes longer than so many seconds.")
def command(
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    workers: tuple[int, ...],
    seconds: float,
    after: str,
    chains: tuple[int, int] | None,
    programs: tuple[int, int] | None,
    of_lines: tuple[int, int] | None,
    of_several: tuple[int, int] | None,
    functions: bool,
    late: float,
) -> None:
    """Ask each of NAMES (all) for NumPy's answer within the memory that it may take."""
    end = time.monotonic() + seconds
    bad = 0
    if functions:
        sys.exit(_functions(names, workers, seconds, after, late) > 0)
    for ask, numbers in ((ask_program, programs), (ask_lines, of_lines), (ask_together, of_several)):
        if numbers:
            sys.exit(_drawn(ask, range(*numbers), workers, end) > 0)
    chosen = list(names or [*OPERATIONS, *BY_PLACES])
    if chains:
        chosen = [str(number) for number in range(*chains)]
    chosen = chosen[chosen.index(after) + 1 :] if after else chosen
    with tempfile.TemporaryDirectory() as folder:
        file = made(folder)
        for name in chosen:
            for kind in kinds:
                if kind in FILES and kind != "mapped" and name in BY_PLACES:
                    continue  # which are a line in a file of their own
                for n in workers:
                    if time.monotonic() > end:
                        print(f"stopped before {name}")
                        return
                    begin = time.monotonic()
                    peak, wrong = outcome(name, kind, n, file)
                    bad += bool(wrong)
                    took = f"{time.monotonic() - begin:.1f} s, {peak / 1e6:.0f} MB"
                    said = f"{name} ({chain(int(name))[0]})" if chains else name
                    print(f"{said}, {kind}, {n} workers, {took}: {wrong or 'right'}", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    command()
