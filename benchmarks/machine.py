"""What this machine can do at most, and what it is: the frame of every figure."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy


def memory_bandwidth(elements: int = 20_000_000, rounds: int = 7) -> float:
    """Bytes a second of a triad a = b + 3 c on all cores: two reads and a write an element."""
    triad = _compiled_triad()
    b, c = numpy.ones(elements), numpy.ones(elements)
    a = numpy.zeros(elements)
    triad(a, b, c)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        triad(a, b, c)
        times.append(time.perf_counter() - start)
    return 24 * elements / median(times)


def read_bandwidth(threads: int, elements: int = 40_000_000, rounds: int = 5) -> float:
    """Bytes a second of reading three vectors side by side, on so many cores: a sum of products."""
    import numba

    most = numba.get_num_threads()
    product = _compiled_product()
    vectors = [numpy.ones(elements) for _ in range(3)]
    product(*vectors)
    times = []
    numba.set_num_threads(min(threads, most))
    for _ in range(rounds):
        start = time.perf_counter()
        product(*vectors)
        times.append(time.perf_counter() - start)
    numba.set_num_threads(most)
    return 24 * elements / median(times)


def _compiled_product() -> Callable[..., Any]:
    import numba

    @numba.njit(parallel=True, fastmath=True)  # type: ignore[untyped-decorator]
    def product(a: Any, b: Any, c: Any) -> Any:
        total = 0.0
        for i in numba.prange(a.size):
            total += a[i] * b[i] * c[i]
        return total

    compiled: Callable[..., Any] = product
    return compiled


def _compiled_triad() -> Callable[..., Any]:
    import numba

    @numba.njit(parallel=True)  # type: ignore[untyped-decorator]
    def triad(a: Any, b: Any, c: Any) -> None:
        for i in numba.prange(a.size):
            a[i] = b[i] + 3.0 * c[i]

    compiled: Callable[..., Any] = triad
    return compiled


def versions() -> list[str]:
    """`name version` of Python and of every library that takes part."""
    names = ("spartan-ng", "numpy", "scipy", "numba", "numexpr", "dask", "jax", "pyzmq")
    found = [f"Python {platform.python_version()}"]
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} not installed")
    return found


def cpu() -> str:
    """The processor's name and the number of cores this process may use."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        name = named[0] if named else name
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def memory() -> str:
    """The machine's main memory."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"
