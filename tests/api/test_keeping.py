"""Steps on the way keep their values where a living array may ask for them, and they would be dear again."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from spartan_ng.api.core import forcing
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels import contract as products
from spartan_ng.kernels import stepwise
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


READS = {
    "einsum": lambda np, a: np.einsum("ij,ij->i", a, a),
    "sums by einsum": lambda np, a: np.einsum("ij->j", a),
    "sum": lambda np, a: np.sum(a, 1),
    "prod": lambda np, a: np.prod(a),
    "product": lambda np, a: a @ np.ones(20),
    "tensordot": lambda np, a: np.tensordot(a, a, 2),
    "inner": lambda np, a: np.inner(a, np.ones(20)),
    "var": lambda np, a: np.var(a, 0),
    "median": lambda np, a: np.median(a, 1),
    "sort": lambda np, a: np.sort(a, 0)[5],
    "cumsum": lambda np, a: np.cumsum(a, 0)[-1],
    "where": lambda np, a: np.where(a > 0.5, a, 0).sum(0),
    "clip": lambda np, a: np.clip(a, 0.2, 0.8).max(),
    "average": lambda np, a: np.average(a, axis=0),
    "norm": lambda np, a: np.linalg.norm(a, axis=1),
    "diff": lambda np, a: np.diff(a, axis=0).max(),
    "of a copy": lambda np, a: np.sum(a.copy() * 2),
    "turned": lambda np, a: np.sum(a.T, 0),
    "stacked": lambda np, a: np.stack([a, a]).sum(),
    "histogram": lambda np, a: np.histogram(a, 7)[0],
}


@pytest.mark.parametrize("name", READS)
def test_what_is_drawn_is_kept_whatever_reads_it(name):
    """What a function wraps on its way takes nobody's array away: it was drawn again at every read."""
    drawn = sp.random.default_rng(0).random((N, 20))
    found = [np.array(READS[name](sp, drawn)) for _ in range(3)]
    assert drawn._found() is not None
    wanted = READS[name](np, np.random.default_rng(0).random((N, 20)))
    for each in found:
        np.testing.assert_allclose(each, wanted)


def test_copies_keep_what_their_original_had():
    first = sp.random.default_rng(0).random((N, 20))
    copy = first.copy()
    first += 1
    for _ in range(3):
        float(sp.einsum("ij,ij->", copy, copy))
    assert copy._found() is not None


def _lanczos(np, A, alphas):
    v, old, beta = np.ones(len(A)) / len(A) ** 0.5, np.zeros(len(A)), 0
    for _ in range(4):
        w = A @ v
        alpha = w @ v
        w -= alpha * v + beta * old
        beta = np.linalg.norm(w)
        old, v = v, w / beta
        alphas += [float(alpha), float(beta)]


def _orthogonal(np, A, norms):
    found = [np.ones(len(A)) / len(A) ** 0.5]
    for _ in range(4):
        z = A @ found[-1]
        for v in found:
            z -= (v @ z) * v
        norms.append(float(np.linalg.norm(z)))
        found.append(z / norms[-1])


def _gradients(np, A, sums):
    x, b = np.zeros(len(A)), np.ones(len(A))
    p = r = b - A @ x
    for _ in range(3):
        q = A @ p
        step = (r @ r) / (p @ q)
        x = x + step * p
        rest = r - step * q
        sums.append(float(rest @ rest))
        p, r = rest + (rest @ rest) / (r @ r) * p, rest


def _powers(np, A, found):
    x = np.ones(len(A))
    for _ in range(4):
        y = A @ x
        length = x @ y
        x = y / np.linalg.norm(y)
    found.append(float(length))


@pytest.mark.parametrize("program", [_lanczos, _orthogonal, _gradients, _powers])
def test_a_product_is_made_once_a_step(program, monkeypatch):
    """Also of what has been written over meanwhile, whose product nobody holds any more."""
    made = []

    def contract(a, b, *args):
        made.extend([a] if a.ndim == 2 else [])
        return multiply(a, b, *args)

    multiply = products.contract
    monkeypatch.setattr(stepwise, "contract", contract)
    monkeypatch.setattr(EmbeddedBackend, "run", None)  # a plan's passes are no faster than BLAS
    A = np.random.default_rng(0).random((300, 300)) + np.eye(300)
    found: list[float] = []
    wanted: list[float] = []
    with config.override(small_bytes=300_000):
        program(sp, sp.asarray(A), found)
    program(np, A, wanted)
    assert len(made) == 4
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("room", [0, 1 << 20])
def test_what_was_written_over_is_kept_where_there_is_room(room, monkeypatch):
    """Nobody else would let it go: the steps to come hold it."""
    monkeypatch.setattr(forcing, "budget_bytes", lambda: room)
    with config.override(small_bytes=300_000):
        A, v = (sp.asarray(np.ones(shape)) for shape in ((300, 300), 300))
        w = A @ v
        product = w._node()
        alpha = w @ v
        w -= alpha
        assert float(alpha) == 90_000
        assert (product.data is not None) == (room > 0)
        np.testing.assert_array_equal(w, 300.0 - 90_000)
