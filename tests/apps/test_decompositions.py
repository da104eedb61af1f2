"""PCA, SVD and stochastic SVD against NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg
from sklearn import datasets, decomposition
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spartan_ng as np
from spartan_ng.apps.logistic_regression import LogisticRegression
from spartan_ng.apps.pca import PCA, pca
from spartan_ng.apps.ssvd import SSVD, orthonormal, ssvd
from spartan_ng.apps.svd import SVD, svd

DIGITS = datasets.load_digits().data


def product(found) -> numpy.ndarray:
    return (numpy.asarray(found.left) * found.values) @ numpy.asarray(found.right)


def best(A, k: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The leading singular values, and the nearest matrix of rank k."""
    left, values, right = numpy.linalg.svd(A, full_matrices=False)
    return values[:k], (left[:, :k] * values[:k]) @ right[:k]


@pytest.mark.some(1)
@pytest.mark.parametrize("A", [DIGITS, DIGITS.T], ids=["tall", "wide"])
def test_svd(A, anywhere) -> None:
    values, nearest = best(A, 5)
    found = svd(A, 5, tol=1e-12)
    numpy.testing.assert_allclose(found.values, values, rtol=1e-10)
    numpy.testing.assert_allclose(product(found), nearest, atol=1e-5)
    assert found.n_iter < 40


@pytest.mark.some(1)
def test_svd_of_a_sparse_matrix(anywhere) -> None:
    A = sparse.random_array((400, 300), density=0.05, rng=0).tocsr()
    found = svd(A, 4, tol=1e-12)
    numpy.testing.assert_allclose(found.values, sorted(sparse_linalg.svds(A, 4)[1])[::-1], rtol=1e-8)


def test_svd_of_a_matrix_of_low_rank() -> None:
    random = numpy.random.default_rng(0)
    A = random.standard_normal((60, 2)) @ random.standard_normal((2, 30))
    found = svd(A, 4)
    numpy.testing.assert_allclose(found.values[:2], best(A, 2)[0], rtol=1e-10)
    assert (found.values[2:] < 1e-6 * found.values[0]).all()
    numpy.testing.assert_allclose(product(found), A, atol=1e-6)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("A", [DIGITS, DIGITS.T], ids=["tall", "wide"])
def test_ssvd(A, anywhere) -> None:
    values, nearest = best(A, 5)
    found = ssvd(A, 5, n_passes=8)
    numpy.testing.assert_allclose(found.values, values, rtol=1e-6)
    numpy.testing.assert_allclose(product(found), nearest, atol=0.02)
    left, right = numpy.asarray(found.left), numpy.asarray(found.right)
    numpy.testing.assert_allclose(left.T @ left, numpy.eye(5), atol=1e-8)
    numpy.testing.assert_allclose(right @ right.T, numpy.eye(5), atol=1e-8)


def test_bases_of_nearly_dependent_columns_are_orthonormal(anywhere) -> None:
    Y = DIGITS[:, 20:24] + 1e-5 * DIGITS[:, 30:34]
    Y[:, 0] = Y[:, 1] * (1 + 1e-6) + 1e-4 * DIGITS[:, 40]
    Q = numpy.asarray(orthonormal(np.asarray(Y)))
    numpy.testing.assert_allclose(Q.T @ Q, numpy.eye(4), atol=1e-8)
    numpy.testing.assert_allclose(Q @ (Q.T @ Y), Y, atol=1e-6)


@pytest.mark.some(2)
@pytest.mark.parametrize("k", [None, 7])
def test_pca(k, anywhere) -> None:
    ours, theirs = PCA(k).fit(DIGITS), decomposition.PCA(k).fit(DIGITS)
    kept = theirs.explained_variance_ > 1e-9
    numpy.testing.assert_allclose(ours.explained_variance_, theirs.explained_variance_, atol=1e-9)
    numpy.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, atol=1e-9)
    numpy.testing.assert_allclose(abs(ours.components_[kept]), abs(theirs.components_[kept]), atol=1e-7)
    Z = numpy.asarray(ours.transform(DIGITS))
    back = theirs.inverse_transform(theirs.transform(DIGITS))
    numpy.testing.assert_allclose(numpy.asarray(ours.inverse_transform(Z)), back, atol=1e-8)


@pytest.mark.some(1)
@pytest.mark.parametrize("model", [PCA(10), SVD(10), SSVD(10)])
def test_estimators_work_in_a_pipeline(model) -> None:
    assert clone(model).get_params() == model.get_params()
    digits = datasets.load_digits()
    fitted = make_pipeline(model, StandardScaler(), LogisticRegression()).fit(DIGITS, digits.target)
    assert fitted.score(DIGITS, digits.target) > 0.85


def test_bad_input_is_named() -> None:
    for decompose in (svd, ssvd):
        with pytest.raises(ValueError, match=r"shape \(3, 2\) has no 3 singular values"):
            decompose(numpy.ones((3, 2)), 3)
        with pytest.raises(ValueError, match="must be"):
            decompose(numpy.ones(3), 1)
    with pytest.raises(ValueError, match="1 points of 2 features"):
        pca(numpy.ones((1, 2)))
