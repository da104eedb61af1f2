"""What programs over a source keep in memory while they are built and computed: never all of it."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import memory
from spartan_ng.api.algebra.factorizations import is_tall
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.sinks.zarr_store import ZarrStore
from spartan_ng.worker.stages import joins
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((4000, 250))
LIMIT = VALUE.nbytes // 8
TABLE = numpy.arange(100.0) ** 2

PROGRAMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lookup": lambda m, x, table: table[(x * 100).astype(int)].sum(axis=0),
    "lookup from the end": lambda m, x, table: table[(x * -100).astype(int)].sum(axis=1),
    "take": lambda m, x, table: m.take(table, (x * 100).astype(int)).max(axis=0),
    "lookup of rows": lambda m, x, table: table.reshape(25, 4)[(x[:, 0] * 25).astype(int)].sum(axis=0),
    "searchsorted": lambda m, x, table: m.searchsorted(table, x * 9801).sum(axis=0),
    "places counted": lambda m, x, table: m.bincount(m.searchsorted(table, x[:, 0] * 9801, "right")),
    "digitize": lambda m, x, table: m.digitize(x * 9801, table).sum(axis=0),
    "isin": lambda m, x, table: m.isin((x * 100).astype(int), table).sum(axis=0),
    "not isin": lambda m, x, table: m.isin((x * 100).astype(int), table, invert=True).any(axis=1),
    "histogram": lambda m, x, table: m.histogram(x, bins=50)[0],
    "histogram within": lambda m, x, table: m.histogram(x * 2, bins=7, range=(0.25, 0.5))[0],
    "weighted histogram": lambda m, x, table: m.histogram(x, bins=7, range=(0, 1), weights=x)[0],
}


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    settings = config.override(memory_bytes=LIMIT, small_bytes=1 << 10)
    with running_on(EmbeddedBackend(2, LIMIT)), mock.patch.object(memory, "BAND_BYTES", 100_000), settings:
        yield


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_keep_parts(name: str) -> None:
    value = VALUE.reshape(-1) if "histogram" in name else VALUE
    program, source, table = PROGRAMS[name], Recorder(value), np.asarray(TABLE)
    expected = program(numpy, value, TABLE)
    numpy.asarray(program(np, over(source), table))  # kernels and plans are there
    peaks = []
    for _ in range(3):  # what other threads import meanwhile is no array's
        tracemalloc.start()
        try:
            found = numpy.asarray(program(np, over(source), table))
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    numpy.testing.assert_allclose(found, expected)
    assert found.dtype == expected.dtype
    peak = min(peaks)
    assert peak <= 2 * LIMIT, f"{peak:,} bytes where arrays may take {LIMIT:,}"


_BACK = numpy.arange(40_000)[::-1]
MAPPED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "lookup": lambda m, i, v: m.asarray(TABLE)[i].sum(),
    "lookup from the end": lambda m, i, v: m.asarray(TABLE)[i - 100].sum(),
    "lookup of what was computed": lambda m, i, v: (v - (m.bincount(i, v) / m.bincount(i))[i]).max(),
    "sums at places": lambda m, i, v: _added(m, i, v),
    "argmax": lambda m, i, v: v.argmax(),
    "argmin of rows": lambda m, i, v: v.reshape(1000, -1).argmin(axis=1).sum(),
    "argmax of integers": lambda m, i, v: i.reshape(1000, -1).argmax(),
    "seeded numbers": lambda m, i, v: m.random.default_rng(0).normal(size=v.size).mean(),
    "seeded noise": lambda m, i, v: (v + m.random.RandomState(0).exponential(size=v.size)).max(),
    "rows by an array beside a slice": lambda m, i, v: v.reshape(-1, 100)[_BACK, :].sum(axis=0),
    "columns by an array": lambda m, i, v: v.reshape(-1, 100)[:, numpy.arange(100)[::-1]].sum(axis=1)[::9],
    "another order": lambda m, i, v: m.random.default_rng(0).permutation(v)[::1000].sum(),
    "a range in another order": lambda m, i, v: v[m.random.RandomState(0).permutation(v.size)][::1000].sum(),
    "a bootstrap": lambda m, i, v: v[m.random.default_rng(0).integers(0, v.size, v.size)].mean(),
}


def _added(m: Any, i: Any, v: Any) -> Any:
    out = m.zeros(100)
    m.add.at(out, i, v)
    return out


MANY = 4_000_000
ROOM = MANY * 3
"""Memory for less than half of such an array; blocks of two threads are part of it."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("mapped")
    places = numpy.random.default_rng(1).integers(0, 100, MANY)
    numpy.save(folder / "i.npy", places)
    numpy.save(folder / "v.npy", numpy.sin(places) + numpy.arange(MANY) / MANY)
    return [folder / "i.npy", folder / "v.npy"]


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("name", MAPPED)
def test_programs_over_mapped_files_keep_parts(name: str, files: list[Path]) -> None:
    """Files that are mapped are arrays that are here, and yet take no memory."""
    expected = MAPPED[name](numpy, *(numpy.load(file, "r") for file in files))
    operands = [np.load(file) for file in files]
    with config.override(memory_bytes=ROOM), running_on(EmbeddedBackend(2, ROOM)):
        numpy.asarray(MAPPED[name](np, *operands))  # kernels and plans are there
        tracemalloc.start()
        try:
            found = numpy.asarray(MAPPED[name](np, *operands))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    numpy.testing.assert_allclose(found, expected)
    assert peak < MANY * 8, f"{peak:,} bytes where one of the arrays has {MANY * 8:,}"


KINDS = (*("f8", "g", ">i4", "c8", "?", "M8[s]", ">m8[ms]", "S6", "U6"), [("a", "i4"), ("b", "f4")])


@pytest.mark.some(12)
@pytest.mark.parametrize("target", [*KINDS, "M8[D]", "U", "S", "M8"], ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_files_are_converted_in_parts(kind: Any, target: Any, tmp_path: Path) -> None:
    """Whatever they hold, and whatever that is to be; nothing is read at the call."""
    digits = numpy.arange(60_000) % 7
    x = numpy.zeros(digits.size, kind)
    for name in x.dtype.names or (...,):
        x[name] = numpy.char.add("200", digits.astype("U1")) if x.dtype.kind in "SU" else digits
    numpy.save(tmp_path / "x.npy", x)
    given = np.load(tmp_path / "x.npy")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = x.astype(target)
    except (TypeError, ValueError, RuntimeError) as error:
        with pytest.raises(type(error)):
            numpy.asarray(given.astype(target))
        return
    with config.override(memory_bytes=4 * 60_000), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = given.astype(target)
        told = x.dtype.kind not in "mM" and target == "M8"  # only the elements say how fine
        assert told or found._peek() is None or numpy.dtype(target) == x.dtype
        value = numpy.asarray(found)
    assert value.dtype == expected.dtype
    assert numpy.array_equal(value, expected)


def test_an_index_out_of_bounds_is_told_at_once() -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        np.asarray(TABLE)[(over(Recorder(VALUE)) * 101).astype(int) + 1]


@pytest.mark.slow
def test_products_have_few_states_beside_what_they_make() -> None:
    """The result is on disk; the states of all blocks together would be as large."""
    w = numpy.random.default_rng(1).random((250, 150))
    with mock.patch("spartan_ng.worker.stages.reduced._LARGE_BYTES", LIMIT):
        for whole in (VALUE, (VALUE * 9).astype(int)):
            source, right = over(Recorder(whole)), np.asarray(w.astype(whole.dtype))
            (source[:200] @ right).persist()
            tracemalloc.start()
            try:
                found = (source @ right).persist()
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            numpy.testing.assert_allclose(found, whole @ w.astype(whole.dtype))
            assert peak < 4000 * 150 * 8 // 2, f"{peak:,} bytes"


@pytest.mark.slow
@pytest.mark.some(10)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?"])
@pytest.mark.parametrize("asked", ["inverse", "index", "inverse counts", "index inverse counts"])
@pytest.mark.parametrize("workers", [0, 3])
def test_places_among_the_distinct_are_searched_for_what_does_not_fit(
    dtype: str, asked: str, workers: int
) -> None:
    value = (VALUE * 300).astype(int).astype(dtype)[:1000]
    if dtype[0] == "f":
        value[::7, 3], value[::5, 4], value[1::5, 4] = numpy.nan, -0.0, 0.0
    words: dict[str, Any] = {f"return_{word}": True for word in asked.split()}
    budget = value.nbytes // 4 if workers else value.nbytes
    backend: Any = EmbeddedBackend(2, budget)
    if workers:
        backend = SimulatedBackend(workers, Profile(memory_bytes=budget, limited=True))
    with running_on(backend), config.override(memory_bytes=budget):
        found = [numpy.asarray(x) for x in np.unique(over(Recorder(value)), **words)]
    expected = numpy.unique(value, **words)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        numpy.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    if "index" in asked:  # of zeros of both signs, the first
        numpy.testing.assert_array_equal(numpy.signbit(found[0] * 1.0), numpy.signbit(expected[0] * 1.0))


PICKED = {
    "mask": lambda m, x: x[x > 0.25],
    "rows by mask": lambda m, x: x[x[:, 0] > 0.25],
    "nonzero": lambda m, x: m.flatnonzero(x > 0.5),
    "rows": lambda m, x: x[(m.arange(len(x)) * 7919) % len(x)],
    "one column's places": lambda m, x: m.take(x, m.asarray([3, 1, 3]), axis=1),
    "repeats": lambda m, x: m.repeat(x, m.arange(len(x)) % 3, axis=0),
    "counts": lambda m, x: m.bincount((x.reshape(-1) * 50).astype(int)),
    "the last that is written": lambda m, x: _written(m, x.reshape(-1)),
}


def _written(m: Any, line: Any) -> Any:
    out = m.zeros(60)
    out[(line * 50).astype(int)] = line
    return out


@pytest.mark.some(4)
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("name", PICKED)
def test_rows_are_picked_a_few_at_a_time(name: str, workers: int, kept: bool) -> None:
    """As many as memory has room for, wherever they lie."""
    few = mock.patch.object(joins, "_PIECE", 100), mock.patch.object(joins, "_ROWS", 700)
    backend: Any = EmbeddedBackend(2, LIMIT)
    if workers:
        backend = SimulatedBackend(workers, Profile(memory_bytes=LIMIT // workers, limited=True))
    with running_on(backend), few[0], few[1]:
        x = over(Recorder(VALUE[:, :30]))
        found = PICKED[name](np, (x * 1).persist() if kept else x)
        numpy.testing.assert_array_equal(numpy.asarray(found), PICKED[name](numpy, VALUE[:, :30]))


TALL = {
    "qr": lambda m, x: m.abs(m.linalg.qr(x)[1]),
    "svdvals": lambda m, x: m.linalg.svdvals(x),
    "pinv": lambda m, x: m.linalg.pinv(x),
    "lstsq": lambda m, x: m.linalg.lstsq(x, x[:, 0] + x[:, 1], rcond=None)[0],
}


@pytest.mark.parametrize("name", TALL)
def test_tall_matrices_that_do_not_fit_are_factored_by_groups_of_rows(name: str) -> None:
    value = VALUE.reshape(-1, 20)
    x = over(Recorder(value))
    assert is_tall(x)
    numpy.testing.assert_allclose(TALL[name](np, x), TALL[name](numpy, value), atol=1e-9)


WRITTEN = {
    "less their mean": lambda x: x - x.mean(axis=0),
    "standardized": lambda x: (x - x.mean(axis=0)) / x.std(axis=0),
    "less their mean by rows": lambda x: x - x.mean(axis=(1, 2), keepdims=True),
    "scaled": lambda x: x / (x.max(axis=0) + 1) * 2,
}


@pytest.mark.slow
@pytest.mark.some(8)
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("chunks", [(10, 25, 100), (8, 25, 100), (400, 5, 10)])
def test_what_is_written_in_chunks_is_read_in_their_order(
    name: str, chunks: tuple[int, ...], tmp_path: Path
) -> None:
    """And not as a whole before the first chunk can be made."""
    pytest.importorskip("zarr")
    value = VALUE.reshape(400, 25, 100)
    source, read_bytes, write = Recorder(value, chunks), list[int](), ZarrStore.write

    def noted(sink: Any, block: Any, box: Any) -> None:
        read_bytes.append(sum(prod(hi - lo for lo, hi in asked) for asked in source.asked) * 8)
        write(sink, block, box)

    with mock.patch.object(ZarrStore, "write", noted):
        np.to_zarr(WRITTEN[name](over(source)), tmp_path / "made", chunks=chunks)
    numpy.testing.assert_allclose(np.from_zarr(tmp_path / "made"), WRITTEN[name](value))
    assert read_bytes[0] <= max(read_bytes) - value.nbytes // 2
