"""The rates of this machine: measured a few times in the background of programs that run long enough.

Plans weigh bytes against operations, and machines differ in how much memory their cores together bring in.
What was measured is used from the next program on, so that one program has one profile. Rates are rounded to
steps of the square root of two, stay within eight times of the assumed ones, and are not taken on a busy
machine. Not all that slows a machine down is seen: who shares its processors with others' virtual machines,
or a core with another thread, does half as much for a while. So it is measured at several moments, and the
middle one counts: the best says what programs do not reach, as a stage waits for the slowest of its threads.

Operations are those that tables count of a mixture of what programs wait for: small products, numbers drawn
one by one, and numbers sorted. Each does the same on every machine, where some functions of NumPy's have
loops in vector registers on some machines only (`np.exp` takes several times as long without AVX-512). None
is enough alone: of two machines whose BLAS is as fast, one sorts and draws twice as fast.
"""

from __future__ import annotations

import math
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from spartan_ng.costs.tuned import SMALL_BLAS_SPEEDUP, THREAD_BYTES_S, THREAD_FLOPS_S
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.system import machine
from spartan_ng.system.files import locked
from spartan_ng.system.ownership import why_not_own

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

PROFILE_VARIABLE = "SPARTAN_NG_PROFILE"
"""Environment variable: the file of measured rates; "assumed" neither reads nor measures any."""
WAITS_S = (2.0, 8.0, 32.0, 128.0, 512.0)
"""Seconds that a program has run before it measures, and between the moments when it does: a short one is not
slowed down."""
TRIES = 5
"""Moments at which a machine that was not busy is measured, by one program or several."""
_ROUNDS = 7
_LEAST_ROUNDS = 3
"""How often each is done, and how often undisturbed, at least: the median is taken, as the best of many says
what programs do not reach, because caches have kept some of the memory."""
_STREAM_BYTES = 1 << 27
"""What each thread reads to measure the memory: more than its share of any cache, of which virtual
machines on large hosts have some 80 MB."""
_MOST_STREAMS = 8
"""Threads that measure it, at most: fewer than that saturate the memory of any machine."""
_SHARE = 8
"""What they read together is at most one part in so many of what the program may take: one with little memory
leaves it to others."""
_LINE = 1 << 14
"""Numbers that are drawn, and sorted: a core's caches keep them."""
_SIDE, _STACK = 48, 24
"""Rows of matrices, and how many of them, whose products take a like number of operations; BLAS multiplies
them on the thread that calls it."""
_CALLS = 20
"""How often, in a round: some milliseconds."""
_QUIET = 1.3
"""Times of its threads' own time that a round may take: beyond it, other programs were at work."""
_MOST = 8

Rates = tuple[int, int]
"""Bytes that so many threads stream in a second, and operations that they do."""
_Found = list[Rates]
"""What was measured, moment by moment."""


def rates(threads: int) -> Rates:
    """What `threads` threads of this machine do in a second: measured by an earlier program, or assumed."""
    path = profile_path()
    found = [] if path is None else _kept(path, threads)
    if not found:
        return assumed(threads)
    bytes_s, flops_s = zip(*found, strict=True)
    return _middle(bytes_s), _middle(flops_s)


def _middle(values: Sequence[int]) -> int:
    """The median, of two the higher: `statistics` takes longer to import than all else to read."""
    return sorted(values)[len(values) // 2]


def of_host() -> tuple[tuple[int, ...], Rates]:
    """The processors that this process may use, and what so many threads do in a second; no processors where
    all is to be assumed, also how many there are."""
    if profile_path() is None:
        return (), (0, 0)
    processors = machine.processors()
    return processors, rates(len(processors))


def assumed(threads: int) -> Rates:
    """What threads do on the machines that the package was measured on."""
    return threads * THREAD_BYTES_S, threads * THREAD_FLOPS_S


def measure_later(threads: int, memory_bytes: int) -> threading.Thread | None:
    """Measure in some seconds, and again later, if the program still runs then, may take `memory_bytes` of
    which that is a small part, and others have not done it often enough; the thread, which never keeps a
    program from ending."""
    path = profile_path()
    if path is None or _SHARE * _streams(threads) * _STREAM_BYTES > memory_bytes:
        return None
    if len(_kept(path, threads)) >= TRIES:
        return None
    thread = threading.Thread(
        target=_measure_at_moments, args=(path, threads), name="spartan-ng-rates", daemon=True
    )
    thread.start()
    return thread


def measure(threads: int) -> Rates | None:
    """Measure with `threads` threads at once, some tenths of a second; None where other programs keep the
    machine busy."""
    from concurrent.futures import ThreadPoolExecutor

    bytes_s, flops_s = assumed(threads)
    streams = _streams(threads)
    factors = np.full((_STACK, _SIDE, _SIDE), 0.5)
    products = [np.empty_like(factors) for _ in range(threads)]
    drawing = [np.random.default_rng(i) for i in range(threads)]
    lines = [np.empty(_LINE) for _ in range(threads)]

    def stream(i: int) -> None:
        np.add.reduce(vectors[i])  # extremes are found at twice the rate at which programs read

    def compute(i: int) -> None:
        for _ in range(_CALLS):
            np.matmul(factors, factors, out=products[i])
            drawing[i].random(out=lines[i])
            lines[i].sort()

    with ThreadPoolExecutor(threads) as pool:
        compute_s = _together(pool, compute, threads)
        if compute_s is None:  # found out by little work, before any memory is taken
            return None
        vectors = [np.ones(_STREAM_BYTES // 8) for _ in range(streams)]
        stream_s = _together(pool, stream, streams)
    if stream_s is None:
        return None
    multiplied = _STACK * 2 * _SIDE**3 / SMALL_BLAS_SPEEDUP
    drawn = _LINE * DISTRIBUTIONS["random"].flops
    ordered = AXIS_FUNCTIONS["sort"].line_flops(_LINE, np.dtype(float))
    operations = threads * _CALLS * (multiplied + drawn + ordered)
    return (
        _settled(streams * _STREAM_BYTES / stream_s, bytes_s),
        _settled(operations / compute_s, flops_s),
    )


def _streams(threads: int) -> int:
    """How many of the threads measure the memory."""
    return min(threads, _MOST_STREAMS)


def _together(pool: ThreadPoolExecutor, work: Callable[[int], None], count: int) -> float | None:
    """Seconds that `count` threads take at once, in the middle one of the rounds that nothing disturbed; None
    where those were too few."""

    def timed(i: int) -> tuple[float, float, float]:
        start, own = time.perf_counter(), time.thread_time()
        work(i)
        return start, time.perf_counter(), time.thread_time() - own

    quiet: list[float] = []
    for i in range(_ROUNDS):
        if i - len(quiet) > _ROUNDS - _LEAST_ROUNDS:
            return None
        rounds = list(pool.map(timed, range(count)))
        seconds = max(end for _, end, _ in rounds) - min(start for start, _, _ in rounds)
        if seconds <= _QUIET * max(own for _, _, own in rounds):
            quiet.append(seconds)
    return float(np.median(quiet)) if len(quiet) >= _LEAST_ROUNDS else None


def _settled(rate: float, usual: int) -> int:
    """The assumed rate times the power of the square root of two that comes nearest, within bounds."""
    steps = round(2 * math.log2(min(max(rate / usual, 1 / _MOST), _MOST)))
    return int(usual * 2 ** (steps / 2))


def profile_path() -> Path | None:
    """Where rates are kept; None where they are assumed."""
    named = os.environ.get(PROFILE_VARIABLE)
    if named == "assumed":
        return None
    return Path(named) if named else Path.home() / ".cache" / "spartan_ng" / "profile.json"


def _identity(threads: int) -> str:
    """The machine as far as its rates depend on it, and what they were measured by."""
    machine = f"{platform.node()} {platform.machine()} {os.cpu_count()} cpus"
    work = f"sums of {_STREAM_BYTES >> 20} MB, products by {SMALL_BLAS_SPEEDUP}, draws and sorts"
    return f"{machine} {threads} threads numpy {np.__version__} at moments of {work}"


def _read(path: Path) -> dict[str, Any] | None:
    """What is kept; nothing where there is no such file, it is broken, or others may have written it."""
    with suppress(OSError, ValueError):
        if why_not_own(path) is None:
            kept = msgspec.json.decode(path.read_bytes())
            return kept if isinstance(kept, dict) else None
    return None


def _is_rates(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(v, int) and v > 0 for v in value)


def _kept(path: Path, threads: int) -> _Found:
    """What was measured with so many threads here; nothing where what is kept is something else."""
    found = (_read(path) or {}).get(_identity(threads), [])
    good = isinstance(found, list) and all(map(_is_rates, found))
    return [(bytes_s, flops_s) for bytes_s, flops_s in found] if good else []


def _measure_at_moments(path: Path, threads: int) -> None:
    """Measure at several moments, and keep each. What is not possible here is left to other programs."""
    for wait_s in WAITS_S:
        before = _kept(path, threads)
        if len(before) >= TRIES:
            return
        sleep(wait_s)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(f"{path}.lock"):
                if _kept(path, threads) == before:  # else another process has measured at this moment
                    _measure_and_keep(path, threads, before)
        except (OSError, RuntimeError):  # no such folder; the interpreter ends, and starts no more threads
            return


def _measure_and_keep(path: Path, threads: int, before: _Found) -> None:
    found = measure(threads)
    if found is None:  # another moment will be better
        return
    kept = {**(_read(path) or {}), _identity(threads): [*before, found]}
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(descriptor, "wb") as f:
        f.write(msgspec.json.format(msgspec.json.encode(kept), indent=1))
    os.replace(temporary, path)
