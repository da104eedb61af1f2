"""Products over many short rows, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs.choices import TALL_WIDTH
from spartan_ng.kernels.compiled import tall
from tests.kernels.products import RTOL, VECTORS, check_first_products, check_product, every_product_compiled
from tests.sampling import examples
from tests.test_programs import running_on


@pytest.fixture(autouse=True, scope="module", params=VECTORS)
def vectors(request: pytest.FixtureRequest):
    with every_product_compiled(tall, request.param, TALL_BYTES=1, TALL_SHAPE=0, TALL_FLOPS=0):
        yield


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two matrices, or one twice, that are parts of others, or lie backwards."""
    dtype = draw(st.sampled_from(sorted(RTOL)))
    widths = st.sampled_from([1, 2, 7, 8, 9, 16, 23, 24, 25, 33, 64, 100, 159, 160])
    m, n = draw(widths), draw(widths)
    rows = draw(st.sampled_from([1, 2, 63, 64, 65, 128, 200]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    x = rng.standard_normal((2 * rows, m + n + 3)).astype(dtype)
    a, b = x[::2, 1 : 1 + m], x[1::2, 2 + m : 2 + m + n]
    if draw(st.booleans()):
        a, b = a.copy(), b[::-1]
    return (a.T, a) if draw(st.booleans()) else (a.T, b)


@examples(80)
@given(operands(), st.sampled_from("CF"))
def test_products_are_numpys(case: tuple[Any, Any], order: Any) -> None:
    a, b = case
    found = check_product(tall.product, a, b, order)
    if a.base is b or np.shares_memory(a, b):
        np.testing.assert_array_equal(found, found.T)


@examples(80)
@given(operands(), st.tuples(st.booleans(), st.booleans()))
def test_sums_on_the_way_are_numpys(case: tuple[Any, Any], wanted: tuple[bool, bool]) -> None:
    a, b = case
    found = tall.product_and_sums(a, b, wanted)
    assert found is not None
    np.testing.assert_array_equal(found.value, tall.product(a, b))
    for is_wanted, own, x, axis in zip(wanted, found.sums, (a, b), (1, 0), strict=True):
        if not is_wanted:
            assert own is None
            continue
        assert own.dtype == x.dtype
        scale = RTOL[x.dtype.str[1:]] * float(abs(x).max()) * np.sqrt(len(b))
        np.testing.assert_allclose(own, x.sum(axis=axis), rtol=0, atol=scale)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_so(number: float) -> None:
    """Zero times infinity, too; and nothing comes from where lines are longer."""
    x, y = np.zeros((70, 19)), np.ones((70, 21))
    x[:, 1], x[4, 7], y[69, 2], y[3, 20] = 1.0, number, number, number
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(tall.product(x.T, y), np.matmul(x.T, y))
        np.testing.assert_array_equal(tall.product(x.T, x), np.matmul(x.T, x))
        found = tall.product_and_sums(x.T, y, (True, True))
        assert found is not None
        for own, of in zip(found.sums, (x, y), strict=True):
            np.testing.assert_array_equal(own, of.sum(axis=0))


def test_what_blas_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide rows, rows along the sum, other numbers, few rows, and where errors are asked for."""
    x = np.ones((300, 20))
    for left, right in (
        (np.ones((300, TALL_WIDTH + 1)).T, x),
        (x.T, np.asfortranarray(x)),
        (np.asfortranarray(x).T, x),
        (x.astype(complex).T, x.astype(complex)),
        (x.astype(">f8").T, x.astype(">f8")),
        (x.T.astype(np.float32), x),
        (x[:, 0], x),
    ):
        assert tall.product(left, right) is None
    with np.errstate(over="raise"):
        assert tall.product(x.T, x) is None
    monkeypatch.setattr(tall, "TALL_SHAPE", 16)
    assert tall.product(x.T, x) is None
    monkeypatch.setattr(tall, "TALL_SHAPE", 8)
    monkeypatch.setattr(tall, "TALL_BYTES", 161)
    assert tall.product(x.T, x) is None
    monkeypatch.setattr(tall, "TALL_BYTES", 160)
    monkeypatch.setattr(tall, "TALL_FLOPS", 2 * 300 * 20 * 20)
    assert tall.product(x.T, x) is not None
    monkeypatch.setattr(tall, "TALL_FLOPS", 2 * 300 * 20 * 20 + 1)
    assert tall.product(x.T, x) is None


def test_no_kernel_is_made_for_the_first_products(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((300, 20))
    check_first_products(monkeypatch, tall, 2 * 300 * 20 * 20, x.T, x)


@pytest.mark.parametrize("dtype", sorted(RTOL))
def test_moments_of_a_file(dtype: str, tmp_path: Any) -> None:
    """In blocks, with other folds of the same pass."""
    x = np.random.default_rng(1).random((9000, 40)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    with config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        y = sp.load(tmp_path / "x.npy")
        found = sp.compute(sp.mean(y, axis=0), y.T @ y, (y + 1).T @ y, y.T @ (y[:, :20] * 2))
    wanted = np.mean(x, axis=0), x.T @ x, (x + 1).T @ x, x.T @ (x[:, :20] * 2)
    for f, e in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, e, rtol=10 * RTOL[dtype])


def _sums(y: Any) -> list[Any]:
    """Programs in which one pass makes products and sums of what they multiply."""
    few, flags = y[:, :20] * 2, (y[:, 2:25] > 0.4).astype(y.dtype)
    return [
        sp.compute(sp.mean(y, axis=0), y.T @ y),
        sp.compute(y.T @ y, sp.sum(y, axis=0), sp.sum(y.T, axis=1), sp.max(y, axis=0)),
        sp.compute(few.T @ y, sp.sum(few, axis=0), sp.sum(y, axis=0), sp.sum(y, axis=1)),
        sp.compute(flags.T @ y, flags.sum(axis=0)),
        sp.compute(y.T @ flags, sp.sum(flags.T, axis=1), sp.sum(flags)),
        sp.compute((y + 1).T @ (y - 1), sp.sum(y - 1, axis=0), sp.sum(y + 1, axis=0), sp.sum(y, axis=0)),
    ]


def _numpys_sums(x: Any) -> list[Any]:
    few, flags = x[:, :20] * 2, (x[:, 2:25] > 0.4).astype(x.dtype)
    return [
        (x.mean(axis=0), x.T @ x),
        (x.T @ x, x.sum(axis=0), x.T.sum(axis=1), x.max(axis=0)),
        (few.T @ x, few.sum(axis=0), x.sum(axis=0), x.sum(axis=1)),
        (flags.T @ x, flags.sum(axis=0)),
        (x.T @ flags, flags.T.sum(axis=1), flags.sum()),
        ((x + 1).T @ (x - 1), (x - 1).sum(axis=0), (x + 1).sum(axis=0), x.sum(axis=0)),
    ]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", sorted(RTOL))
@pytest.mark.parametrize("mode", ["compile", "interpret"])
def test_one_pass_makes_sums_beside_products(mode: str, dtype: str, order: Any, workers: int) -> None:
    """Also where the product is BLAS's, or lies so that it is not made here."""
    x = np.asarray(np.random.default_rng(2).random((3000, 40)), dtype, order)
    with config.override(small_bytes=0, kernels=mode), running_on(EmbeddedBackend(workers)):
        every = _sums(sp.asarray(x))
    for found, wanted in zip(every, _numpys_sums(x), strict=True):
        for f, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(f, w, rtol=10 * RTOL[dtype], atol=RTOL[dtype])


def test_sums_come_of_the_product(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other loop goes over the elements for them; with last bits kept, one does."""
    x = np.random.default_rng(3).random((3000, 40))
    real, asked = tall.product_and_sums, []

    def product_and_sums(a: Any, b: Any, wanted: Any = (False, False)) -> Any:
        asked.append(wanted)
        return real(a, b, wanted)

    monkeypatch.setattr(tall, "product_and_sums", product_and_sums)
    for reproducible in (False, True):
        asked.clear()
        with config.override(small_bytes=0, reproducible=reproducible), running_on(EmbeddedBackend(1)):
            y = sp.asarray(x)
            found = sp.compute(sp.mean(y, axis=0), y.T @ y)
        assert any(any(wanted) for wanted in asked) is not reproducible
        np.testing.assert_allclose(found[0], x.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found[1], x.T @ x, rtol=1e-12)
