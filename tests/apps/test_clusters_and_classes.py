"""Fuzzy k-means against the textbook's iteration, naive Bayes against scikit-learn."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse
from sklearn import cluster, datasets, metrics, naive_bayes
from sklearn.base import clone

from spartan_ng.apps.fuzzy_kmeans import FuzzyKMeans, fuzzy_kmeans
from spartan_ng.apps.naive_bayes import Kind, NaiveBayes
from spartan_ng.apps.naive_bayes import naive_bayes as our_naive_bayes

IRIS = datasets.load_iris()


def textbook(X, centers, fuzziness: float, iterations: int):
    """Bezdek's iteration, written out."""
    for _ in range(iterations):
        distances = numpy.linalg.norm(X[:, None] - centers[None], axis=2)
        ratios = (distances[:, :, None] / distances[:, None, :]) ** (2 / (fuzziness - 1))
        weights = (1 / ratios.sum(axis=2)) ** fuzziness
        centers = (weights.T @ X) / weights.sum(axis=0)[:, None]
    distances = numpy.linalg.norm(X[:, None] - centers[None], axis=2)
    degrees = 1 / ((distances[:, :, None] / distances[:, None, :]) ** (2 / (fuzziness - 1))).sum(axis=2)
    return centers, degrees, (degrees**fuzziness * distances**2).sum()


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("fuzziness", [1.3, 2.0, 3.0])
def test_fuzzy_kmeans(fuzziness, anywhere) -> None:
    start = IRIS.data[[3, 70, 120]] + 0.01
    ours = fuzzy_kmeans(IRIS.data, 3, fuzziness=fuzziness, init=start, max_iter=20, tol=0.0)
    centers, degrees, objective = textbook(IRIS.data, start, fuzziness, 20)
    numpy.testing.assert_allclose(ours.centers, centers, rtol=1e-9)
    numpy.testing.assert_allclose(numpy.asarray(ours.membership), degrees, atol=1e-9)
    assert ours.objective == pytest.approx(objective, rel=1e-10)


def test_barely_fuzzy_is_k_means() -> None:
    start = IRIS.data[[3, 70, 120]]
    ours = fuzzy_kmeans(IRIS.data, 3, fuzziness=1.02, init=start)
    theirs = cluster.KMeans(3, init=start, n_init=1, tol=1e-8).fit(IRIS.data)
    numpy.testing.assert_allclose(ours.centers, theirs.cluster_centers_, atol=0.02)


def test_points_on_centers_belong_to_them(anywhere) -> None:
    X = numpy.array([[0.0], [0.0], [5.0], [5.0]])
    found = fuzzy_kmeans(X, 2, init=numpy.array([[0.0], [5.0]]))
    expected = [[1, 0], [1, 0], [0, 1], [0, 1]]
    numpy.testing.assert_allclose(numpy.asarray(found.membership), expected, atol=1e-9)


def test_fuzzy_estimator() -> None:
    model = FuzzyKMeans(3, random_state=0)
    assert clone(model).get_params() == model.get_params()
    labels = numpy.asarray(model.fit_predict(IRIS.data))
    assert metrics.adjusted_rand_score(IRIS.target, labels) > 0.7
    numpy.testing.assert_array_equal(numpy.asarray(model.predict(IRIS.data)), labels)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("kind", "reference"), [("multinomial", naive_bayes.MultinomialNB), ("gaussian", naive_bayes.GaussianNB)]
)
def test_naive_bayes(kind: Kind, reference, anywhere) -> None:
    X, y = datasets.load_digits(return_X_y=True)
    ours, theirs = NaiveBayes(kind=kind).fit(X, y), reference().fit(X, y)
    numpy.testing.assert_allclose(numpy.asarray(ours.predict_proba(X)), theirs.predict_proba(X), atol=1e-6)
    assert ours.score(X, y) == theirs.score(X, y)
    assert clone(ours).get_params() == ours.get_params()


@pytest.mark.some(1)
def test_naive_bayes_of_sparse_counts(anywhere) -> None:
    X = sparse.random_array((300, 40), density=0.1, rng=0).tocsr()
    X.data = numpy.ceil(9 * X.data)
    y = numpy.arange(300) % 3
    names = numpy.array(["a", "b", "c"])[y]
    ours, theirs = NaiveBayes().fit(X, names), naive_bayes.MultinomialNB().fit(X, names)
    numpy.testing.assert_allclose(numpy.asarray(ours.predict_proba(X)), theirs.predict_proba(X), atol=1e-9)
    numpy.testing.assert_array_equal(numpy.asarray(ours.predict(X)), theirs.predict(X))


def test_bad_input_is_named() -> None:
    X = numpy.ones((4, 2))
    with pytest.raises(ValueError, match="must be above 1"):
        fuzzy_kmeans(X, 2, fuzziness=1.0)
    with pytest.raises(ValueError, match="5 clusters do not fit 4 points"):
        fuzzy_kmeans(X, 5)
    with pytest.raises(ValueError, match="a count is -1"):
        our_naive_bayes(-X, numpy.arange(4))
    with pytest.raises(ValueError, match="kind is 'bernoulli'"):
        our_naive_bayes(X, numpy.arange(4), kind="bernoulli")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be positive"):
        our_naive_bayes(X, numpy.arange(4), alpha=0)
