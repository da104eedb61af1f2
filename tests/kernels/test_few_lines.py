"""Products of a few lines with a matrix that is read once, against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs.tuned import FEW_LINES
from spartan_ng.kernels import blocks
from spartan_ng.kernels.compiled import few_lines
from tests.kernels.products import RTOL, check_first_products, check_product, every_product_compiled
from tests.sampling import examples
from tests.test_programs import running_on


@pytest.fixture(autouse=True, scope="module")
def everything_is_compiled():
    with every_product_compiled(few_lines, FEW_LINES_ELEMENTS=1, FEW_LINES_WIDTH=1):
        yield


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any]:
    """Few lines and a matrix, in either order, that are parts of others, or lie turned or backwards."""
    dtype = draw(st.sampled_from(sorted(RTOL)))
    lines = draw(st.integers(2, FEW_LINES))
    inner = draw(st.sampled_from([1, 2, 3, 4, 5, 9, 255, 256, 257, 519]))
    width = draw(st.sampled_from([1, 2, 7, 8, 63, 255, 256, 257, 511, 513, 1030]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    a = rng.standard_normal((2 * lines, inner + 3)).astype(dtype)
    b = rng.standard_normal((inner + 3, width + 4)).astype(dtype)
    a, b = a[:: draw(st.sampled_from([2, -2])), 3:], b[3:, draw(st.integers(0, 4)) :][:, :width]
    a = np.asfortranarray(a) if draw(st.booleans()) else a
    b = b[::-1] if draw(st.booleans()) else b
    return (b.T, a.T) if draw(st.booleans()) else (a, b)


@examples(60)
@given(operands(), st.sampled_from("CF"))
def test_products_are_numpys(case: tuple[Any, Any], order: Any) -> None:
    check_product(few_lines.product, *case, order)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_so(number: float) -> None:
    """Zero times infinity, too."""
    a, b = np.zeros((3, 9)), np.ones((9, 20))
    a[1], b[4, 7], a[2, 8] = 1.0, number, number
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(few_lines.product(a, b), np.matmul(a, b))
        np.testing.assert_array_equal(few_lines.product(b.T, a.T), np.matmul(b.T, a.T))


def test_what_blas_does() -> None:
    """One line, many, lines along the sum, other numbers, and where errors are asked for."""
    a, b = np.ones((4, 30)), np.ones((30, 50))
    for left, right in (
        (a[:1], b),
        (np.ones((FEW_LINES + 1, 30)), b),
        (a, np.asfortranarray(b)),
        (a.astype(complex), b.astype(complex)),
        (a.astype(">f8"), b.astype(">f8")),
        (a.astype(np.float32), b),
        (a[0], b),
    ):
        assert few_lines.product(left, right) is None
    with np.errstate(over="raise"):
        assert few_lines.product(a, b) is None


def test_no_kernel_is_made_for_the_first_products(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = np.ones((4, 30)), np.ones((30, 50))
    check_first_products(monkeypatch, few_lines, b.nbytes, a, b)


@pytest.mark.parametrize("dtype", sorted(RTOL))
def test_layers_of_a_network(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product, and what is fused with it, by blocks that have a matrix's rows in long pieces."""
    rng = np.random.default_rng(1)
    monkeypatch.setattr(blocks, "CACHE_BYTES", 1 << 12)
    x, w, v = (rng.random(n).astype(dtype) for n in ((5, 300), (300, 2500), (2500, 1100)))
    bias = rng.random(2500).astype(dtype)

    def layers(np: Any, x: Any, w: Any, v: Any, bias: Any) -> Any:
        hidden = np.maximum(x @ w + bias, 80)
        out = hidden @ v
        return out / out.max(axis=-1, keepdims=True), (w.T @ x.T) * 2, hidden.sum(axis=1)

    wanted = layers(np, x, w, v, bias)
    with config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        found = sp.compute(*layers(sp, *map(sp.asarray, (x, w, v, bias))))
    for f, e in zip(found, wanted, strict=True):
        np.testing.assert_allclose(f, e, rtol=RTOL[dtype], atol=RTOL[dtype])
