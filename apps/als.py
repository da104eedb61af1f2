"""Alternating least squares: users' and items' factors of a sparse matrix of ratings, each row solved
exactly.

Spartan (ATC '15), Fig. 3 and section 5: an iteration reads the ratings by rows for the users and by columns
for the items, so that the optimizer keeps them in both layouts where there is memory. Explicit ratings are
fitted with a penalty that grows with the number of a row's ratings (Zhou et al., 2008), implicit ones as
confidences (Hu, Koren and Volinsky, 2008).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Unsupervised, explained
from spartan_ng.apps.pictures import Panel

_ELEMENTS = 1 << 22
"""Elements of the systems that are solved in one call."""


@dataclass(frozen=True, slots=True)
class Factors:
    """What `als` and `als_cg` find: a rating is nearly user_factors[i] @ item_factors[j]; both on the
    workers.

    Parameters
    ----------
    user_factors : shape (n_users, rank)
    item_factors : shape (n_items, rank)
    objective : the weighted squared loss and the penalty
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the items' factors' relative change in each, or the objective after it
    """

    user_factors: Any
    item_factors: Any
    objective: float
    n_iter: int
    converged: bool
    history: Any


def als(
    X: Any,
    rank: int = 10,
    *,
    reg: float = 0.1,
    implicit: bool = False,
    alpha: float = 40.0,
    max_iter: int = 100,
    tol: float = 1e-3,
    seed: int | None = None,
) -> Factors:
    """Factorize a matrix of ratings (0: not rated), each row's least squares solved exactly.

    Parameters
    ----------
    X : ratings, shape (n_users, n_items), usually sparse
    rank : number of factors of a user or an item
    reg : strength of the penalty
    implicit : whether ratings are counts that say how sure a liking is, and no rating means a weak dislike
    alpha : confidence for each count, with `implicit`
    max_iter : upper bound of the number of iterations
    tol : stop when the items' factors change by at most this share of their norm
    seed : seed of the start

    Raises
    ------
    ValueError : X is not two-dimensional, or rank, reg or max_iter is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("als", rank=rank, reg=reg, max_iter=max_iter, alpha=alpha)
    settings = np.asarray([reg, alpha, float(implicit)])
    (n, m), kind = X.shape, X.dtype
    V = np.asarray(np.random.default_rng(seed).random((m, rank)) / rank**0.5).astype(kind)
    loop = Iterations("ALS", max_iter, tol)
    for _ in loop:
        before = V
        U = np.join_update(_rows, np.add, (X, V, V.T @ V, settings), (0, -1, -1, -1), (n, rank), kind)
        V = np.join_update(_columns, np.add, (X, U, U.T @ U, settings), (1, -1, -1, -1), (m, rank), kind)
        moved, size = ((V - before) ** 2).sum(), (V * V).sum()
        np.persist(U, V, moved, size)
        require_finite("als", X, size)
        loop.saw((float(moved) / (float(size) or 1.0)) ** 0.5)
        loop.converged = float(moved) <= tol * tol * float(size)
    objective = _implicit(X, U, V, reg, alpha) if implicit else _explicit(X, U, V, reg)
    return Factors(U, V, float(objective), loop.n_iter, loop.converged, loop.history)


def weighted_squared_loss(X: Any, U: Any, V: Any) -> Any:
    """The squared errors of U @ V.T where X is not 0, summed; lazy (FuseME, Fig. 1)."""
    return ((X != 0) * (X - U @ V.T) ** 2).sum()


def weighted_penalty(X: Any, U: Any, V: Any) -> Any:
    """The squared factors, each row's as often as it has ratings, summed; lazy."""
    rated = X != 0
    return (rated.sum(axis=1) * (U * U).sum(axis=1)).sum() + (rated.sum(axis=0) * (V * V).sum(axis=1)).sum()


def _explicit(X: Any, U: Any, V: Any, reg: float) -> Any:
    return weighted_squared_loss(X, U, V) + reg * weighted_penalty(X, U, V)


def _implicit(X: Any, U: Any, V: Any, reg: float, alpha: float) -> Any:
    """Every pair counts: the sum over all of (u @ v)² is one of small products."""
    P = U @ V.T
    everywhere = ((U.T @ U) * (V.T @ V)).sum()
    rated = ((X != 0) * ((1 - P) ** 2 - P * P)).sum() + alpha * (X * (1 - P) ** 2).sum()
    return everywhere + rated + reg * ((U * U).sum() + (V * V).sum())


def _rows(extents: Any, tiles: Any) -> tuple[tuple[int, int], Any]:
    """The users of one piece of the ratings."""
    ((first, _), _), *_ = extents
    return (first, 0), _solve(tiles[0], *tiles[1:])


def _columns(extents: Any, tiles: Any) -> tuple[tuple[int, int], Any]:
    """The items of one piece of the ratings."""
    (_, (first, _)), *_ = extents
    return (first, 0), _solve(tiles[0].T, *tiles[1:])


def _solve(ratings: Any, others: Any, gram: Any, settings: Any) -> Any:
    """The factors of each row of `ratings`, given the others'; a row without ratings gets zeros.

    Row a of every system is one sparse product: of the ratings' weights with the others times their factor a.
    """
    reg, alpha, implicit = settings
    ratings = sparse.csr_array(ratings, copy=True)  # what a function is given is for reading
    ratings.eliminate_zeros()
    (rows, _), rank = ratings.shape, others.shape[1]
    counts = numpy.diff(ratings.indptr)
    penalty = numpy.full(rows, reg) if implicit else numpy.where(counts, reg * counts, 1.0)
    weights, wanted = ratings.copy(), ratings.copy()
    weights.data = alpha * ratings.data if implicit else numpy.ones_like(ratings.data)
    wanted.data = 1 + weights.data if implicit else ratings.data
    right = (wanted @ others)[:, :, None]
    out = numpy.empty((rows, rank), others.dtype)
    step = max(_ELEMENTS // rank**2, 1)
    for here in (slice(i, i + step) for i in range(0, rows, step)):
        some = weights[here]
        systems = numpy.stack([some @ (others * others[:, a : a + 1]) for a in range(rank)], axis=1)
        systems[:, range(rank), range(rank)] += penalty[here, None]
        out[here] = numpy.linalg.solve(systems + gram if implicit else systems, right[here])[:, :, 0]
    return out


class Recommender(Unsupervised):
    """Predicts ratings from factors."""

    _learned: ClassVar[str] = "item_factors_"
    _measure: ClassVar[str] = "explained share"
    _sparse: ClassVar[bool] = True

    def predict(self, users: Any, items: Any = None) -> Any:
        """The ratings of pairs, shape (n_pairs,): users and items by their numbers, or as two columns."""
        self._require_fit()
        if items is None:
            users, items = (array(users).astype(np.int64)[:, i] for i in (0, 1))
        left = np.take(self.user_factors_, users, axis=0)
        return (left * np.take(self.item_factors_, items, axis=0)).sum(axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the ratings' squares that the factors explain: at most 1."""
        del y
        X = self._rated(X)
        return explained(weighted_squared_loss(X, self.user_factors_, self.item_factors_), (X * X).sum())

    def quality(self, *data: Any) -> dict[str, float]:
        """The score, and the root of the mean squared error of the ratings."""
        X = self._rated(data[0])
        lost, count = np.compute(
            weighted_squared_loss(X, self.user_factors_, self.item_factors_), (X != 0).sum()
        )
        error = (float(lost) / max(int(count), 1)) ** 0.5
        return {**super().quality(*data), "root mean squared error": error}

    def _rated(self, X: Any) -> Any:
        """Ratings of as many users and items as have factors."""
        X, known = self._seen(X), self.user_factors_.shape[0]
        if X.shape[0] != known:
            raise ValueError(f"{type(self).__name__}: X has {X.shape[0]} users, {known} have factors")
        return X

    def _panels(self, *data: Any) -> list[Panel]:
        if not data:
            return []
        X = self._rated(data[0])
        users, items = (i[:: -(-len(i) // pictures.POINTS)] for i in np.compute(*np.nonzero(X)))
        given = X.compute()[users, items]
        return [pictures.against(self.predict(users, items), np.asarray(given), "rating")]


@dataclass(eq=False, repr=False)
class ALS(Recommender):
    """Alternating least squares as an estimator; see `als`.

    Attributes after `fit`: `user_factors_`, `item_factors_`, `objective_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(als)
    _history: ClassVar[str] = "relative change of the items' factors"

    rank: int = 10
    _: KW_ONLY
    reg: float = 0.1
    implicit: bool = False
    alpha: float = 40.0
    max_iter: int = 100
    tol: float = 1e-3
    random_state: int | None = None
