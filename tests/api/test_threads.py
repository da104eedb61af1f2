"""Threads that write to parts of one array of their own, as NumPy's users do: no write is lost.

The array has been computed, is still to be computed, or is being read lazily by another meanwhile.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np

THREADS, ROUNDS = 4, 6


def _add(a: Any, i: int) -> None:
    np.add(a[i], 3, out=a[i])


def _view(a: Any, i: int) -> None:
    v = a[i]
    v += 3


def _read(a: Any, found: list[Any]) -> None:
    found += [(a + 1).sum(axis=1) for _ in range(3)]


WRITES: dict[str, Callable[[Any, int], Any]] = {
    "row": lambda a, i: a.__setitem__(i, 10.0 * i),
    "row of an array": lambda a, i: a.__setitem__(i, np.arange(a.shape[1]) + i),
    "lazy row": lambda a, i: a.__setitem__(i, np.sin(np.arange(a.shape[1])) + i),
    "row in place": lambda a, i: a.__setitem__(i, a[i] + 3),
    "view": _view,
    "out": _add,
    "column": lambda a, i: a.__setitem__((slice(None), i), 7.0 + i),
    "elements": lambda a, i: [a.__setitem__((i, j), 5.0 + j) for j in range(12)],
    "mask": lambda a, i: a[i].__setitem__(a[i] > 1, 9.0),
    "places": lambda a, i: a.__setitem__((i, [0, 2, 4]), 4.0),
    "copyto": lambda a, i: np.copyto(a[i], 6.0 + i),
}
ARRAYS: dict[str, Callable[[Any, int], Any]] = {
    "computed": lambda xp, n: xp.array(numpy.full((THREADS, n), 2.0)),
    "lazy": lambda xp, n: xp.ones((THREADS, n)) * 2,
    "zeros": lambda xp, n: xp.zeros((THREADS, n)),
    "view of lazy": lambda xp, n: (xp.ones((THREADS + 2, n)) * 2)[1:-1],
}


def together(*works: Callable[[], Any]) -> None:
    """Run all in threads of their own, begun at once; what one raises is raised."""
    begin, errors = threading.Barrier(len(works)), []

    def run(work: Callable[[], Any]) -> None:
        begin.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(w,)) for w in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.filterwarnings("ignore::spartan_ng.errors.PerformanceWarning")
@pytest.mark.some(24)
@pytest.mark.parametrize("n", [12, 30_000])
@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("write", WRITES)
def test_no_write_is_lost(mode, write, array, n):
    for _ in range(ROUNDS):
        wanted, a = ARRAYS[array](numpy, n), ARRAYS[array](np, n)
        for i in range(THREADS):
            WRITES[write](wanted, i)
        together(*(partial(WRITES[write], a, i) for i in range(THREADS)))
        numpy.testing.assert_array_equal(a, wanted)


@pytest.mark.filterwarnings("ignore::spartan_ng.errors.PerformanceWarning")
@pytest.mark.parametrize("n", [12, 30_000])
@pytest.mark.parametrize("array", ARRAYS)
def test_readers_meanwhile_lose_no_write(mode, array, n):
    for _ in range(ROUNDS):
        wanted, a = ARRAYS[array](numpy, n), ARRAYS[array](np, n)
        read: list[Any] = []
        wanted[1:] = 5.0
        together(
            *(partial(a.__setitem__, i, 5.0) for i in range(1, THREADS)),
            partial(_read, a, read),
        )
        numpy.testing.assert_array_equal(a, wanted)
        rows = {n * (wanted[0, 0] + 1), n * (ARRAYS[array](numpy, n)[1, 0] + 1), n * 6.0}
        assert {float(r[0]) for r in read} <= rows


READS: dict[str, Callable[[Any, Any], Any]] = {
    "an operator": lambda x, b: b % x,
    "an operator on both": lambda x, b: x % x,
    "a function": lambda x, b: np.arctan2(x, b),
    "a function of one": lambda x, b: np.sinh(x),
    "NumPy's function": lambda x, b: numpy.arctan2(x, b),
    "a write in place": lambda x, b: operator.imod(b.copy(), x),
    "a result with a place": lambda x, b: np.hypot(x, b, out=np.empty_like(b)),
    "a power": lambda x, b: x**1.7,
    "a selection": lambda x, b: x[x > 1.0],
    "a selected write": lambda x, b: operator.setitem(b.copy(), x > 1.0, x),
    "short lines": lambda x, b: np.hypot(x.reshape(-1, 3), b[:3]),
}


@pytest.mark.parametrize("read", READS)
def test_elements_stay_as_long_as_they_are_read(read: str) -> None:
    """Another thread gives the array other elements, whose old ones nobody else has."""
    n, rounds = 15_000, 40
    here, wrong = [np.array(numpy.full(n, 1.5))], []
    b = np.array(numpy.full(n, 1.25))
    expected, over = numpy.asarray(READS[read](here[0], b)).copy(), threading.Event()

    def reads() -> None:
        while not over.is_set():
            found = numpy.asarray(READS[read](here[0], b))
            wrong.extend([1] * (not numpy.array_equal(found, expected)))

    def writes() -> None:
        for _ in range(rounds):
            here[0] = np.array(numpy.full(n, 1.5))
            here[0] % b  # the other has taken it by then
            here[0]._cell.value = numpy.full(n, 1.5)
            numpy.full(n, 7.0)  # where they were
        over.set()

    together(reads, writes)
    assert not wrong
