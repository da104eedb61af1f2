"""k-means: Lloyd's algorithm as plain array code.

Distances are |x|² - 2 x·c + |c|², labels their argmin, new centers one matrix product with the labels'
indicator matrix. Points stay where they are; an iteration forces the centers and two numbers.

Spartan (ATC '15), section 5; seeding by k-means++ (Arthur and Vassilvitskii, SODA '07) with the best of
several candidates for each center.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any, ClassVar, Self

import click

import spartan_ng as np
from spartan_ng.apps.estimator import Estimator


@dataclass(frozen=True, slots=True)
class Clustering:
    """What `kmeans` finds.

    Parameters
    ----------
    centers : shape (n_clusters, n_features)
    labels : index of each point's center, shape (n_points,); still on the workers
    inertia : sum of squared distances of points to their centers
    n_iter : number of iterations that were run
    """

    centers: Any
    labels: Any
    inertia: float
    n_iter: int


def kmeans(
    X: Any,
    n_clusters: int,
    *,
    init: Any = "k-means++",
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
    """
    X = _points(X)
    if not 1 <= n_clusters <= X.shape[0]:
        raise ValueError(f"kmeans: {n_clusters} clusters do not fit {X.shape[0]} points")
    if max_iter < 1:
        raise ValueError(f"kmeans: max_iter is {max_iter}, it must be at least 1")
    squares = (X * X).sum(axis=1)
    centers = _first_centers(X, squares, n_clusters, init, seed)
    enough = tol * float(X.var(axis=0).mean())
    n_iter, moved = 0, float("inf")
    while n_iter < max_iter and moved > enough:
        n_iter += 1
        previous = centers
        centers, counts = np.compute(*new_centers(X, previous))
        if (counts == 0).any():
            centers = _refill(X, squares, previous, centers, counts)
        moved = float(((centers - previous) ** 2).sum())
    scores = _scores(X, centers)
    labels = scores.argmin(axis=1).persist()
    inertia = float(np.maximum(squares + scores.min(axis=1), 0).sum())
    return Clustering(centers, labels, inertia, n_iter)


def _points(X: Any) -> Any:
    """X as a two-dimensional array of floating-point numbers."""
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; it must be (n_points, n_features)")
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def _scores(X: Any, centers: Any) -> Any:
    """Squared distances of points to centers, less the points' own squares: (n_points, n_clusters)."""
    centers = np.asarray(centers)
    return (centers * centers).sum(axis=1) - 2 * (X @ centers.T)


def assign(X: Any, centers: Any) -> Any:
    """The index of the nearest center of each point, shape (n_points,); lazy."""
    return _scores(X, centers).argmin(axis=1)


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
    distances = squares + _scores(X, previous).min(axis=1)
    farthest = np.argsort(-distances)[: len(empty)]
    centers = centers.copy()
    centers[empty] = X[farthest].compute()
    return centers


def _first_centers(X: Any, squares: Any, k: int, init: Any, seed: int | None) -> Any:
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
    nearest = np.maximum(squares + _scores(X, centers)[:, 0], 0).persist()
    while len(centers) < k:
        marks = random.random(candidates) * float(nearest.sum())
        running = np.cumsum(nearest)
        chosen = np.minimum((running[:, None] < marks).sum(axis=0), X.shape[0] - 1)
        points = X[chosen]
        distances = np.maximum(squares[:, None] + _scores(X, points), 0)
        left = np.minimum(nearest[:, None], distances).sum(axis=0)
        best, points = np.compute(left.argmin(), points)
        center = points[int(best)][None]
        centers = np.concatenate([centers, center]).compute()
        nearest = np.minimum(nearest, np.maximum(squares + _scores(X, center)[:, 0], 0)).persist()
    return centers


class KMeans(Estimator):
    """k-means as an estimator, with scikit-learn's names; see `kmeans` for the parameters.

    Attributes after `fit`: `cluster_centers_`, `labels_`, `inertia_`, `n_iter_`, `n_features_in_`.
    """

    _kind: ClassVar[str] = "clusterer"
    _learned: ClassVar[str] = "cluster_centers_"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: None = None) -> Self:
        """Find the centers of X; `y` is ignored, weights are not supported."""
        del y
        if sample_weight is not None:
            raise ValueError("KMeans: sample weights are not supported")
        found = kmeans(
            X, self.n_clusters, init=self.init, max_iter=self.max_iter, tol=self.tol, seed=self.random_state
        )
        self.cluster_centers_ = found.centers
        self.labels_ = found.labels
        self.inertia_ = found.inertia
        self.n_iter_ = found.n_iter
        self.n_features_in_ = found.centers.shape[1]
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Find the centers, and give each point's label."""
        return self.fit(X, y).labels_

    def predict(self, X: Any) -> Any:
        """The index of the nearest center of each point, shape (n_points,)."""
        return assign(self._checked(X), self.cluster_centers_)

    def transform(self, X: Any) -> Any:
        """Distances of points to centers, shape (n_points, n_clusters)."""
        X = self._checked(X)
        squares = (X * X).sum(axis=1)
        return np.sqrt(np.maximum(squares[:, None] + _scores(X, self.cluster_centers_), 0))

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find the centers, and give each point's distances to them."""
        return self.fit(X, y).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The negative of the sum of squared distances to the nearest centers: more is better."""
        del y
        X = self._checked(X)
        nearest = (X * X).sum(axis=1) + _scores(X, self.cluster_centers_).min(axis=1)
        return -float(np.maximum(nearest, 0).sum())

    def _checked(self, X: Any) -> Any:
        self._require_fit()
        X = _points(X)
        self._require_features(X.shape[1])
        return X


@click.command("kmeans")
@click.option(
    "--data", required=True, type=click.Path(exists=True, dir_okay=False), help="Points, a .npy file."
)
@click.option("--clusters", required=True, type=click.IntRange(min=1), help="Number of clusters.")
@click.option("--init", default="k-means++", show_default=True, type=click.Choice(["k-means++", "random"]))
@click.option("--max-iter", default=300, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--tol", default=1e-4, show_default=True, type=float, help="Tolerance of the centers' movement."
)
@click.option("--seed", type=int, help="Seed of the random choices.")
@click.option("--output", type=click.Path(dir_okay=False), help="Write centers and labels, a .npz file.")
def command(
    data: str, clusters: int, init: str, max_iter: int, tol: float, seed: int | None, output: str | None
) -> None:
    """Cluster the rows of an array by k-means.

    Example: spartan-ng app kmeans --data points.npy --clusters 10 --output found.npz
    """
    try:
        found = kmeans(np.load(data), clusters, init=init, max_iter=max_iter, tol=tol, seed=seed)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{clusters} clusters, inertia {found.inertia:.6g}, {found.n_iter} iterations")
    if output is not None:
        np.savez(output, centers=found.centers, labels=found.labels)
        click.echo(f"centers and labels are in {Path(output)}")
