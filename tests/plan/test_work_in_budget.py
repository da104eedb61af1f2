"""No stage works on more than the memory there is, whatever the lines of a file are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.fusion.legality import may_keep
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
