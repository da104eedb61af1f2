"""Steps on the way keep their values where a living array may ask for them, and they would be dear again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

N = 5_000


@pytest.fixture(autouse=True)
def large():
    """No array is small, so that costs alone decide."""
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        yield


def kept(step, whole):
    """Whether `step` has a value after `whole` has been evaluated."""
    float(whole)
    return step._peek() is not None


def test_reading_much_to_write_little_is_dear():
    X, w = sp.asarray(np.ones((N, 20))), sp.asarray(np.ones(20))
    p = 1 / (1 + sp.exp(-(X @ w)))
    assert kept(p, (p * p).sum())


def test_what_takes_much_of_the_memory_is_kept_when_it_is_needed_again():
    X, w = sp.asarray(np.ones((N, 20))), sp.asarray(np.ones(20))
    p = 1 / (1 + sp.exp(-(X @ w)))
    with config.override(memory_bytes=4 * p.nbytes):
        assert not kept(p, (p * p).sum())
        assert kept(p, (p + p).sum())


def test_a_temporary_of_one_pass_is_cheap():
    x, y, z = (sp.asarray(np.full(N, v)) for v in (1.0, 2.0, 3.0))
    product = x * y
    assert not kept(product, (product * z).sum())


def test_much_arithmetic_is_dear():
    x = sp.asarray(np.ones(N))
    step = sp.exp(sp.sin(x)) + sp.log(x + sp.cosh(x))
    assert kept(step, (step * 2).sum())


def test_what_is_evaluated_again_is_kept():
    x, y = sp.asarray(np.ones(N)), sp.asarray(np.ones(N))
    product = x * y
    assert not kept(product, product.sum())
    assert kept(product, product.max())


def test_nobody_keeps_what_nobody_holds():
    X, w = sp.asarray(np.ones((N, 20))), sp.asarray(np.ones(20))
    p = X @ w
    node = p._node()
    total = (p * p).sum()
    del p
    assert float(total) == 400.0 * N
    assert node.data is None


def test_a_product_larger_than_its_factors_stays_unmade():
    X = sp.asarray(sparse.random_array((300, 300), density=0.01, rng=np.random.default_rng(0), format="csr"))
    U = sp.asarray(np.ones((300, 4)))
    product = U @ U.T
    assert not kept(product, (X * product).sum())


def test_costs_are_counted_from_what_is_kept_already():
    X, w = sp.asarray(np.ones((N, 20))), sp.asarray(np.ones(20))
    p = X @ w
    q = p + 1  # next to p, which is kept, this is a pass over a vector
    assert not kept(q, (q * p).sum())
    assert p._peek() is not None


def test_a_slice_of_a_large_array_is_a_small_read():
    X = sp.asarray(np.ones((N, 20)))
    column = X[:, 3] * 2
    assert not kept(column, column.sum())


def test_keeping_changes_no_value():
    random = np.random.default_rng(0)
    x, w = random.random((N, 20)), random.random(20)
    X, W = sp.asarray(x), sp.asarray(w)
    held = [X @ W, sp.exp(X).sum(axis=1), X.cumsum(axis=0)]
    total = sum((h.sum() for h in held), sp.asarray(0.0))
    expected = [x @ w, np.exp(x).sum(axis=1), x.cumsum(axis=0)]
    np.testing.assert_allclose(float(total), sum(e.sum() for e in expected), rtol=1e-12)
    for h, e in zip(held, expected, strict=True):
        np.testing.assert_allclose(h.compute(), e, rtol=1e-12)


def test_of_a_temporary_left_in_one_view_only_the_view_is_computed():
    a, b = (np.random.default_rng(k).random((N // 10, N // 10)) for k in range(2))
    A, B = sp.asarray(a), sp.asarray(b)
    row = (A @ B)[3]
    np.testing.assert_allclose(row.compute(), a[3] @ b)
    assert row._cell.value is None, "nobody can ask for the other rows"
    product = A @ B
    row = product[3]
    np.testing.assert_allclose(row.compute(), a[3] @ b)
    assert product._peek() is not None, "its owner may"
    product = A @ B
    rows = [product[3], product[4]]
    del product
    for k, row in enumerate(rows, 3):
        np.testing.assert_allclose(row.compute(), a[k] @ b)
    assert rows[0]._cell.value is not None, "two views have one product"
