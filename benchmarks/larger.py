"""Larger than memory: an array of doubles on disk under a limit of a sixth of it, embedded, on two workers,
and by dask.array and cubed where they are installed (`larger_sides`).

`python -m benchmarks.larger [--gigabytes 6] [--cold] [--on SIDE]... [--record] [ROW...]` runs some rows,
`python -m benchmarks larger` all, at 6 GB. Each row runs in a process of its own, and all of its answer is
compared with one that NumPy makes part by part (`larger_answers`). Memory is that of all its processes: what
they have for themselves, and shared pages once; the files' pages, which the kernel takes back whenever it
likes, are not counted. So is the time of all their processors, which tells more than the clock where others
use the machine. A row's time stands beside that of reading and writing, and doing nothing with it, the bytes
that it must (`MUST`), taken just before it, and beside that of its arithmetic alone (`larger_floors`). The
row "nothing" shows what the processes take before anything is computed.

Kernels lie on disk, as they do in all but the first run of a program on a machine. A run that had some
compiled is repeated; the seconds that it took stand in the column "first".
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import click
import numpy

from benchmarks.larger_answers import CLUSTERS, COLUMNS, FOUND, PART, QUANTILES, STEPS, WRITTEN, Answers
from benchmarks.larger_floors import floor_s
from benchmarks.larger_sides import SIDES

SHARE = 6
"""The limit is one part in so many of the array."""
_SAMPLE_S = 0.01
_EXACTLY_S = 0.5
"""How often shared pages are counted in parts, where several processes may share some: the kernel walks over
all pages of a process for that, those of a mapped file, too, which takes 20 ms for 2 GB. Besides, it is done
as soon as"""
_MORE = 1.01
"""so many times the memory is held that was held at most before, as the kernel counts it anyway."""
_SHORT_S = 5.0
"""A row that takes less has its seconds from a run without such looks, which take as long as a fold."""
_COMPILED_S = 60.0
"""How long a run waits at most for kernels that the one before has left to be compiled."""

Row = Callable[[Any, Any, str], Any]
"""`row(np, x, out)` computes from the array `x`; large results go to the file `out`."""


def _kmeans(np: Any, x: Any, out: str) -> Any:
    centers = numpy.array(x[:CLUSTERS])
    for _ in range(STEPS):
        distances = (centers * centers).sum(axis=1) - 2 * (x @ centers.T)
        marks = distances.argmin(axis=1)[:, None] == numpy.arange(CLUSTERS)
        marks = marks.astype(float)
        sums, counts = _together(np, marks.T @ x, marks.sum(axis=0))
        centers = numpy.asarray(sums) / numpy.maximum(numpy.asarray(counts), 1)[:, None]
    return centers


def _logistic_regression(np: Any, x: Any, out: str) -> Any:
    y = x[:, 0] > 0.5
    w = numpy.zeros(COLUMNS)
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-(x @ w)))
        w = w - numpy.asarray(x.T @ (p - y)) / x.shape[0]
    return w


def _components(np: Any, x: Any, out: str) -> Any:
    mean, moments = map(numpy.asarray, _together(np, np.mean(x, axis=0), x.T @ x))
    return numpy.linalg.eigvalsh(moments / x.shape[0] - numpy.outer(mean, mean))


def _together(np: Any, *values: Any) -> tuple[Any, ...]:
    """Values that one pass over the file makes."""
    return values if np is numpy else np.compute(*values)


def _saved(np: Any, value: Any, out: str) -> None:
    np.save(out, value)


ROWS: dict[str, Row] = {
    "nothing": lambda np, x, out: None,
    "mean": lambda np, x, out: np.mean(x, axis=0),
    "std": lambda np, x, out: np.std(x, axis=0),
    "var": lambda np, x, out: np.var(x, axis=0),
    "max": lambda np, x, out: np.max(x, axis=0),
    "masked sum": lambda np, x, out: x[x > 0.5].sum(),
    "x * 2 + 1 to a file": lambda np, x, out: _saved(np, x * 2 + 1, out),
    "cumsum to a file": lambda np, x, out: _saved(np, np.cumsum(x, axis=0), out),
    "x.T @ x": lambda np, x, out: x.T @ x,
    "sort to a file": lambda np, x, out: _saved(np, np.sort(x.reshape(-1)), out),
    "median and quantiles": lambda np, x, out: np.quantile(x.reshape(-1), list(QUANTILES)),
    "x.T to a file": lambda np, x, out: _saved(np, x.T, out),
    "k-means": _kmeans,
    "logistic regression": _logistic_regression,
    "components": _components,
}
MUST: dict[str, tuple[int, int]] = {
    "nothing": (0, 0),
    "x * 2 + 1 to a file": (1, 1),
    "cumsum to a file": (1, 1),
    "sort to a file": (2, 2),
    "median and quantiles": (2, 0),
    "x.T to a file": (1, 1),
    "k-means": (STEPS, 0),
    "logistic regression": (STEPS, 0),
}
"""How often the array must be read and written, if not read once: a sort puts sorted parts aside, and who
reads once needs memory for half of the elements to know the middle one (Munro and Paterson, 1980)."""


@dataclass(frozen=True)
class Outcome:
    """What a row took; `error` says why it has no answer."""

    seconds: float = 0.0
    processor_s: float = 0.0
    """Of all processes."""
    peak_bytes: int = 0
    error: str = ""
    difference: float = 0.0
    first_s: float = 0.0
    """Seconds of the first run, in which kernels were compiled; 0 where there was none such."""


class Watch:
    """The most memory that this process and its children have had for themselves."""

    def __init__(self, looks: bool = True) -> None:
        self.peak_bytes = 0
        self._looks = looks
        self.processor_s = 0.0
        """What the watch itself has taken."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        if self._looks:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        if self._looks:
            self._thread.join()

    def processes(self) -> Iterator[int]:
        """Whose memory counts."""
        return _family(os.getpid())

    def _work(self) -> None:
        most = exactly_s = 0.0
        while True:  # at least once, and once more at the end
            over = self._end.wait(_SAMPLE_S)
            now = time.monotonic()
            found = [*self.processes()]
            about = sum(map(_about_bytes, found))
            is_alone = len(found) == 1
            is_due = over or about > most * _MORE or now - exactly_s >= _EXACTLY_S
            if about > self.peak_bytes and (is_alone or is_due):  # shared pages once, it is no more than that
                most, exactly_s = max(most, about), now
                self.peak_bytes = max(self.peak_bytes, about if is_alone else sum(map(_own_bytes, found)))
            self.processor_s = time.thread_time()
            if over:
                return


def _family(pid: int) -> Iterator[int]:
    yield pid
    children: list[int] = []
    with suppress(OSError):  # it may end meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                children += map(int, (task / "children").read_text().split())
    for child in children:
        if not _is_in_memory_of(child, pid):
            yield from _family(child)


_KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine(), -1)
_KCMP_VM = 1
"""The system's call that compares what two processes have, and its number for memory."""
_system = ctypes.CDLL(None).syscall


def _is_in_memory_of(child: int, parent: int) -> bool:
    """Whether a process still has its parent's memory, since it has not begun its program yet."""
    return bool(_system(_KCMP, parent, child, _KCMP_VM, 0, 0) == 0)


def _own_bytes(pid: int) -> int:
    """Anonymous and shared memory of a process; pages that several share count in parts."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    found = (line.split() for line in lines if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return sum(int(words[1]) * 1024 for words in found)


def _about_bytes(pid: int) -> int:
    """The same, but pages that several share count for each: what the kernel knows without a look."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = (line.split() for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(int(words[1]) * 1024 for words in found)


def _processor_s(pid: int) -> float:
    """Seconds that a process has had of processors."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK")


def run_here(row: str, file: str, on: str, limit: int, folder: str, looks: bool) -> Outcome:
    """A row in this process, which is to end after it; its answer goes to the folder."""
    with SIDES[on].opened(limit, folder) as np, Watch(looks) as watch:
        time.sleep(2 * _SAMPLE_S)  # the processes by themselves
        before, begin = sum(map(_processor_s, _family(os.getpid()))), time.perf_counter()
        try:
            found = ROWS[row](np, np.load(file), f"{folder}/{WRITTEN}")
            found = None if found is None else numpy.asarray(found)
        except (MemoryError, RuntimeError) as error:
            return Outcome(error=f"{type(error).__name__}: {str(error)[:160]}")
        seconds = time.perf_counter() - begin
        used = sum(map(_processor_s, _family(os.getpid()))) - before - watch.processor_s
    if found is not None:
        numpy.save(f"{folder}/{FOUND}", found)
    return Outcome(seconds, max(used, 0.0), watch.peak_bytes)


def _made(folder: str, nbytes: int) -> str:
    """A file of random doubles, written as files are: what is filled through a map lies in the kernel's
    smallest pages, which everybody takes up to twice as long to read."""
    file = f"{folder}/x.npy"
    rows = nbytes // (8 * COLUMNS)
    random = numpy.random.default_rng(0)
    with open(file, "wb") as opened:
        header = {"descr": "<f8", "fortran_order": False, "shape": (rows, COLUMNS)}
        numpy.lib.format.write_array_header_1_0(opened, header)
        opened.writelines(random.random((min(PART, rows - k), COLUMNS)).data for k in range(0, rows, PART))
        opened.flush()
        os.fsync(opened.fileno())
    return file


def _reading(file: str) -> float:
    """Seconds to read the file and do nothing."""
    buffer = bytearray(1 << 24)
    begin = time.perf_counter()
    with open(file, "rb", buffering=0) as opened:
        while opened.readinto(buffer):
            pass
    return time.perf_counter() - begin


def _drop(file: str) -> None:
    """Have the kernel let go of the file's pages."""
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _writing(folder: str, nbytes: int) -> float:
    """Seconds to write so many bytes to a new file, whose place is set aside: it takes a half to a tenth of
    the time of one that grows."""
    buffer = bytearray(1 << 24)
    begin = time.perf_counter()
    with tempfile.TemporaryFile(dir=folder, buffering=0) as opened:
        os.posix_fallocate(opened.fileno(), 0, nbytes)
        for _ in range(0, nbytes, len(buffer)):
            opened.write(buffer)
        return time.perf_counter() - begin


def study(
    rows: tuple[str, ...], sides: tuple[str, ...], gigabytes: float, folder: str | None, cold: bool
) -> str:
    """Run rows, print the table as it grows, and give it as a section of the results."""
    from benchmarks import report  # not in the processes whose memory is measured

    nbytes = int(gigabytes * 1e9)
    limit = nbytes // SHARE
    table: list[str] = []

    def tell(line: str) -> None:
        click.echo(line)
        table.append(line)

    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = _made(place, nbytes)
        answers = Answers(file)
        state = "cold" if cold else "warm"
        of = f"{nbytes / 1e9:g} GB of doubles"
        tell(f"### {'larger, cold' if cold else 'larger'}\n\n{of}, {state}, under {limit / 1e6:.0f} MB.")
        tell(f"Made on {report.now()}.\n")
        tell(
            "| row | on | seconds | to its bytes | arithmetic alone | first | of processors | peak "
            "| to the limit | difference |"
        )
        tell("|---|---|---|---|---|---|---|---|---|---|")
        for row in rows or ROWS:
            floor = floor_s(row, nbytes)
            least = "" if floor is None else f"{floor:.2f} s"
            for on in sides or SIDES:
                if row in SIDES[on].lacks:
                    continue
                must = _bytes_s(row, file, cold)
                outcome = _with_kernels(row, file, on, limit, answers, cold)
                if outcome.error:
                    tell(f"| {row} | {on} | {outcome.error} | | | | | | | |")
                    continue
                ratio = f"{outcome.seconds / must:.2f}" if must else ""
                first = f"{outcome.first_s:.2f}" if outcome.first_s else ""
                tell(
                    f"| {row} | {on} | {outcome.seconds:.2f} | {ratio} | {least} | {first} "
                    f"| {outcome.processor_s:.2f} | {outcome.peak_bytes / 1e6:.0f} MB "
                    f"| {outcome.peak_bytes / limit:.2f} | {outcome.difference:.1e} |"
                )
    return "\n".join(table)


def _bytes_s(row: str, file: str, cold: bool) -> float:
    """Seconds to read and write what a row must, and no more; only the first look at the file is cold."""
    reads, writes = MUST.get(row, (1, 0))
    if not reads:
        return 0.0
    (_drop if cold else _reading)(file)
    first, again = _reading(file), _reading(file)
    written = _writing(os.path.dirname(file), os.path.getsize(file)) if writes else 0.0
    return first + (reads - 1) * again + writes * written


def _with_kernels(row: str, file: str, on: str, limit: int, answers: Answers, cold: bool) -> Outcome:
    """As `_alone`, and once more where kernels were compiled in the run or behind it."""
    before = _kernels()
    outcome = _alone(row, file, on, limit, answers, cold)
    if outcome.error or _kernels() == before:
        return outcome
    return replace(_alone(row, file, on, limit, answers, cold), first_s=outcome.seconds)


def _alone(
    row: str, file: str, on: str, limit: int, answers: Answers | None = None, cold: bool = False
) -> Outcome:
    """A row in a process of its own, its answer compared; a short one once more, to be timed."""
    outcome = _once(row, file, on, limit, answers or Answers(file), cold, looks=True)
    if outcome.error or outcome.seconds >= _SHORT_S:
        return outcome
    timed = _once(row, file, on, limit, answers or Answers(file), cold, looks=False)
    return replace(timed, peak_bytes=outcome.peak_bytes)


def _once(row: str, file: str, on: str, limit: int, answers: Answers, cold: bool, looks: bool) -> Outcome:
    (_drop if cold else _reading)(file)
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        one = [row, file, on, str(limit), folder, str(looks)]
        command = [sys.executable, "-m", "benchmarks.larger", "--one", *one]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return Outcome(error=f"ended with {done.returncode}: {done.stderr.strip()[-160:]}")
        outcome = Outcome(**json.loads(done.stdout.splitlines()[-1]))
        if outcome.error:
            return outcome
        return replace(outcome, difference=answers.difference(row, folder))


def _kernels() -> frozenset[str]:
    """The names of the kernels that lie on disk, once nobody compiles what an ended process has left."""
    from spartan_ng.kernels.compiled.cache import cache_directory, waiting_sources  # not where memory counts
    from spartan_ng.kernels.compiled.heir import LOCK
    from spartan_ng.system.files import locked

    folder = cache_directory()
    until_s = time.monotonic() + _COMPILED_S
    while waiting_sources(folder) and time.monotonic() < until_s:
        time.sleep(_SAMPLE_S)
    with locked(str(folder / LOCK)):  # by whoever compiles
        return frozenset(name for name in os.listdir(folder) if "." not in name)


@click.command()
@click.argument("rows", nargs=-1)
@click.option("--gigabytes", default=6.0, help="The array's size.")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Where the files go; the temporary folder if left out.",
)
@click.option(
    "--on", "sides", multiple=True, type=click.Choice([*SIDES]), help="Who computes; all if left out."
)
@click.option("--cold", is_flag=True, help="Have the kernel forget the file before each row.")
@click.option("--record", is_flag=True, help="Put the table into RESULTS.md.")
@click.option("--one", nargs=6, type=(str, str, str, int, str, bool), hidden=True)
def command(
    rows: tuple[str, ...],
    gigabytes: float,
    folder: str | None,
    sides: tuple[str, ...],
    cold: bool,
    record: bool,
    one: tuple[str, str, str, int, str, bool] | None,
) -> None:
    """Run rows, all if none is named."""
    if one is not None:
        outcome = run_here(*one)
        click.echo(json.dumps(outcome.__dict__))
        return
    unknown = [r for r in rows if r not in ROWS]
    if unknown:
        raise click.UsageError(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    table = study(rows, sides, gigabytes, folder, cold)
    if record:
        from benchmarks import report

        report.record("", [table])


def main() -> str:
    """All rows at the size of the goal."""
    return study((), (), 6.0, None, cold=False)


if __name__ == "__main__":
    command()
