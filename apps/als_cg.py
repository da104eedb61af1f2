"""Weighted squared loss factorization by alternating conjugate gradients (ALS-CG).

Fusion plans (PVLDB '18), Table 2 and expression (1); the loss is FuseME's Fig.
1. A step's ((X != 0) * (S @ V.T)) @ V touches the ratings that exist and never makes the dense product; U,
V and the directions stay with the workers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import spartan_ng as np
from spartan_ng.apps.als import Factors, Recommender, weighted_penalty, weighted_squared_loss
from spartan_ng.apps.checks import points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations


def als_cg(
    X: Any,
    rank: int = 20,
    *,
    reg: float = 1e-3,
    max_iter: int = 100,
    max_inner: int | None = None,
    tol: float = 1e-3,
    seed: int | None = None,
) -> Factors:
    """Factorize a matrix of ratings (0: not rated) by conjugate gradients.

    Parameters
    ----------
    X : ratings, shape (n_users, n_items), usually sparse
    rank : number of factors of a user or an item
    reg : strength of the penalty, which counts a row's factors as often as it has ratings
    max_iter : upper bound of the number of times that users and items take turns
    max_inner : upper bound of the conjugate gradients of a turn; default is the rank
    tol : stop when a turn lowers the objective by at most this share, or its gradient's square falls to it
    seed : seed of the start

    Raises
    ------
    ValueError : X is not two-dimensional, or an option that is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    inner = rank if max_inner is None else max_inner
    require_positive("als_cg", rank=rank, reg=reg, max_iter=max_iter, max_inner=inner)
    random = np.random.default_rng(seed)
    U = random.random((X.shape[0], rank)).astype(X.dtype) - 0.5
    V = random.random((X.shape[1], rank)).astype(X.dtype) - 0.5
    users, items = np.persist(reg * (X != 0).sum(axis=1)[:, None], reg * (X != 0).sum(axis=0)[:, None])
    objective = float("inf")
    loop = Iterations("ALS-CG", max_iter, tol)
    for _ in loop:
        U = _turn(X, U, V, users, inner, tol)
        V = _turn(X.T, V, U, items, inner, tol)
        before = objective
        objective = float(weighted_squared_loss(X, U, V) + reg * weighted_penalty(X, U, V)) / 2
        require_finite("als_cg", X, objective)
        loop.saw(objective)
        loop.converged = before - objective <= tol * before < float("inf")
    return Factors(U, V, objective, loop.n_iter, loop.converged, loop.history)


def _turn(X: Any, U: Any, V: Any, weight: Any, inner: int, tol: float) -> Any:
    """U after conjugate gradients on the loss and its penalty, V fixed."""
    rated = X != 0
    R = (rated * (X - U @ V.T)) @ V - weight * U
    S, square = R, (R * R).sum()
    np.persist(R, square)
    first = float(square)
    for _ in range(inner):
        if float(square) <= tol * first:
            break
        curved = (rated * (S @ V.T)) @ V + weight * S
        length = square / (S * curved).sum()
        U, R = U + length * S, R - length * curved
        before, square = square, (R * R).sum()
        S = R + square / before * S
        np.persist(U, R, S, square)
    return U


@dataclass(eq=False, repr=False)
class ALSCG(Recommender):
    """Factorization by alternating conjugate gradients as an estimator; see `als_cg`.

    Attributes after `fit`: `user_factors_`, `item_factors_`, `objective_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(als_cg)

    rank: int = 20
    _: KW_ONLY
    reg: float = 1e-3
    max_iter: int = 100
    max_inner: int | None = None
    tol: float = 1e-3
    random_state: int | None = None
