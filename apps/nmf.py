"""Non-negative factorizations by multiplicative updates: GNMF for squares, KL-NMF for divergences.

FuseME (SIGMOD '22), Eq. 6 and sections 6.2-6.4; Lee and Seung (2000). X, usually sparse, is only ever met
by X @ H.T, W.T @ X and X / (W @ H) where it is not 0; W @ H is never made. The second factor sees the new
first one, so that no update raises the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Transformer, explained
from spartan_ng.apps.pictures import Panel

EPS = 1e-15
"""Added to what is divided by, or is under a logarithm."""
_LOOK = 10
"""The objective is looked at after so many iterations."""

Update = Callable[[Any, Any, Any], Any]
Objective = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Factors:
    """What `gnmf` and `kl_nmf` find: X is nearly weights @ components; both non-negative, on the workers.

    Parameters
    ----------
    weights : shape (n_rows, n_components)
    components : shape (n_components, n_columns)
    objective : |X - weights @ components|² / 2, or X's divergence from weights @ components
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the objective's root, after every tenth
    """

    weights: Any
    components: Any
    objective: float
    n_iter: int
    converged: bool
    history: Any


def gnmf(
    X: Any,
    n_components: int = 10,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    seed: int | None = None,
    first_weights: Any = None,
    first_components: Any = None,
) -> Factors:
    """Factorize a non-negative matrix by least squares.

    Parameters
    ----------
    X : the matrix, shape (n_rows, n_columns), dense or sparse
    n_components : number of components
    max_iter : upper bound of the number of iterations
    tol : stop when ten iterations lower the objective's root by at most this share of the first one's
    seed : seed of the start
    first_weights, first_components : where to begin, in place of random ones

    Raises
    ------
    ValueError : X is not two-dimensional or has a negative element, or an option is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    start = (first_weights, first_components)
    return _factorize(SQUARES, "gnmf", X, n_components, max_iter, tol, seed, start)


def kl_nmf(
    X: Any,
    n_components: int = 10,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    seed: int | None = None,
    first_weights: Any = None,
    first_components: Any = None,
) -> Factors:
    """Factorize a non-negative matrix by least divergence, that of Kullback and Leibler, generalized.

    Parameters
    ----------
    X : the matrix, shape (n_rows, n_columns), dense or sparse
    n_components : number of components
    max_iter : upper bound of the number of iterations
    tol : stop when ten iterations lower the objective's root by at most this share of the first one's
    seed : seed of the start
    first_weights, first_components : where to begin, in place of random ones

    Raises
    ------
    ValueError : X is not two-dimensional or has a negative element, or an option is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    start = (first_weights, first_components)
    return _factorize(DIVERGENCE, "kl_nmf", X, n_components, max_iter, tol, seed, start)


def squares_update(X: Any, W: Any, H: Any) -> Any:
    """The next W; lazy."""
    return W * (X @ H.T) / (W @ (H @ H.T) + EPS)


def squares(X: Any, W: Any, H: Any) -> Any:
    """Half the squared errors, from small products and one of X; lazy."""
    return ((X * X).sum() - 2 * ((X @ H.T) * W).sum() + ((W.T @ W) * (H @ H.T)).sum()) / 2


def divergence_update(X: Any, W: Any, H: Any) -> Any:
    """The next W; lazy."""
    return W * ((X * (1 / (W @ H + EPS))) @ H.T) / (H.sum(axis=1) + EPS)


def divergence(X: Any, W: Any, H: Any) -> Any:
    """The sum of X * log(X / (W @ H)) - X + W @ H; lazy."""
    own = (X * np.log(np.maximum(X, EPS))).sum() - X.sum()
    return own - (X * np.log(W @ H + EPS)).sum() + W.sum(axis=0) @ H.sum(axis=1)


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """One kind of factorization: the next first factor, and what is minimized."""

    update: Update
    objective: Objective


SQUARES = UpdateRule(squares_update, squares)
DIVERGENCE = UpdateRule(divergence_update, divergence)


def _factorize(
    rule: UpdateRule,
    name: str,
    X: Any,
    n_components: int,
    max_iter: int,
    tol: float,
    seed: int | None,
    start: tuple[Any, Any],
) -> Factors:
    k = n_components
    X = _checked(name, X)
    require_positive(name, n_components=k, max_iter=max_iter)
    random = np.random.default_rng(seed)
    scale = (float(X.sum()) / (X.shape[0] * X.shape[1] * k)) ** 0.5
    shapes = (X.shape[0], k), (k, X.shape[1])
    W, H = (
        abs(scale * random.standard_normal(s)) if a is None else np.asarray(a)
        for s, a in zip(shapes, start, strict=True)
    )
    if (W.shape, H.shape) != shapes:
        raise ValueError(f"{name}: first factors of shapes {W.shape} and {H.shape}, not {shapes}")
    W, H = W.astype(X.dtype), H.astype(X.dtype)
    first = before = _root(rule.objective(X, W, H))
    require_finite(name, X, first)
    loop = Iterations(name, max_iter, tol)
    for n_iter in loop:
        W = rule.update(X, W, H)
        H = rule.update(X.T, H.T, W.T).T
        np.persist(W, H)
        if n_iter % _LOOK == 0:
            now = _root(rule.objective(X, W, H))
            loop.saw(now)
            loop.converged = tol > 0 and before - now <= tol * first
            before = now
    return Factors(W, H, float(rule.objective(X, W, H)), loop.n_iter, loop.converged, loop.history)


def _root(objective: Any) -> float:
    return float(max(float(objective), 0.0) ** 0.5)


def _checked(name: str, X: Any) -> Any:
    X = points(X)
    if X.size and float(X.min()) < 0:
        raise ValueError(f"{name}: Negative values in data: X must have none")
    return X


def weights(rule: UpdateRule, X: Any, H: Any, max_iter: int, tol: float) -> Any:
    """The weights of further rows, given the components; `tol` as for the factorization."""
    scale = (float(X.sum()) / (X.shape[0] * X.shape[1] * H.shape[0])) ** 0.5
    W = np.full((X.shape[0], H.shape[0]), scale, X.dtype)
    first = before = _root(rule.objective(X, W, H))
    loop = Iterations("weights", max_iter, tol)
    for n_iter in loop:
        (W,) = np.persist(rule.update(X, W, H))
        if n_iter % _LOOK == 0:
            now = _root(rule.objective(X, W, H))
            loop.converged = tol > 0 and before - now <= tol * first
            before = now
    return W


@dataclass(eq=False, repr=False)
class _Factorization(Transformer):
    """What the two estimators share: options, and all that follows from `_rule`."""

    _learned = "components_"
    _rule: ClassVar[UpdateRule]
    _sparse: ClassVar[bool] = True
    _positive: ClassVar[bool] = True
    _history: ClassVar[str] = "root of the objective"

    n_components: int = 10
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-4
    random_state: int | None = None
    first_weights: Any = None
    first_components: Any = None

    def transform(self, X: Any) -> Any:
        """The weights of rows, shape (n_rows, n_components)."""
        X = _checked(type(self).__name__, self._seen(X))
        return weights(self._rule, X, self.components_, self.max_iter, self.tol)

    def score(self, X: Any, y: Any = None) -> float:
        """The share of X's squares that the factorization explains: at most 1."""
        del y
        X = self._seen(X)
        return explained(2 * squares(X, self.transform(X), self.components_), (X * X).sum())

    def inverse_transform(self, Z: Any) -> Any:
        """The rows with these weights, shape (n_rows, n_columns)."""
        return array(Z) @ self.components_

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Factorize X, and give its weights."""
        return self.fit(X, y).weights_

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [pictures.images(self.components_, "components")]


class GNMF(_Factorization):
    """Factorization by squares as an estimator; see `gnmf`.

    Attributes after `fit`: `weights_`, `components_`, `objective_`, `n_iter_`, `converged_`, `history_`,
    `n_features_in_`.
    """

    _find = staticmethod(gnmf)
    _rule = SQUARES


class KLNMF(_Factorization):
    """Factorization by divergence as an estimator; see `kl_nmf`.

    Attributes after `fit`: `weights_`, `components_`, `objective_`, `n_iter_`, `converged_`, `history_`,
    `n_features_in_`.
    """

    _find = staticmethod(kl_nmf)
    _rule = DIVERGENCE
