"""The leading singular triplets of a matrix by Lanczos's method, one pass over the matrix an iteration.

Spartan (ATC '15), section 5; Golub and Van Loan, section 10.1. Lanczos's three-term recurrence runs on A.T
@ A (on A @ A.T where A has fewer rows than columns): the matrix, dense or sparse, stays with the workers,
the vectors of the shorter side are orthogonalized again and again on the driver. Singular values far below
the largest lose digits, as in everything that squares them.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps.estimator import Transformer, points, require_positive
from spartan_ng.progress import steps


@dataclass(frozen=True, slots=True)
class Decomposition:
    """What `svd`, `ssvd` find: A is nearly (left * values) @ right.

    Parameters
    ----------
    left : left singular vectors, shape (n_rows, n_components); on the workers
    values : singular values, descending, shape (n_components,)
    right : right singular vectors, shape (n_components, n_columns); on the workers
    n_iter : passes over the matrix
    """

    left: Any
    values: Any
    right: Any
    n_iter: int


def svd(
    A: Any, n_components: int = 6, *, tol: float = 1e-10, max_iter: int = 500, seed: int | None = 0
) -> Decomposition:
    """Find the largest singular values of a matrix, and their vectors.

    Parameters
    ----------
    A : the matrix, shape (n_rows, n_columns), dense or sparse
    n_components : how many singular values
    tol : stop when the error bound of each squared singular value is at most this share of the largest
    max_iter : upper bound of the number of passes
    seed : seed of the start

    Raises
    ------
    ValueError : A is not two-dimensional, or has no so many singular values
    """
    A = points(A)
    if not 1 <= n_components <= min(A.shape):
        raise ValueError(f"svd: a matrix of shape {A.shape} has no {n_components} singular values")
    require_positive("svd", max_iter=max_iter, tol=tol)
    if A.shape[0] < A.shape[1]:
        vectors, squares, passes = _lanczos(A.T, n_components, tol, max_iter, seed)
        values = np.sqrt(squares).compute()
        right = ((A.T @ vectors) / _safe(values)).T
        return Decomposition(np.asarray(vectors), values, right.persist(), passes)
    vectors, squares, passes = _lanczos(A, n_components, tol, max_iter, seed)
    values = np.sqrt(squares).compute()
    left = (A @ vectors) / _safe(values)
    return Decomposition(left.persist(), values, np.asarray(vectors.T), passes)


def principal(A: Any, count: int, tol: float, max_iter: int, seed: int | None) -> tuple[Any, Any]:
    """The leading eigenvectors (n_columns, count) and eigenvalues of A.T @ A, descending."""
    vectors, values, _ = _lanczos(A, count, tol, max_iter, seed)
    return vectors, values


def _safe(values: Any) -> Any:
    """Singular values to divide by: where one is 0, its vector becomes 0."""
    return np.asarray(values + (values == 0))


def _lanczos(A: Any, count: int, tol: float, max_iter: int, seed: int | None) -> tuple[Any, Any, int]:
    """Eigenvectors and eigenvalues of A.T @ A, and how many passes found them."""
    columns = A.shape[1]
    random = np.random.default_rng(seed)
    basis = [_unit(random.standard_normal(columns).compute())]
    diagonal: list[float] = []
    beside: list[float] = []
    for passes in steps(min(max_iter, columns), "Lanczos"):
        v = np.asarray(basis[-1].astype(A.dtype))
        w = ((A @ v) @ A).compute().astype(float)
        diagonal.append(float(w @ basis[-1]))
        w = _without(w, basis)
        rest = float(w @ w) ** 0.5
        values, vectors = linalg.eigh_tridiagonal(diagonal, beside)
        if passes >= count and (rest * abs(vectors[-1, -count:]) <= tol * values[-1]).all():
            break
        if rest <= 1e-14 * max(diagonal):  # an invariant subspace: go on in another
            w, rest = _without(random.standard_normal(columns).compute(), basis), 0.0
        basis.append(_unit(w))
        beside.append(rest)
    chosen = vectors[:, : -count - 1 : -1]
    return (
        np.stack(basis[: len(chosen)], axis=1).compute() @ chosen,
        values[: -count - 1 : -1].clip(0),
        passes,
    )


def _without(w: Any, basis: list[Any]) -> Any:
    """What is left of a vector without its parts along the basis; twice is enough (Parlett)."""
    for v in basis + basis:
        w = w - float(w @ v) * v
    return w


def _unit(v: Any) -> Any:
    return v / float(v @ v) ** 0.5


@dataclass(eq=False, repr=False)
class SVD(Transformer):
    """The truncated singular value decomposition as an estimator; see `svd`.

    Attributes after `fit`: `left_`, `values_`, `right_`, `n_iter_`, `n_features_in_`.
    """

    _learned = "right_"

    n_components: int = 6
    _: KW_ONLY
    tol: float = 1e-10
    max_iter: int = 500
    random_state: int | None = 0

    def fit(self, X: Any, y: Any = None) -> Self:
        """Decompose X; `y` is ignored."""
        del y
        found = svd(X, **self._options())
        return self._learn(found, found.right.shape[1])

    def transform(self, X: Any) -> Any:
        """Points in terms of the right singular vectors, shape (n_points, n_components)."""
        return self._seen(X) @ self.right_.T
