"""Small CSR arrays times small dense ones: SciPy's product, at once, on either side."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from scipy import sparse

import spartan_ng as np

_rng = numpy.random.default_rng(0)
PRODUCTS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "s @ v": lambda s, v, w, m: s @ v,
    "s.T @ w": lambda s, v, w, m: s.T @ w,
    "w @ s": lambda s, v, w, m: w @ s,
    "v @ s.T": lambda s, v, w, m: v @ s.T,
    "s @ m": lambda s, v, w, m: s @ m,
    "m.T @ s.T": lambda s, v, w, m: m.T @ s.T,
    "s.T @ s @ m": lambda s, v, w, m: s.T @ (s @ m),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("kind", "other"), [*itertools.product(["f4", "f8", "i4"], repeat=2)])
def test_products(name: str, kind: str, other: str) -> None:
    s = (sparse.random_array((60, 40), density=0.1, rng=0) * 10).tocsr().astype(kind)
    dense = [(_rng.random(shape) * 9).astype(other) for shape in (40, 60, (40, 3))]
    for operands in (dense, [d[::-1] for d in dense]):
        expected = PRODUCTS[name](s.toarray(), *operands)
        found = PRODUCTS[name](np.asarray(s), *map(np.asarray, operands))
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=1e-5)


def test_it_is_at_once_and_writes_show() -> None:
    s, v = np.asarray(sparse.eye_array(20).tocsr() * 2.0), np.arange(20.0)
    product = s @ v
    assert product._peek() is not None
    v[3] = 7.0
    assert float(product[3]) == 6.0
    assert float((s @ v)[3]) == 14.0


def test_much_work_is_left_to_a_plan() -> None:
    """The arrays are small, and yet SciPy would take long, on one thread: of GNMF a tenth of a second."""
    s, m = sparse.random_array((2000, 3000), density=0.02, rng=0).tocsr(), _rng.random((3000, 30))
    product = np.asarray(s) @ np.asarray(m)
    assert product._peek() is None
    numpy.testing.assert_allclose(numpy.asarray(product), s @ m)
    assert (np.asarray(s) @ np.asarray(m[:, 0]))._peek() is not None


def test_shapes_that_do_not_fit_are_named() -> None:
    s = np.asarray(sparse.random_array((6, 4), density=0.5, rng=0).tocsr())
    for wrong in (np.ones(6), np.ones((3, 2))):
        with pytest.raises(np.errors.ShapeError):
            s @ wrong


def test_errors_are_seen_at_once() -> None:
    s = np.asarray((sparse.eye_array(4) * 1e300).tocsr())
    with numpy.errstate(over="raise"), pytest.raises(FloatingPointError):
        numpy.asarray(s @ np.full(4, 1e300))
