"""Conjugate gradients, Jacobi, Cholesky and PageRank against NumPy and SciPy."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse
from sklearn.base import clone

from spartan_ng.apps.cholesky import Cholesky, cholesky
from spartan_ng.apps.errors import ConvergenceWarning
from spartan_ng.apps.linear_systems import ConjugateGradient, Jacobi, conjugate_gradient, jacobi
from spartan_ng.apps.pagerank import PageRank, pagerank

RNG = numpy.random.default_rng(0)
M = RNG.random((90, 90))
DEFINITE, DOMINANT, B = M @ M.T + 10 * numpy.eye(90), M + 90 * numpy.eye(90), RNG.random(90)


@pytest.mark.some(4)
@pytest.mark.parametrize("form", [numpy.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(("solve", "A"), [(conjugate_gradient, DEFINITE), (jacobi, DOMINANT)])
def test_systems(solve, A, form, anywhere) -> None:
    found = solve(form(A), B, tol=1e-12)
    numpy.testing.assert_allclose(numpy.asarray(found.x), numpy.linalg.solve(A, B), rtol=1e-9)
    left = B - A @ numpy.asarray(found.x)
    assert found.residual <= 1e-12
    assert numpy.linalg.norm(left) <= 1e-11 * numpy.linalg.norm(B)
    assert found.converged
    with pytest.warns(
        ConvergenceWarning, match=r"has not converged in 3 iterations \(max_iter=3, tol=1e-12\)"
    ):
        few = solve(form(A), B, tol=1e-12, max_iter=3)
    assert (few.n_iter, few.converged, len(few.history)) == (3, False, 3)
    expected = numpy.linalg.norm(B - A @ numpy.asarray(few.x)) / numpy.linalg.norm(B)
    assert few.residual == pytest.approx(expected, rel=1e-9)


@pytest.mark.some(1)
def test_conjugate_gradients_of_a_large_sparse_system(anywhere) -> None:
    n = 40
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    grid = (sparse.kron(line, sparse.eye_array(n)) + sparse.kron(sparse.eye_array(n), line)).tocsr()
    b = RNG.random(n * n)
    found = conjugate_gradient(grid, b, tol=1e-10)
    x, failed = sparse.linalg.cg(grid, b, rtol=1e-10)
    assert failed == 0
    numpy.testing.assert_allclose(numpy.asarray(found.x), x, rtol=1e-6)
    assert found.n_iter < 200


@pytest.mark.parametrize("model", [ConjugateGradient(), Jacobi()])
def test_solvers_as_estimators(model) -> None:
    A = DEFINITE if isinstance(model, ConjugateGradient) else DOMINANT
    assert clone(model).get_params() == model.get_params()
    numpy.testing.assert_allclose(numpy.asarray(model.fit(A, B).predict(A)), B, rtol=1e-6)


def test_systems_that_cannot_be_solved_are_named() -> None:
    for solve in (conjugate_gradient, jacobi):
        with pytest.raises(ValueError, match=r"y has shape \(5,\), X has 90 rows"):
            solve(DEFINITE, B[:5])
        assert solve(DEFINITE, 0 * B).n_iter == 0
    with pytest.raises(ValueError, match="not positive definite"):
        conjugate_gradient(-DEFINITE, B)
    with pytest.raises(ValueError, match="diverges"):
        jacobi(M + 0.5, B)
    with pytest.raises(ValueError, match="zero on its diagonal"):
        jacobi(DOMINANT * (1 - numpy.eye(90)), B)


@pytest.mark.some(3)
@pytest.mark.parametrize("block", [1000, 30, 7])
def test_cholesky(block, anywhere) -> None:
    found = cholesky(DEFINITE, block=block)
    numpy.testing.assert_allclose(
        numpy.asarray(found.factor), numpy.linalg.cholesky(DEFINITE), rtol=1e-9, atol=1e-12
    )
    assert found.log_determinant == pytest.approx(numpy.linalg.slogdet(DEFINITE)[1])


def test_cholesky_solves(anywhere) -> None:
    model = Cholesky(block=20).fit(DEFINITE)
    numpy.testing.assert_allclose(model.solve(B), numpy.linalg.solve(DEFINITE, B), rtol=1e-9)
    numpy.testing.assert_allclose(model.solve(M[:, :3]), numpy.linalg.solve(DEFINITE, M[:, :3]), rtol=1e-7)
    with pytest.raises(ValueError, match=r"b has shape \(3,\)"):
        model.solve(B[:3])
    with pytest.raises(ValueError, match="not positive definite"):
        cholesky(-DEFINITE)
    with pytest.raises(ValueError, match="square"):
        cholesky(M[:3])


def links(n: int) -> sparse.csr_array:
    """A random web, a few pages of which have no links."""
    A = sparse.random_array((n, n), density=0.02, rng=0).tolil()
    A[3], A[50] = 0, 0
    return A.tocsr()


@pytest.mark.some(2)
@pytest.mark.parametrize("form", [lambda a: a, lambda a: a.toarray()], ids=["sparse", "dense"])
def test_pagerank(form, anywhere) -> None:
    n, d = 150, 0.85
    A = links(n)
    found = pagerank(form(A), damping=d, tol=1e-13, max_iter=300)
    out = A.toarray().sum(axis=1, keepdims=True)
    moves = numpy.where(out > 0, A.toarray() / numpy.where(out > 0, out, 1), 1 / n)
    exact = numpy.linalg.solve(numpy.eye(n) - d * moves.T, numpy.full(n, (1 - d) / n))
    numpy.testing.assert_allclose(numpy.asarray(found.ranks), exact, atol=1e-12)
    assert float(found.ranks.sum()) == pytest.approx(1)


def test_pagerank_estimator_and_bad_input() -> None:
    model = PageRank(damping=0.5)
    assert clone(model).get_params() == model.get_params()
    assert model.fit(links(60)).n_iter_ < 60
    with pytest.raises(ValueError, match="must be square"):
        pagerank(M[:3])
    with pytest.raises(ValueError, match="must be in"):
        pagerank(M, damping=1.0)
    with pytest.raises(ValueError, match="a link has weight -"):
        pagerank(M - 1)
