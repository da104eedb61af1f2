"""The contract between stages and sources: right in every tier and on any number of workers, box by box, each
element once, and never as a whole."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import memory, session
from spartan_ng.api.files.sources import over
from spartan_ng.arrays import Tiling
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import SourceError, UserFunctionError
from spartan_ng.graph.node import topological
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.plan.stages import Fused
from tests.engines.inline import InlineEngine
from tests.programs import Program, programs
from tests.sampling import examples, part
from tests.sources.recorder import Recorder
from tests.stages import Runner, drawn
from tests.test_programs import running_on

ROWS, COLUMNS = 6000, 40
VALUE = numpy.random.default_rng(0).random((ROWS, COLUMNS))

FOLDS = {
    "mean": lambda xp, x: x.mean(),
    "sum of columns": lambda xp, x: x.sum(axis=0),
    "sum of rows": lambda xp, x: x.sum(axis=1),
    "extremes": lambda xp, x: x.max(axis=0) - x.min(axis=0),
    "deviations": lambda xp, x: x.std(axis=0),
    "place of the largest": lambda xp, x: x.argmax(axis=0),
    "under a mask": lambda xp, x: x[x > 0.5].sum(),
    "of a function": lambda xp, x: (xp.exp(-x) * 2 + 1).sum(axis=1).max(),
    "with itself": lambda xp, x: (x * x + x).sum(axis=0),
    "product": lambda xp, x: x.T @ x,
    "times a matrix": lambda xp, x: (x @ numpy.ones((COLUMNS, 2))).sum(axis=0),
    "turned": lambda xp, x: x.T.sum(axis=0),
    "backwards": lambda xp, x: x[::-1].sum(axis=1),
    "softmax": lambda xp, x: (xp.exp(x) / xp.exp(x).sum(axis=1, keepdims=True)).max(axis=0),
}


@pytest.fixture(autouse=True)
def small_bands() -> Iterator[None]:
    with mock.patch.object(memory, "BAND_BYTES", 100_000), config.override(small_bytes=0):
        yield


@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("kernels", ["interpret", "numexpr", "compile"])
def test_a_fold_reads_each_element_once_and_little_at_a_time(name: str, kernels: str) -> None:
    source = Recorder(VALUE, (256, COLUMNS))
    with running_on(EmbeddedBackend(2)), config.override(kernels=kernels):
        found = numpy.asarray(FOLDS[name](np, over(source)))
    numpy.testing.assert_allclose(found, FOLDS[name](numpy, VALUE), rtol=1e-9)
    if name != "softmax":  # which has two stages where that is cheaper
        assert (source.times == 1).all()
    assert source.largest_bytes <= 100_000
    assert all(lo % 256 == 0 for (lo, _), _ in source.asked)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", FOLDS)
def test_workers_read_their_own_parts(name: str, workers: int) -> None:
    source = Recorder(VALUE)
    with running_on(SimulatedBackend(workers)):
        before = session.current().moved_bytes
        found = numpy.asarray(FOLDS[name](np, over(source)))
        moved = session.current().moved_bytes - before
    numpy.testing.assert_allclose(found, FOLDS[name](numpy, VALUE), rtol=1e-9)
    assert moved < VALUE.nbytes // 2
    assert source.largest_bytes <= 100_000
    if name != "softmax":
        assert (source.times == 1).all()


@pytest.mark.slow
@examples(100)
@given(
    program=programs(), workers=st.sampled_from([0, 1, 3, -2]), kernels=st.sampled_from(["auto", "compile"])
)
def test_programs_over_sources(program: Program, workers: int, kernels: str) -> None:
    """Any step may read a source, also those that need it as a whole."""
    draw = random.Random(repr(program))
    with numpy.errstate(all="ignore"):
        expected = program.run(numpy, numpy.array)

    def outside(a: Any) -> Any:
        return over(Recorder(a, tuple(draw.randint(1, 9) for _ in a.shape))) if a.size else np.array(a)

    backend: Backend = SimulatedBackend(workers) if workers > 0 else EmbeddedBackend(2)
    backend = EngineBackend(InlineEngine(-workers)) if workers < 0 else backend
    little = mock.patch.object(memory, "BAND_BYTES", draw.choice([1, 100, 1000]))
    with running_on(backend), config.override(kernels=kernels), little, numpy.errstate(all="ignore"):
        found = np.compute(*program.run(np, outside))
    for a, b in zip(expected, found, strict=True):
        assert numpy.shape(a) == numpy.shape(b)
        assert numpy.asarray(a).dtype == numpy.asarray(b).dtype
        numpy.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, equal_nan=True)


class _Reading(Runner):
    """Runs stages whose dense operands are sources."""

    def _planned(self, stage, workers):
        refs = [n.data for n in topological([v.node for v in stage.results]) if n.data is not None]
        for ref in refs:
            if ref.format == "dense" and ref.shape and ref.source is None and not ref.dtype.hasobject:
                ref.source, ref.value = Recorder(ref.value, tuple(-(-n // 3) for n in ref.shape)), None
                ref.tiling = Tiling.copies(len(ref.shape))
        plan, inputs = super()._planned(stage, workers)
        self.banded += sum(isinstance(s, Fused) and s.band is not None for s in plan.stages)
        return plan, inputs

    banded = 0


@pytest.mark.slow
def test_stages_over_sources() -> None:
    """Random stages in every tier, a few elements at a time."""
    runner = _Reading()
    try:
        for number in random.sample(range(600), part(64)):
            with mock.patch.object(memory, "BAND_BYTES", random.choice([1, 64, 1000])):
                stage = drawn(number, 0)
                said = list(runner.differences(stage))
            assert not said, f"stage {number}: {said}"
    finally:
        runner.close()
    assert runner.banded


def test_no_stage_is_drawn_with_billions_of_elements() -> None:
    """Stage 482 stretched one line over and over, and asked for 62 GB beside it."""
    for number in (482, *random.sample(range(1 << 20), part(40))):
        for value in topological([v.node for v in drawn(number, 0).results]):
            assert value.nbytes < 50_000_000


def test_a_part_of_a_source_is_all_that_is_read() -> None:
    source = Recorder(VALUE)
    (found,) = np.compute(over(source)[1000:1100:3, 5:7] * 2)
    numpy.testing.assert_array_equal(found, VALUE[1000:1100:3, 5:7] * 2)
    assert set(zip(*numpy.nonzero(source.times), strict=True)) <= {
        (i, j) for i in range(1000, 1100) for j in (5, 6)
    }


def test_rows_that_are_asked_for_are_read_and_few_others() -> None:
    source = Recorder(VALUE)
    rows = numpy.array([3, 5, 5, 4000, 5999, 17])
    (found,) = np.compute(over(source)[rows] + 1)
    numpy.testing.assert_array_equal(found, VALUE[rows] + 1)
    assert numpy.count_nonzero(source.times.any(axis=1)) < 100


@pytest.mark.parametrize("reproducible", [False, True])
def test_two_runs_give_the_same_bits(reproducible: bool) -> None:
    with config.override(reproducible=reproducible):
        found = {numpy.asarray(over(Recorder(VALUE)).std(axis=0)).tobytes() for _ in range(3)}
    assert len(found) == 1


@pytest.mark.slow
def test_bits_are_kept_however_much_is_read_at_a_time() -> None:
    found = set()
    for nbytes in (1000, 30_000, 1 << 24):
        with mock.patch.object(memory, "BAND_BYTES", nbytes), config.override(reproducible=True):
            x = over(Recorder(VALUE, (100, 7)))
            found.add(tuple(numpy.asarray(v).tobytes() for v in np.compute(x.sum(axis=0), x.std(), x.T @ x)))
    assert len(found) == 1


def test_what_is_needed_as_a_whole_and_does_not_fit_goes_to_disk() -> None:
    with running_on(EmbeddedBackend(2, 1_000_000)):
        found = np.cumsum(over(Recorder(VALUE)), axis=0).compute()
    numpy.testing.assert_allclose(found, VALUE.cumsum(axis=0))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_fold_keeps_to_the_budget(workers: int) -> None:
    source = Recorder(VALUE)
    with running_on(SimulatedBackend(workers, Profile(memory_bytes=400_000, limited=True))) as _:
        numpy.testing.assert_allclose((over(source) * 2).sum(axis=0), VALUE.sum(axis=0) * 2)
        backend = session.current().backend
        assert isinstance(backend, SimulatedBackend)
        assert backend.peak_bytes <= 400_000
    assert source.largest_bytes < 400_000


@pytest.mark.parametrize("threads", [1, 7, 40])
def test_many_threads_keep_to_the_budget_together(threads: int) -> None:
    source = Recorder(VALUE, (50, COLUMNS))
    with config.override(threads=threads), running_on(EmbeddedBackend(threads, 1_900_000)):
        numpy.testing.assert_allclose((over(source) * 2).sum(axis=0), VALUE.sum(axis=0) * 2)
    assert source.largest_bytes * threads < 1_900_000


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "pass": lambda m, x: m.sqrt(x).sum(axis=0),
    "scan": lambda m, x: m.cumsum(x, axis=0)[-1],
    "sort": lambda m, x: m.sort(x, axis=0)[::100],
    "line sorted": lambda m, x: m.sort(x.reshape(-1))[::1000],
    "turned": lambda m, x: (x.T.reshape(-1) + 1)[::1000],
    "rows picked": lambda m, x: x[::-1][::3].sum(axis=1),
    "rows looked up": lambda m, x: x[numpy.arange(0, ROWS, 7)],
    "joined": lambda m, x: m.concatenate([x, x * 2]).max(axis=0),
    "folded from two ends": lambda m, x: (x - x[::-1]).max(axis=0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("workers", [0, 3])
def test_what_is_read_at_a_time_follows_from_the_memory(way: str, workers: int) -> None:
    """However a source is read: band by band, as a whole, or for a few of its rows."""
    limit = VALUE.nbytes // 4
    profile = Profile(memory_bytes=limit, limited=True)
    backend = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, limit)
    source = Recorder(VALUE)
    with running_on(backend), config.override(memory_bytes=limit, small_bytes=0):
        numpy.testing.assert_allclose(WAYS[way](np, over(source)), WAYS[way](numpy, VALUE), atol=1e-12)
        assert source.largest_bytes <= memory.band_bytes()


def test_a_function_of_a_box() -> None:
    def read(box: Any) -> Any:
        (a, b), (c, d) = box
        return numpy.arange(a, b)[:, None] * 100 + numpy.arange(c, d)

    x = np.from_function(read, (1000, 50), numpy.int64, chunks=(10, 50))
    expected = numpy.arange(1000)[:, None] * 100 + numpy.arange(50)
    assert x.shape == (1000, 50)
    assert x.dtype == numpy.int64
    numpy.testing.assert_array_equal(x.sum(axis=1), expected.sum(axis=1))
    numpy.testing.assert_array_equal(numpy.asarray(x), expected)
    assert x[7, 8] == 708


def test_arrays_too_large_for_any_machine_have_parts() -> None:
    def read(box: Any) -> Any:
        return numpy.add.outer(*(numpy.arange(lo, hi) % 7 for lo, hi in box))

    x = np.from_function(read, (10**12, 10**6), numpy.int64)
    assert int(x[10**11 : 10**11 + 5, ::100_000].sum()) == int(
        read(((10**11, 10**11 + 5), (0, 10**6)))[:, ::100_000].sum()
    )


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda box: 1 / 0, UserFunctionError),
        (lambda box: numpy.zeros((1, 1)), SourceError),
        (lambda box: numpy.zeros([hi - lo for lo, hi in box], complex) * 1j, UserFunctionError),
        (lambda box: "abc", UserFunctionError),
    ],
)
@pytest.mark.parametrize("backend", [EmbeddedBackend, SimulatedBackend])
@pytest.mark.filterwarnings("error")
def test_what_a_function_does_wrong_is_told(read: Any, error: type[Exception], backend: Any) -> None:
    with running_on(backend(2)):
        x = np.from_function(read, (ROWS, COLUMNS))
        with pytest.raises(error, match=r"from_function: <lambda>"):
            np.compute((x + 1).sum(axis=0))
        numpy.testing.assert_allclose(
            np.from_function(lambda box: VALUE[:7, :3], (7, 3)).sum(), VALUE[:7, :3].sum()
        )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"shape": (3,), "dtype": object}, TypeError),
        ({"shape": (-3,)}, ValueError),
        ({"shape": (3, 4), "chunks": (3,)}, ValueError),
        ({"shape": (3, 4), "chunks": (3, 0)}, ValueError),
    ],
)
def test_what_no_source_can_be_is_refused_at_the_call(options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        np.from_function(lambda box: None, **options)


class _Indexable:
    """What `from_source` takes, and no more."""

    shape, dtype, chunks = VALUE.shape, VALUE.dtype, (500, 40)

    def __getitem__(self, key: Any) -> Any:
        return VALUE[key].tolist()


@pytest.mark.parametrize("whole", [False, True])
def test_a_serial_source_may_give_one_buffer_again(whole: bool) -> None:
    """What blocks still read, and is read ahead, are copies of it."""

    class Reader:
        shape, dtype = VALUE.shape, VALUE.dtype

        def __init__(self) -> None:
            self.buffers: dict[int, Any] = {}
            self.buffer = numpy.empty(self.shape)

        def __getitem__(self, key: Any) -> Any:
            found = VALUE[key]
            same = whole and found.shape[1] == COLUMNS
            view = self.buffer[: len(found), : found.shape[1]]
            buffer = self.buffers.setdefault(len(found), view.copy()) if same else view
            buffer[...] = found
            return buffer

    with config.override(memory_bytes=1 << 20):
        x = np.from_source(Reader(), serial=True)
        first, later = np.compute(x[:64], x[64:128])
        assert numpy.array_equal(numpy.concatenate([first, later]), VALUE[:128])
        assert numpy.allclose(x.sum(axis=0), VALUE.sum(axis=0))


@pytest.mark.parametrize("serial", [False, True])
def test_anything_with_a_shape_and_items(serial: bool) -> None:
    x = np.from_source(_Indexable(), serial=serial)
    numpy.testing.assert_allclose(numpy.asarray(x.mean(axis=0)), VALUE.mean(axis=0))
    assert np.from_source(VALUE).shape == VALUE.shape


def test_dtypes_of_sources() -> None:
    for dtype in ["?", "i2", "u8", "f4", "c16", "M8[s]", "S3", "U2", "f2"]:
        value = (numpy.arange(300) % 3).astype(dtype)
        x = over(Recorder(value, (7,)))
        assert x.dtype == value.dtype
        numpy.testing.assert_array_equal(numpy.asarray(x), value)
        numpy.testing.assert_array_equal(numpy.asarray(x[::-2] == value[0]), value[::-2] == value[0])


def test_empty_and_scalar_sources() -> None:
    assert np.from_function(lambda box: 1 / 0, (0, 3)).sum() == 0
    assert numpy.asarray(np.from_function(lambda box: 1 / 0, (0, 3))).shape == (0, 3)
    assert float(np.from_function(lambda box: 5.0, ()) + 1) == 6


def test_writing_to_an_array_leaves_the_source() -> None:
    source = Recorder(VALUE)
    x = over(source)
    x[0] = 7
    expected = VALUE.copy()
    expected[0] = 7
    numpy.testing.assert_array_equal(numpy.asarray(x), expected)
    assert VALUE[0, 0] != 7


def test_explain_says_what_is_read() -> None:
    assert "multiply" in ELEMENTWISE
    text = str(np.explain((over(Recorder(VALUE, (256, COLUMNS))) * 2).sum(axis=0)))
    assert "%0 float64 6000×40 source" in text
    assert "reads 256 indices of dimension 0 at a time" in text


@pytest.mark.parametrize("memory", [None, 200_000])
@pytest.mark.parametrize("shape", [(3000, 20), (200, 300), (60, 5, 40)])
def test_what_says_nothing_of_its_chunks_is_read_by_rows(shape: tuple[int, ...], memory: int | None) -> None:
    """As far as memory has room for one: a store of rows is not unpacked once for each column."""
    value = numpy.random.default_rng(0).random(shape)
    asked: list[Any] = []

    class Stored:
        shape, dtype = value.shape, value.dtype

        def __getitem__(self, key: Any) -> Any:
            asked.append(key)
            return value[key]

    with config.override(small_bytes=0, memory_bytes=memory):
        for fold in (
            lambda x: (x * 2).sum(),
            lambda x: x.std(),
            lambda x: x.sum(axis=0),
            lambda x: x.max(axis=-1),
        ):
            numpy.testing.assert_allclose(fold(np.from_source(Stored())), fold(value), rtol=1e-9)
    for key in asked:
        shown = [s.stop - s.start for s in key]
        cut = [d for d, (k, n) in enumerate(zip(shown, value.shape, strict=True)) if k < n]
        assert all(shown[d] == 1 for d in range(max(cut, default=0))), (shown, value.shape)
