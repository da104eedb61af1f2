"""k-means: Lloyd's algorithm as plain array code.

Distances are |x|² - 2 x·c + |c|², labels their argmin, new centers one matrix product with the labels'
indicator matrix. Points stay where they are; an iteration forces the centers and two numbers.

Spartan (ATC '15), section 5; seeding by k-means++ (Arthur and Vassilvitskii, SODA '07) with the best of
several candidates for each center.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from math import log
from typing import Any, ClassVar, Literal

import spartan_ng as np
from spartan_ng.apps.checks import points, require_finite
from spartan_ng.apps.convergence import Iterations, warn_of_equal_points
from spartan_ng.apps.estimator import Clusterer


@dataclass(frozen=True, slots=True)
class Clustering:
    """What `kmeans` finds.

    Parameters
    ----------
    centers : shape (n_clusters, n_features)
    labels : index of each point's center, shape (n_points,); still on the workers
    inertia : sum of squared distances of points to their centers
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the centers' squared movement in each
    """

    centers: Any
    labels: Any
    inertia: float
    n_iter: int
    converged: bool
    history: Any


def kmeans(
    X: Any,
    n_clusters: int = 8,
    *,
    init: Literal["k-means++", "random"] | Any = "k-means++",
    max_iter: int = 300,
    tol: float = 1e-4,
    seed: int | None = None,
) -> Clustering:
    """Cluster points by Lloyd's algorithm.

    Parameters
    ----------
    X : points, shape (n_points, n_features), anything that `asarray` takes
    n_clusters : number of centers
    init : "k-means++", "random", or the first centers, shape (n_clusters, n_features)
    max_iter : upper bound of the number of iterations
    tol : stop when the centers' squared movement is at most `tol` times the mean variance of a feature
    seed : seed of the random choices

    Raises
    ------
    ValueError : X is not two-dimensional, n_clusters does not fit, or `init` is of a wrong kind

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0; or clusters are less, as points are equal
    """
    X = points(X)
    if not 1 <= n_clusters <= X.shape[0]:
        raise ValueError(f"kmeans: {n_clusters} clusters do not fit {X.shape[0]} points")
    if max_iter < 1:
        raise ValueError(f"kmeans: max_iter is {max_iter}, it must be at least 1")
    enough = tol * float(X.var(axis=0).mean())
    require_finite("kmeans", X, enough)
    squares = (X * X).sum(axis=1)
    centers = first_centers(X, squares, n_clusters, init, seed)
    loop = Iterations("k-means", max_iter, tol)
    for _ in loop:
        previous = centers
        centers, counts = np.compute(*new_centers(X, previous))
        if (counts == 0).any():
            centers = _refill(X, squares, previous, centers, counts)
        moved = float(((centers - previous) ** 2).sum())
        loop.saw(moved)
        loop.converged = moved <= enough
    distances = scores(X, centers)
    labels = distances.argmin(axis=1).persist()
    inertia, sizes = np.compute(
        np.maximum(squares + distances.min(axis=1), 0).sum(), np.bincount(labels, minlength=n_clusters)
    )
    warn_of_equal_points(int((sizes > 0).sum()), n_clusters)
    return Clustering(centers, labels, float(inertia), loop.n_iter, loop.converged, loop.history)


def scores(X: Any, centers: Any) -> Any:
    """Squared distances of points to centers, less the points' own squares: (n_points, n_clusters)."""
    centers = np.asarray(centers)
    return (centers * centers).sum(axis=1) - 2 * (X @ centers.T)


def assign(X: Any, centers: Any) -> Any:
    """The index of the nearest center of each point, shape (n_points,); lazy."""
    return scores(X, centers).argmin(axis=1)


def new_centers(X: Any, centers: Any) -> tuple[Any, Any]:
    """The means of each center's points (the old center where it has none), and their counts; lazy."""
    labels = assign(X, centers)
    sums, counts = np.zeros((len(centers), X.shape[1]), X.dtype), np.zeros(len(centers), X.dtype)
    np.add.at(sums, labels, X)
    np.add.at(counts, labels, 1)
    means = sums / np.maximum(counts, 1)[:, None]
    return np.where(counts[:, None] > 0, means, centers), counts


def _refill(X: Any, squares: Any, previous: Any, centers: Any, counts: Any) -> Any:
    """Move centers without points to the points that lie farthest from their own centers."""
    empty = (counts == 0).nonzero()[0]
    distances = squares + scores(X, previous).min(axis=1)
    farthest = np.argsort(-distances)[: len(empty)]
    centers = centers.copy()
    centers[empty] = X[farthest].compute()
    return centers


def first_centers(X: Any, squares: Any, k: int, init: Any, seed: int | None) -> Any:
    """The centers to start from, a small array on the driver."""
    if not isinstance(init, str):
        centers = np.asarray(init, X.dtype)
        if centers.shape != (k, X.shape[1]):
            raise ValueError(f"kmeans: init has shape {centers.shape}, not {(k, X.shape[1])}")
        return centers.compute()
    random = np.random.default_rng(seed)
    if init == "random":
        chosen = random.choice(X.shape[0], k, replace=False)
        return X[chosen].compute()
    if init != "k-means++":
        raise ValueError(f"kmeans: init is {init!r}, not 'k-means++', 'random' or an array")
    return _plus_plus(X, squares, k, random)


def _plus_plus(X: Any, squares: Any, k: int, random: Any) -> Any:
    """k-means++: each next center is drawn with probability proportional to its squared distance.

    Of `2 + log k` candidates the one that lowers the sum of distances most is kept.
    """
    candidates = 2 + int(log(k))
    centers = X[int(random.integers(X.shape[0]))].compute()[None]
    nearest = np.maximum(squares + scores(X, centers)[:, 0], 0).persist()
    while len(centers) < k:
        marks = random.random(candidates) * float(nearest.sum())
        running = np.cumsum(nearest)
        chosen = np.minimum((running[:, None] < marks).sum(axis=0), X.shape[0] - 1)
        picked = X[chosen]
        distances = np.maximum(squares[:, None] + scores(X, picked), 0)
        left = np.minimum(nearest[:, None], distances).sum(axis=0)
        best, picked = np.compute(left.argmin(), picked)
        center = picked[int(best)][None]
        centers = np.concatenate([centers, center]).compute()
        nearest = np.minimum(nearest, np.maximum(squares + scores(X, center)[:, 0], 0)).persist()
    return centers


@dataclass(eq=False, repr=False)
class KMeans(Clusterer):
    """k-means as an estimator, with scikit-learn's names and defaults; see `kmeans`.

    Attributes after `fit`: `cluster_centers_`, `labels_`, `inertia_`, `n_iter_`, `converged_`, `history_`,
    `n_features_in_`.
    """

    _find = staticmethod(kmeans)
    _sparse: ClassVar[bool] = True

    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    max_iter: int = 300
    tol: float = 1e-4
    random_state: int | None = None

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Find the centers, and give each point's label."""
        return self.fit(X, y).labels_

    def transform(self, X: Any) -> Any:
        """Distances of points to centers, shape (n_points, n_clusters)."""
        return np.sqrt(self._apart(self._seen(X)))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find the centers, and give each point's distances to them."""
        return self.fit(X, y).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The negative of the sum of squared distances to the nearest centers: more is better."""
        del y
        return -float(self._apart(self._seen(X)).min(axis=1).sum())
