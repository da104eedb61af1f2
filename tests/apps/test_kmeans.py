"""k-means against scikit-learn on data sets that scikit-learn ships."""

from __future__ import annotations

import numpy
import pytest
from sklearn import cluster, datasets, metrics
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spartan_ng.apps.errors import NotFittedError
from spartan_ng.apps.kmeans import KMeans, kmeans


def brute_inertia(X, centers) -> float:
    return float(((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2).min(axis=1).sum())


@pytest.mark.some(3)
@pytest.mark.parametrize("load", [datasets.load_iris, datasets.load_digits, datasets.load_breast_cancer])
def test_same_start_gives_scikit_learns_clusters(load, anywhere) -> None:
    X = load().data
    k = 4
    first = X[numpy.random.default_rng(5).choice(len(X), k, replace=False)]
    ours = kmeans(X, k, init=first, tol=0.0, max_iter=300)
    theirs = cluster.KMeans(k, init=first, n_init=1, tol=0.0, algorithm="lloyd", max_iter=300).fit(X)
    numpy.testing.assert_allclose(ours.centers, theirs.cluster_centers_, rtol=1e-9, atol=1e-9)
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-9)
    numpy.testing.assert_array_equal(numpy.asarray(ours.labels), theirs.labels_)


@pytest.mark.slow
@pytest.mark.some(1)
def test_plus_plus_is_as_good_as_scikit_learns(anywhere) -> None:
    X = datasets.load_digits().data
    ours = min(kmeans(X, 10, max_iter=300, seed=s).inertia for s in range(3))
    theirs = cluster.KMeans(10, n_init=3, random_state=0).fit(X).inertia_
    assert ours <= 1.02 * theirs


def test_a_seed_repeats_itself() -> None:
    X = datasets.load_iris().data
    a, b = kmeans(X, 3, seed=1), kmeans(X, 3, seed=1)
    numpy.testing.assert_array_equal(a.centers, b.centers)
    assert a.inertia == pytest.approx(brute_inertia(X, numpy.asarray(a.centers)))


def test_random_start() -> None:
    X = datasets.load_iris().data
    found = kmeans(X, 3, init="random", seed=2)
    assert found.inertia == pytest.approx(brute_inertia(X, numpy.asarray(found.centers)))


def test_an_empty_center_moves_to_the_farthest_point(anywhere) -> None:
    X = numpy.array([[0.0], [1.0], [10.0]])
    found = kmeans(X, 3, init=numpy.array([[0.5], [1e6], [2e6]]), tol=0.0)
    assert sorted(numpy.asarray(found.centers).ravel()) == [0.0, 1.0, 10.0]
    assert found.inertia == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3,), 1), "must be"),
        (((3, 2), 4), "do not fit 3 points"),
        (((3, 2), 0), "do not fit"),
    ],
)
def test_bad_shapes_are_named(arguments, message) -> None:
    shape, k = arguments
    with pytest.raises(ValueError, match=message):
        kmeans(numpy.ones(shape), k)


def test_bad_starts_are_named() -> None:
    with pytest.raises(ValueError, match="'k-means\\+\\+'"):
        kmeans(numpy.ones((3, 2)), 2, init="best")
    with pytest.raises(ValueError, match=r"init has shape \(1, 2\)"):
        kmeans(numpy.ones((3, 2)), 2, init=numpy.ones((1, 2)))
    with pytest.raises(ValueError, match="max_iter"):
        kmeans(numpy.ones((3, 2)), 2, max_iter=0)


def test_estimator_follows_the_conventions() -> None:
    X = datasets.load_iris().data
    model = KMeans(3, random_state=0)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="no parameter 'k'"):
        model.set_params(k=4)
    assert model.set_params(n_clusters=4).n_clusters == 4
    assert model.fit(X) is model
    assert model.score(X) == pytest.approx(-model.inertia_)
    numpy.testing.assert_array_equal(numpy.asarray(model.predict(X)), numpy.asarray(model.labels_))
    distances = numpy.asarray(model.transform(X))
    numpy.testing.assert_allclose(
        distances, metrics.pairwise_distances(X, numpy.asarray(model.cluster_centers_)), atol=1e-6
    )
    with pytest.raises(ValueError, match="3 features, but KMeans is expecting 4"):
        model.predict(X[:, :3])
    assert repr(KMeans(2)).startswith("KMeans(n_clusters=2, init='k-means++'")


def test_estimator_works_in_a_pipeline() -> None:
    iris = datasets.load_iris()
    labels = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit_predict(iris.data)
    assert metrics.adjusted_rand_score(iris.target, numpy.asarray(labels)) > 0.5
