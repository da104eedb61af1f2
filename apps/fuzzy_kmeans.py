"""Fuzzy k-means: every point belongs to every cluster to some degree.

Spartan (ATC '15), section 5; Bezdek (1981). The degrees follow from the distances and the centers from
the degrees; both are made tile by tile, and an iteration forces the centers and one number only.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import spartan_ng as np
from spartan_ng.apps.checks import points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations, warn_of_equal_points
from spartan_ng.apps.estimator import Clusterer
from spartan_ng.apps.kmeans import first_centers, scores


@dataclass(frozen=True, slots=True)
class FuzzyClustering:
    """What `fuzzy_kmeans` finds.

    Parameters
    ----------
    centers : shape (n_clusters, n_features)
    membership : degrees of points in clusters, each row's sum 1, shape (n_points, n_clusters); on the workers
    objective : sum of squared distances, weighted by degrees to the power of `fuzziness`
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the centers' squared movement in each
    """

    centers: Any
    membership: Any
    objective: float
    n_iter: int
    converged: bool
    history: Any


def fuzzy_kmeans(
    X: Any,
    n_clusters: int = 8,
    *,
    fuzziness: float = 2.0,
    init: Literal["k-means++", "random"] | Any = "k-means++",
    max_iter: int = 300,
    tol: float = 1e-4,
    seed: int | None = None,
) -> FuzzyClustering:
    """Cluster points by degrees.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    n_clusters : number of centers
    fuzziness : above 1; near 1 the degrees are nearly 0 or 1, as in k-means
    init : "k-means++", "random", or the first centers, shape (n_clusters, n_features)
    max_iter : upper bound of the number of iterations
    tol : stop when the centers' squared movement is at most `tol` times the mean variance of a feature
    seed : seed of the random choices

    Raises
    ------
    ValueError : shapes do not fit, or fuzziness is not above 1

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0; or clusters are less, as points are equal
    """
    X = points(X)
    if not 1 <= n_clusters <= X.shape[0]:
        raise ValueError(f"fuzzy_kmeans: {n_clusters} clusters do not fit {X.shape[0]} points")
    if fuzziness <= 1:
        raise ValueError(f"fuzzy_kmeans: fuzziness is {fuzziness}, it must be above 1")
    require_positive("fuzzy_kmeans", max_iter=max_iter)
    enough = tol * float(X.var(axis=0).mean())
    require_finite("fuzzy_kmeans", X, enough)
    squares = (X * X).sum(axis=1)
    centers = first_centers(X, squares, n_clusters, init, seed)
    loop = Iterations("fuzzy k-means", max_iter, tol)
    for _ in loop:
        previous = centers
        weights = degrees(X, previous, fuzziness) ** fuzziness
        centers = ((weights.T @ X) / weights.sum(axis=0)[:, None]).compute()
        moved = float(((centers - previous) ** 2).sum())
        loop.saw(moved)
        loop.converged = moved <= enough
    warn_of_equal_points(_distinct(centers), n_clusters)
    membership = degrees(X, centers, fuzziness).persist()
    objective = (membership**fuzziness * np.maximum(squares[:, None] + scores(X, centers), 0)).sum()
    return FuzzyClustering(centers, membership, float(objective), loop.n_iter, loop.converged, loop.history)


def _distinct(centers: Any) -> int:
    """How many centers lie where none before them does, but for rounding errors."""
    squares = (centers * centers).sum(axis=1)
    apart = squares[:, None] - 2 * (centers @ centers.T) + squares
    near = apart <= 16 * float(np.finfo(centers.dtype).eps) * squares.max()
    return int((np.tril(near, -1).sum(axis=1) == 0).sum())


def degrees(X: Any, centers: Any, fuzziness: float) -> Any:
    """How much each point belongs to each center, shape (n_points, n_clusters); lazy.

    A distance to the power of -2 / (fuzziness - 1), over the sum of the point's. Distances are first divided
    by the point's least, so that no power overflows.
    """
    squares = (X * X).sum(axis=1)
    least = np.finfo(X.dtype).eps * (squares.max() + 1e-30)  # smaller distances are rounding errors
    distances = np.maximum(squares[:, None] + scores(X, centers), least)
    closeness = (distances / distances.min(axis=1)[:, None]) ** (-1 / (fuzziness - 1))
    return closeness / closeness.sum(axis=1)[:, None]


@dataclass(eq=False, repr=False)
class FuzzyKMeans(Clusterer):
    """Fuzzy k-means as an estimator; see `fuzzy_kmeans`.

    Attributes after `fit`: `cluster_centers_`, `membership_`, `objective_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(fuzzy_kmeans)
    _sparse: ClassVar[bool] = True

    n_clusters: int = 8
    _: KW_ONLY
    fuzziness: float = 2.0
    init: Any = "k-means++"
    max_iter: int = 300
    tol: float = 1e-4
    random_state: int | None = None

    def predict_proba(self, X: Any) -> Any:
        """The degrees of points in clusters, shape (n_points, n_clusters)."""
        return degrees(self._seen(X), self.cluster_centers_, self.fuzziness)

    def score(self, X: Any, y: Any = None) -> float:
        """The negative of the objective: more is better."""
        del y
        X = self._seen(X)
        return -float((self.predict_proba(X) ** self.fuzziness * self._apart(X)).sum())
