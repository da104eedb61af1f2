"""Sets of many elements, few of which are distinct: NumPy's answers, by what workers find for themselves."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.files.sources import over
from spartan_ng.config import config
from tests.moved_bytes import Recorded
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

N = 20_000
WORKERS = 4
random = numpy.random.default_rng(0)

LINES = {
    "few": random.integers(-50, 50, N),
    "one": numpy.full(N, 7),
    "many": random.permutation(N) - N // 2,
    "some": random.integers(0, 300, N),
    "a thousand": random.integers(-500, 500, N),
    "far apart": random.integers(-400, 400, N) * 1_000_003,
    "at both ends": random.integers(-200, 200, N) + random.choice([1 << 62, -(1 << 62)], N),
}
KINDS = ("i8", "i2", "i1", "u1", "u8", "?", "f8", "f2", "c16", "M8[s]")


def _with_holes(line, dtype):
    """The numbers in another dtype; those of floats have zeros of both signs, and NaN."""
    with numpy.errstate(over="ignore"):  # of halves, the ends are infinite
        made = line.astype(dtype)
    if made.dtype.kind in "fc":
        made[::7] = 0.0
        made[::11] = -0.0
        made[5::1013] = numpy.nan
    return made


def _lazy(line):
    """The same array with nothing computed yet."""
    return np.concatenate([np.asarray(line[: N // 3]), np.asarray(line[N // 3 :])])


MAKERS = {"there": np.asarray, "lazy": _lazy, "square": lambda line: _lazy(line).reshape(100, -1)}

FORMS = {
    "plain": lambda xp, a, b: [xp.unique(a)],
    "unsorted": lambda xp, a, b: [xp.unique_values(a)],
    "indices": lambda xp, a, b: xp.unique(a, return_index=True),
    "inverse": lambda xp, a, b: xp.unique(a, return_inverse=True),
    "counts": lambda xp, a, b: xp.unique(a, return_counts=True),
    "all": lambda xp, a, b: xp.unique(a, True, True, True),
    "all, each NaN": lambda xp, a, b: xp.unique(a, True, True, True, equal_nan=False),
    "union": lambda xp, a, b: [xp.union1d(a, b)],
    "both": lambda xp, a, b: [xp.intersect1d(a, b)],
    "both and where": lambda xp, a, b: xp.intersect1d(a, b, return_indices=True),
    "only one": lambda xp, a, b: [xp.setdiff1d(a, b)],
    "exactly one": lambda xp, a, b: [xp.setxor1d(a, b)],
    "is in": lambda xp, a, b: [xp.isin(a, b)],
    "few in": lambda xp, a, b: [xp.isin(a.ravel()[:9].reshape(3, 3), b)],
    "one not in": lambda xp, a, b: [xp.isin(a.ravel()[3], b, invert=True)],
}


@pytest.mark.some(80)
@pytest.mark.parametrize("on_workers", [False, True])
@pytest.mark.parametrize(
    ("form", "kind", "one", "other", "maker"), list(product(FORMS, KINDS, LINES, ("few", "some"), MAKERS))
)
def test_sets_are_numpys(form, kind, one, other, maker, on_workers):
    a, b = _with_holes(LINES[one], kind), _with_holes(LINES[other][::-1] + 20, kind)
    if form == "unsorted":
        wanted = [numpy.unique(a, equal_nan=False)]
    else:
        wanted = FORMS[form](numpy, a.reshape(100, -1) if maker == "square" else a, b)

    def found():
        with config.override(small_bytes=0):
            return [numpy.asarray(x) for x in FORMS[form](np, MAKERS[maker](a), _lazy(b))]

    if on_workers:
        with running_on(SimulatedBackend(WORKERS)):
            got = found()
    else:
        got = found()
    for x, y in zip(got, wanted, strict=True):
        assert x.dtype == y.dtype
        numpy.testing.assert_array_equal(x, y)


STATE = 128 * 8
"""What a worker says of its distinct elements, in bytes."""


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"indices", "all", "all, each NaN", "both and where"}))
def test_distinct_elements_are_found_where_they_are(form):
    """Where each is first is looked for at one place, and moves more."""
    line = random.random(400_000)
    backend = Recorded(WORKERS)
    with running_on(backend), config.override(small_bytes=0):
        a, b = (np.asarray(x).persist() for x in (line, line[::-1]))
        backend.ran.clear()
        for x in FORMS[form](np, (a * 100).astype(int), np.floor(b * 10).astype(int)):
            numpy.asarray(x)
    assert sum(stats.bytes_moved for _, stats in backend.ran) <= 6 * (WORKERS - 1) * STATE


@pytest.mark.parametrize("made", [lambda x: x * 2, numpy.sin], ids=["double", "sine"])
def test_what_is_sorted_to_be_counted_is_sorted_once(made):
    line = random.random(100_000)
    backend = Recorded(WORKERS)
    with running_on(backend), config.override(small_bytes=0):
        a = np.asarray(line).persist()
        backend.ran.clear()
        found = np.unique(made(a))
        numpy.testing.assert_array_equal(found, numpy.unique(made(line)))
    assert sum(stats.bytes_moved for _, stats in backend.ran) < 1.5 * line.nbytes


@pytest.mark.parametrize("where", ["memory", "outside"])
@pytest.mark.parametrize(
    "view",
    [
        lambda m, a: a[3:].T,
        lambda m, a: (a * 2).T[1:],
        lambda m, a: m.broadcast_to(a[5:], (3, 65, 5, 7)),
        lambda m, a: m.broadcast_to(a.reshape(-1), (3, 2450)),
        lambda m, a: m.broadcast_to((a * 2)[5:].reshape(-1), (3, 2275)),
    ],
)
def test_distinct_elements_of_views_that_are_not_kept(view, where):
    """What a stretched view of a part shows is computed, and nobody has it afterwards."""
    value = numpy.random.default_rng(0).integers(0, 9, (70, 5, 7))
    with config.override(small_bytes=1000):
        a = over(Recorder(value)) if where == "outside" else np.array(value)
        found = np.unique(view(np, a), return_counts=True)
    for ours, expected in zip(found, numpy.unique(view(numpy, value), return_counts=True), strict=True):
        numpy.testing.assert_array_equal(numpy.asarray(ours), expected)
