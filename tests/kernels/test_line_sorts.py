"""Lines sorted by several threads are NumPy's: ties in their order, all zeros, and no numbers last."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.costs.choices import SORT_ELEMENTS
from spartan_ng.kernels import line_sorts, sorts
from spartan_ng.kernels.line_sorts import argsorted, argsorted_line, argsorted_lines, sorted_line
from tests.sampling import examples

N = 140_000
EPS = np.finfo(float).eps
OTHER_NAN = np.array([0x7FF8_0000_0000_0001]).view(float)[0]
LINES = {
    "random": lambda rng: rng.standard_normal(N),
    "strided": lambda rng: rng.random((N, 2))[::-1, 1],
    "ascending": lambda rng: np.arange(N),
    "descending": lambda rng: np.arange(N)[::-1],
    "nearly ascending": lambda rng: np.concatenate((np.arange(N), [5])),
    "constant": lambda rng: np.zeros(N, int),
    "few": lambda rng: rng.integers(0, 5, N),
    "whole numbers in doubles": lambda rng: rng.integers(-3, 1 << 20, N).astype(float),
    "unsigned bytes": lambda rng: rng.integers(0, 256, N).astype("u1"),
    "mostly one": lambda rng: np.where(rng.random(N) < 0.9, 3, rng.integers(0, 1 << 50, N)),
    "zeros of both signs": lambda rng: np.where(
        rng.random(N) < 0.5, -0.0, np.where(rng.random(N) < 0.9, 0.0, 1)
    ),
    "mostly no numbers": lambda rng: np.where(rng.random(N) < 0.7, np.nan, rng.random(N)),
    "no numbers": lambda rng: np.where(rng.random(N) < 0.5, np.nan, OTHER_NAN),
    "infinite": lambda rng: np.where(rng.random(N) < 0.5, np.inf, -np.inf),
    "whole, infinite and no numbers": lambda rng: rng.choice([0.0, 1.0, 2.0, np.inf, np.nan], N),
    "alike up to the last digits": lambda rng: np.where(
        rng.random(N) < 0.01, -1e300, 1 + rng.integers(0, 999, N) * np.finfo(float).eps
    ),
    "near and far": lambda rng: rng.standard_normal(N) * 10.0 ** rng.integers(-300, 300, N),
    "of all bits": lambda rng: rng.integers(0, 1 << 64, N, np.uint64).view(float),
    "whole": lambda rng: rng.integers(-(1 << 63), 1 << 63, N),
    "single": lambda rng: rng.random(N).astype("f4"),
    "half": lambda rng: rng.random(N).astype("f2"),
    "long": lambda rng: rng.random(N).astype("g"),
    "bytes": lambda rng: rng.integers(-128, 127, N).astype("i1"),
    "short": lambda rng: rng.integers(-30_000, 30_000, N).astype("i4"),
    "unsigned": lambda rng: rng.integers(0, 1 << 63, N).astype("u8") * 2,
    "swapped": lambda rng: rng.random(N).astype(">f8"),
    "times": lambda rng: np.where(
        rng.random(N) < 0.1, np.datetime64("NaT"), rng.integers(0, N, N).astype("M8[s]")
    ),
    "truths": lambda rng: rng.random(N) < 0.5,
    "complex": lambda rng: rng.integers(0, 9, N) + 1j * rng.integers(0, 9, N),
    "texts": lambda rng: rng.integers(0, 999, N).astype("U3"),
}


def check(x: np.ndarray[Any, Any], threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:

        def each(one: Any, items: Any) -> list[Any]:
            return list(pool.map(one, items))

        line = sorted_line(x, threads, each)
        values, order = argsorted_line(x, threads, each)
    expected = np.argsort(x, kind="stable")
    for found, wanted in zip(argsorted(x), (x[expected], expected), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)
    np.testing.assert_array_equal(order, expected, strict=True)
    np.testing.assert_array_equal(values, x[expected], strict=True)
    np.testing.assert_array_equal(line, x[expected], strict=True)
    if x.dtype.kind == "f":  # NumPy's vectors make other signs of a line's zeros: no sign of `line` is asked
        np.testing.assert_array_equal(np.signbit(values), np.signbit(x[expected]))


WAYS: dict[str, Any] = {
    "by digits": {"_wins": lambda dtype, n: True},
    "by NumPy": {"_wins": lambda dtype, n: False},
    "without a compiler": {"IS_COMPILED": False},
}


@pytest.mark.some(25)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", LINES)
def test_lines_are_numpys(kind: str, threads: int, way: str) -> None:
    assert len(LINES[kind](np.random.default_rng(0))) >= SORT_ELEMENTS
    with patch.multiple(sorts, **WAYS[way]):
        check(LINES[kind](np.random.default_rng(1)), threads)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("n", [1000, N])
def test_infinities_come_before_what_is_no_number(n: int, dtype: str) -> None:
    """Also where all other digits are none, and the last ones find no room."""
    rng = np.random.default_rng(2)
    for some in ([0.0, 1.0, 2.0], [0.0], [-1.0, 1.0]):
        x = rng.choice([*some, np.inf, np.nan], n).astype(dtype)
        check(x, 2)
        lines = np.stack([x, x[::-1]])
        np.testing.assert_array_equal(argsorted_lines(lines, 1), np.argsort(lines, 1, kind="stable"))


@pytest.mark.some(40)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", [(N,), (140, 1000), (1000, 140), (14, 100, 100), (20, 7, 1000)], ids=str)
@pytest.mark.parametrize("kind", LINES)
def test_lines_along_axes(kind: str, shape: tuple[int, ...], way: str) -> None:
    x = LINES[kind](np.random.default_rng(4))[:N].reshape(shape)
    for a in (x, x[..., ::-2], x.T):
        for axis in range(-1, a.ndim - 1):
            with patch.multiple(sorts, **WAYS[way]):
                found = argsorted_lines(a, axis)
            wanted = np.argsort(a, axis, kind="stable")
            np.testing.assert_array_equal(found, wanted, strict=True)
            assert found.flags.c_contiguous


@examples(200)
@given(
    st.data(),
    st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple),
    st.sampled_from(["f8", "f4", "f2", "i8", "i1", "u8", "m8[s]", "?", "c16"]),
    st.integers(1, 40),
    st.integers(1, 9),
)
def test_short_lines_along_axes(data: Any, shape: tuple[int, ...], dtype: str, block: int, long: int) -> None:
    values = [0.0, -0.0, 1.0, 1.0 + EPS, 1.0 + 2 * EPS, 2.5, *([np.nan, -np.inf] if dtype[0] in "fc" else [])]
    size = int(np.prod(shape))
    drawn = data.draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))
    x = np.array(drawn, "f8").astype(dtype).reshape(shape)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    with patch.multiple(line_sorts, PACKED_LINE=1, _BLOCK=block, PACKED_TOGETHER=long):
        found = argsorted_lines(x, axis)
    np.testing.assert_array_equal(found, np.argsort(x, axis, kind="stable"), strict=True)


@examples(200)
@given(
    st.lists(
        st.sampled_from([0.0, -0.0, 1.0, 1.0 + EPS, 1.0 + 2 * EPS, -1.0, 2.5, np.nan, np.inf]),
        min_size=4,
        max_size=60,
    ),
    st.sampled_from(["f8", "f4", "i8", "i4", "u1"]),
    st.integers(2, 5),
)
def test_short_lines(values: list[float], dtype: str, threads: int) -> None:
    x = (
        np.nan_to_num(np.array(values), posinf=9).astype(dtype)
        if dtype[0] != "f"
        else np.array(values, dtype)
    )
    with patch.multiple(line_sorts, SORT_ELEMENTS=1, PACKED_ELEMENTS=1, _BLOCK=3, _SAMPLES=5):
        check(x, threads)
