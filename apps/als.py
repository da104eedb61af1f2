"""Alternating least squares: users' and items' factors of a sparse matrix of ratings, each row solved
exactly.

Spartan (ATC '15), Fig. 3 and section 5: an iteration reads the ratings by rows for the users and by columns
for the items, so that the optimizer keeps them in both layouts where there is memory. Explicit ratings are
fitted with a penalty that grows with the number of a row's ratings (Zhou et al., 2008), implicit ones as
confidences (Hu, Koren and Volinsky, 2008).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng.apps.estimator import Estimator, points, require_positive
from spartan_ng.progress import steps

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
    """

    user_factors: Any
    item_factors: Any
    objective: float
    n_iter: int


def als(
    X: Any,
    rank: int = 10,
    *,
    reg: float = 0.1,
    implicit: bool = False,
    alpha: float = 40.0,
    max_iter: int = 15,
    tol: float = 1e-4,
    seed: int | None = 0,
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
    """
    X = points(X)
    require_positive("als", rank=rank, reg=reg, max_iter=max_iter, alpha=alpha)
    settings = np.asarray([reg, alpha, float(implicit)])
    (n, m), kind = X.shape, X.dtype
    V = np.asarray(np.random.default_rng(seed).random((m, rank)) / rank**0.5).astype(kind)
    for n_iter in steps(max_iter, "ALS"):  # noqa: B007 - told in the result
        before = V
        U = np.join_update(_rows, np.add, (X, V, V.T @ V, settings), (0, -1, -1, -1), (n, rank), kind)
        V = np.join_update(_columns, np.add, (X, U, U.T @ U, settings), (1, -1, -1, -1), (m, rank), kind)
        moved, size = ((V - before) ** 2).sum(), (V * V).sum()
        np.persist(U, V, moved, size)
        if float(moved) <= tol * tol * float(size):
            break
    objective = _implicit(X, U, V, reg, alpha) if implicit else _explicit(X, U, V, reg)
    return Factors(U, V, float(objective), n_iter)


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
    ratings = sparse.csr_array(ratings)
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


class Recommender(Estimator):
    """Predicts ratings from factors."""

    _learned: ClassVar[str] = "item_factors_"

    def predict(self, users: Any, items: Any) -> Any:
        """The ratings of pairs of users and items, given by their numbers, shape (n_pairs,)."""
        self._require_fit()
        return (np.take(self.user_factors_, users, axis=0) * np.take(self.item_factors_, items, axis=0)).sum(
            axis=1
        )


@dataclass(eq=False, repr=False)
class ALS(Recommender):
    """Alternating least squares as an estimator; see `als`.

    Attributes after `fit`: `user_factors_`, `item_factors_`, `objective_`, `n_iter_`.
    """

    rank: int = 10
    _: KW_ONLY
    reg: float = 0.1
    implicit: bool = False
    alpha: float = 40.0
    max_iter: int = 15
    tol: float = 1e-4
    random_state: int | None = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factorize ratings; `y` is ignored."""
        del y
        return self._learn(als(X, **self._options()))
