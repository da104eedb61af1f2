"""Products of many short rows with few columns, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs.choices import NARROW_TURNED_BYTES
from spartan_ng.kernels.compiled import narrow
from tests.kernels.products import RTOL, VECTORS, check_first_products, check_product, every_product_compiled
from tests.sampling import examples
from tests.test_programs import running_on


@pytest.fixture(autouse=True, scope="module", params=VECTORS)
def vectors(request: pytest.FixtureRequest):
    with every_product_compiled(narrow, request.param, NARROW_WIDTH=1, _LEAST_BYTES=1, NARROW_TALL=0):
        yield


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two matrices that are parts of others, or lie backwards."""
    dtype = draw(st.sampled_from(sorted(RTOL)))
    inner = draw(st.sampled_from([2, 3, 7, 8, 16, 33, 64]))
    n = draw(st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 40, 49, 72, 100]))
    rows = max(draw(st.sampled_from([inner, inner + 1, 64, 71, 72, 73, 200, 500])), n, 8)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    x = rng.standard_normal((2 * rows, inner + 3)).astype(dtype)
    w = rng.standard_normal((2 * inner, n)).astype(dtype)
    a = draw(st.sampled_from([x[::2, 1 : 1 + inner], x[::-2, :inner], x[:rows, 2 : 2 + inner].copy()]))
    b = draw(st.sampled_from([w[::2], w[::-2], np.asfortranarray(w[:inner])]))
    return a, b


@pytest.mark.slow
@examples(80)
@given(operands(), st.sampled_from("CF"))
def test_products_are_numpys(case: tuple[Any, Any], order: Any) -> None:
    a, b = case
    for left, right in ((a, b), (b.T, a.T)):
        is_asked = len(a) > b.shape[1] and (left is a or b.shape[1] * b.itemsize <= NARROW_TURNED_BYTES)
        found = check_product(narrow.product if is_asked else None, left, right, order)
        assert found is None or found.flags.c_contiguous


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_so(number: float) -> None:
    """Zero times infinity, too; and nothing comes from where lines are longer."""
    x, w = np.zeros((70, 19)), np.ones((19, 5))
    x[:, 1], x[4, 7], x[69, 2], w[3, 4] = 1.0, number, number, number
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(narrow.product(x, w), np.matmul(x, w))
        np.testing.assert_array_equal(narrow.product(w.T, x.T), np.matmul(w.T, x.T))


def test_what_blas_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many columns, long rows, those that do not lie along the sum, other numbers, few rows, and where errors
    are asked for."""
    x, w = np.ones((300, 20)), np.ones((20, 6))
    for left, right in (
        (np.ones((3000, 200)), np.ones((200, 700))),
        (np.ones((30000, 25000)), np.ones((25000, 6))),
        (x[:7], w[:, :2]),
        (np.ones((25, 20)), np.ones((20, 26))),
        (np.asfortranarray(x), w),
        (x[:, ::2], w[:10]),
        (x.astype(complex), w.astype(complex)),
        (x.astype(">f8"), w.astype(">f8")),
        (x.astype(np.float32), w),
        (x, w[:, 0]),
    ):
        assert narrow.product(left, right) is None
    with np.errstate(over="raise"):
        assert narrow.product(x, w) is None
    monkeypatch.setattr(narrow, "NARROW_TALL", 16)
    assert narrow.product(x, w) is None
    monkeypatch.setattr(narrow, "NARROW_TALL", 8)
    monkeypatch.setattr(narrow, "NARROW_WIDTH", 21)
    assert narrow.product(x, w) is None
    monkeypatch.setattr(narrow, "NARROW_WIDTH", 1)
    monkeypatch.setattr(narrow, "_LEAST_BYTES", 49)
    assert narrow.product(x, w) is None


def test_no_kernel_is_made_for_the_first_products(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = np.ones((300, 20)), np.ones((20, 6))
    check_first_products(monkeypatch, narrow, x.nbytes, x, w)


@pytest.mark.parametrize("dtype", sorted(RTOL))
def test_distances_to_centres_of_a_file(dtype: str, tmp_path: Any) -> None:
    """In blocks, with a fold of each row, also turned."""
    x = np.random.default_rng(1).random((9000, 40)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    w = x[:8].copy()
    with config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        y = sp.load(tmp_path / "x.npy")
        found = sp.compute((y @ w.T).max(axis=1), (w @ y.T).max(axis=0), (y * 2) @ w.T, w @ (y + 1).T)
    wanted = (x @ w.T).max(axis=1), (w @ x.T).max(axis=0), (x * 2) @ w.T, w @ (x + 1).T
    for f, e in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, e, rtol=10 * RTOL[dtype])
