"""No stage works on more than the memory there is, whatever the lines of a file are made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.ops.transforms import transform_bytes
from spartan_ng.optimizer.fusion.legality import may_keep
from spartan_ng.worker.memory.store import Store
from tests.budgets.lines import ALONG, Along
from tests.sampling import examples

SIZE = 420_000
SHAPES = [(7, 60_000), (60_000, 7), (SIZE,), (30, 70, 200)]
KINDS = ["u1", "?", "i2", "f4", "f8", "c16", "S3"]
BUDGETS = [400_000, 1_000_000, 4_000_000]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("lines")
    values = numpy.random.default_rng(0).integers(0, 100, SIZE)
    for number, kind in enumerate(KINDS):
        for k, shape in enumerate(SHAPES):
            numpy.save(found / f"{number}_{k}.npy", values.astype(kind).reshape(shape))
    return found


@pytest.mark.filterwarnings("ignore")  # casts of complex numbers
@given(
    st.sampled_from([*ALONG]),
    st.sampled_from(KINDS),
    st.sampled_from(SHAPES),
    st.sampled_from(BUDGETS),
    st.data(),
)
@examples(60)
def test_what_threads_work_on_fits(
    folder: Path, name: str, kind: str, shape: tuple[int, ...], budget: int, data: Any
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    with np.config.override(memory_bytes=budget, small_bytes=1 << 16):
        x = np.load(folder / f"{KINDS.index(kind)}_{SHAPES.index(shape)}.npy")
        try:
            found = np.explain(ALONG[name](np, x, axis))
        except (TypeError, ValueError, MemoryBudgetError):  # of texts, or told before it begins
            return
    assert found.projected_bytes <= budget
    assert found.working_bytes <= budget
    assert found.together_bytes <= budget


STEPS: dict[str, Along] = {
    **{name: ALONG[name] for name in ("sort", "there and back", "centred", "roll")},
    "scaled": lambda m, x, axis: x * 2 + 1,
    "spectrum": lambda m, x, axis: m.abs(m.fft.fft(x, axis=axis)),
    "filtered": lambda m, x, axis: (
        m.fft.ifft(m.where(m.fft.fft(x, axis=axis).real > 1, 1.0, x), axis=axis).real
    ),
    "ranked": lambda m, x, axis: m.argsort(x, axis=axis, kind="stable").astype("f4"),
}


@given(
    st.lists(st.sampled_from([*STEPS]), min_size=1, max_size=5),
    st.sampled_from(["i2", "f4", "f8"]),
    st.sampled_from(SHAPES[:2]),
    st.sampled_from([1_000_000, 2_000_000, 4_000_000]),
    st.sampled_from([1, 2, 4, 60]),
)
@example(["there and back"], "f4", (7, 60_000), 4_000_000, 1)
@example(["scaled", "filtered", "sort"], "f8", (60_000, 7), 2_000_000, 2)
@examples(40)
def test_what_threads_work_on_fits_however_many_functions_of_lines_follow_each_other(
    folder: Path, names: list[str], kind: str, shape: tuple[int, ...], budget: int, parts: int
) -> None:
    """Each of two functions whose lines the cache holds worked on what memory had room for once."""
    axis, length = int(shape[0] < shape[1]), 60_000 // parts
    assume(transform_bytes(length) <= budget)
    with np.config.override(memory_bytes=budget, small_bytes=1 << 16):
        x = np.load(folder / f"{KINDS.index(kind)}_{SHAPES.index(shape)}.npy")
        x = x[:, :length] if axis else x[:length]
        try:
            for name in names:
                x = STEPS[name](np, x, axis)
            found = np.explain(x)
        except MemoryBudgetError:
            return
    assert found.working_bytes <= budget
    assert found.together_bytes <= budget


def test_lines_have_room_before_their_operands_are_there(folder: Path) -> None:
    """What a pass reads is not put aside, so that none was left where it had been loaded first."""
    file = folder / f"{KINDS.index('f8')}_{SHAPES.index((7, 60_000))}.npy"
    refused: list[int] = []

    @contextmanager
    def room(self: Store, nbytes: int) -> Iterator[None]:
        with ExitStack() as stack:
            try:
                stack.enter_context(plain(self, nbytes))
            except MemoryBudgetError:
                refused.append(nbytes)
                raise
            yield

    plain = Store.room
    with np.config.override(memory_bytes=4_000_000, small_bytes=1 << 16), patch.object(Store, "room", room):
        y = np.fft.rfft(np.load(file)[:5, :30_000] * 2, axis=1)
        found = np.explain(y)
        assert found.working_bytes > 1_500_000
        assert found.together_bytes <= 4_000_000
        np.persist(y)
    assert refused == []
    numpy.testing.assert_allclose(y, numpy.fft.rfft(numpy.load(file)[:5, :30_000] * 2, axis=1))


COUNTED: dict[str, Any] = {
    "histogram2d": lambda m, x: m.histogram2d(x[:, 0], x[:, 1], bins=20)[0],
    "edges": lambda m, x: m.histogram2d(x[:, 0], x[:, 1], bins=[5, m.linspace(0, 90, 7)])[0],
    "weights": lambda m, x: m.histogram2d(x[:, 0], x[:, 1], bins=5, weights=x[:, 2])[0],
    "histogramdd": lambda m, x: m.histogramdd(x[:, :3], bins=4)[0],
    "lists": lambda m, x: m.histogramdd([x[:, 0], x[:, 1] * 2, x[:, 2]], bins=4)[0],
    "histogram": lambda m, x: m.histogram(x[:, 0], [0, 3, 50, 99])[0],
    "bincount": lambda m, x: m.bincount(m.digitize(x[:, 0] * 2, numpy.arange(0.0, 200, 7))),
    "corrcoef": lambda m, x: m.corrcoef(x, rowvar=False),
}


@pytest.mark.parametrize("name", COUNTED)
def test_what_columns_come_to_stores_nothing_as_long(folder: Path, name: str) -> None:
    """Counts of points had these put together, and the place of each along each axis."""
    file = folder / f"{KINDS.index('f8')}_{SHAPES.index((60_000, 7))}.npy"
    with np.config.override(memory_bytes=1_000_000, small_bytes=1 << 16):
        found = COUNTED[name](np, np.load(file))
        assert np.explain(found).projected_bytes < 60_000
        numpy.testing.assert_allclose(found, COUNTED[name](numpy, numpy.load(file)))


def test_narrow_arrays_in_lists_count_as_the_indices_that_are_made_of_them(folder: Path) -> None:
    """NumPy counted points of two columns of bytes at once, with eleven times the columns, and no plan."""
    file = folder / f"{KINDS.index('u1')}_{SHAPES.index((60_000, 7))}.npy"
    with np.config.override(memory_bytes=800_000, small_bytes=1 << 12):
        x = np.load(file)
        for points in ([x[:, 0], x[:, 1]], (x[:, 0], x[:, 1])):
            found = np.histogramdd(points, bins=4)[0]
            assert np.explain(found).stages
            numpy.testing.assert_array_equal(found, numpy.histogramdd(numpy.load(file)[:, :2], bins=4)[0])


def test_what_is_drawn_together_is_counted(folder: Path) -> None:
    """Runs of random numbers are no shorter where there is less memory."""
    with np.config.override(memory_bytes=2_000_000, small_bytes=1 << 16):
        y = np.random.default_rng(0).choice(10, 300_000, p=numpy.full(10, 0.1))
        found = np.explain(np.bincount(y))
    assert found.working_bytes >= 2 * 8 * 300_000 // 5  # as many equal runs
    assert found.together_bytes <= 2_000_000


TOGETHER: dict[str, Along] = ALONG | {
    "nanmean": lambda m, x, axis: m.nanmean(x, axis=axis),
    "nanstd": lambda m, x, axis: m.nanstd(x),
    "deviations": lambda m, x, axis: m.std(x * 2, axis=axis),
    "doubled": lambda m, x, axis: x * 2,
    "scaled": lambda m, x, axis: ((x - 3) * x).sum(axis=1 - axis),
}


@given(
    st.lists(st.sampled_from([*TOGETHER]), min_size=2, max_size=4, unique=True),
    st.sampled_from(SHAPES[:2]),
    st.sampled_from([1_000_000, 2_000_000, 4_000_000]),
    st.integers(0, 1),
)
@examples(60)
def test_threads_work_on_no_more_for_several_than_there_is_or_one_takes(
    folder: Path, names: list[str], shape: tuple[int, ...], budget: int, axis: int
) -> None:
    """What is beside long lines in a pass was made of lines as long, all of them at once."""
    with np.config.override(memory_bytes=budget, small_bytes=1 << 16):
        x = np.load(folder / f"{KINDS.index('f8')}_{SHAPES.index(shape)}.npy")
        try:
            results = [TOGETHER[name](np, x, axis) for name in names]
            alone = max(np.explain(y).working_bytes for y in results)
            assert np.explain(*results).working_bytes <= max(1.01 * alone, budget)
        except (ValueError, MemoryBudgetError):  # of lines that are too short, or told before it begins
            return


@pytest.mark.parametrize("beside", [(), (1,)])
def test_nothing_joins_a_pass_over_lines_that_no_cache_holds(beside: tuple[int, ...]) -> None:
    for length, joins in ((8000, True), (400_000, False)):
        assert may_keep((20, length), {1}, {1}, beside, ()) == joins


@pytest.mark.parametrize("kind", ["u1", "?", "i2"])
def test_indices_of_narrow_lines_are_numpys(folder: Path, kind: str) -> None:
    for k, axis in ((0, 1), (1, 0), (2, 0)):
        file = folder / f"{KINDS.index(kind)}_{k}.npy"
        with np.config.override(memory_bytes=400_000):
            found = numpy.asarray(np.argsort(np.load(file), axis=axis, kind="stable"))
        numpy.testing.assert_array_equal(found, numpy.argsort(numpy.load(file), axis=axis, kind="stable"))
