"""No stage works on more than the memory there is, whatever the lines of a file are made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.errors import MemoryBudgetError
from tests.sampling import examples

SIZE = 420_000
SHAPES = [(7, 60_000), (60_000, 7), (SIZE,), (30, 70, 200)]
KINDS = ["u1", "?", "i2", "f4", "f8", "c16", "S3"]
BUDGETS = [400_000, 1_000_000, 4_000_000]
ALONG: dict[str, Callable[[Any, int], Any]] = {
    "sort": lambda x, axis: np.sort(x, axis=axis),
    "argsort": lambda x, axis: np.argsort(x, axis=axis),
    "stable": lambda x, axis: np.argsort(x, axis=axis, kind="stable"),
    "partition": lambda x, axis: np.partition(x, 3, axis=axis),
    "argpartition": lambda x, axis: np.argpartition(x, 3, axis=axis),
    "lexsort": lambda x, axis: np.lexsort((x, x), axis=axis),
    "cumsum": lambda x, axis: np.cumsum(x, axis=axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis=axis, dtype=complex),
    "taken": lambda x, axis: np.take_along_axis(x, np.argsort(x, axis=axis), axis=axis),
    "median": lambda x, axis: np.median(x, axis=axis),
    "quantiles": lambda x, axis: np.quantile(x, [0.1, 0.5], axis=axis),
    "rfft": lambda x, axis: np.fft.rfft(x, axis=axis),
    "fft": lambda x, axis: np.fft.fft(x, axis=axis),
    "there and back": lambda x, axis: np.fft.irfft(np.fft.rfft(x, axis=axis), axis=axis),
    "unwrap": lambda x, axis: np.unwrap(x, axis=axis),
    "diff": lambda x, axis: np.diff(x, axis=axis),
    "roll": lambda x, axis: np.roll(x, 3, axis=axis),
    "repeat": lambda x, axis: np.repeat(x, 2, axis=axis),
    "gradient": lambda x, axis: np.gradient(x.astype(float), axis=axis),
    "argmax": lambda x, axis: np.argmax(x, axis=axis),
    "centred": lambda x, axis: x - np.mean(x, axis=axis, keepdims=True),
    "inverse": lambda x, axis: np.unique(x, return_inverse=True)[1],
    "counts": lambda x, axis: np.unique(x, return_counts=True)[1],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("lines")
    values = numpy.random.default_rng(0).integers(0, 100, SIZE)
    for number, kind in enumerate(KINDS):
        for k, shape in enumerate(SHAPES):
            numpy.save(found / f"{number}_{k}.npy", values.astype(kind).reshape(shape))
    return found


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
    with np.config.override(memory_bytes=budget):
        x = np.load(folder / f"{KINDS.index(kind)}_{SHAPES.index(shape)}.npy")
        try:
            found = np.explain(ALONG[name](x, axis))
        except (TypeError, MemoryBudgetError):  # of texts, or told before it begins
            return
    assert found.projected_bytes <= budget
    assert found.working_bytes <= budget


@pytest.mark.parametrize("kind", ["u1", "?", "i2"])
def test_indices_of_narrow_lines_are_numpys(folder: Path, kind: str) -> None:
    for k, axis in ((0, 1), (1, 0), (2, 0)):
        file = folder / f"{KINDS.index(kind)}_{k}.npy"
        with np.config.override(memory_bytes=400_000):
            found = numpy.asarray(np.argsort(np.load(file), axis=axis, kind="stable"))
        numpy.testing.assert_array_equal(found, numpy.argsort(numpy.load(file), axis=axis, kind="stable"))
