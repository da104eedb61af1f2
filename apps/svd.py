"""The leading singular triplets of a matrix by Lanczos's method, one pass over the matrix an iteration.

Spartan (ATC '15), section 5; Golub and Van Loan, section 10.1. Lanczos's three-term recurrence runs on A.T
@ A (on A @ A.T where A has fewer rows than columns): the matrix, dense or sparse, stays with the workers,
the vectors of the shorter side are orthogonalized again and again on the driver. Singular values far below
the largest lose digits, as in everything that squares them.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.design import Design
from spartan_ng.apps.estimator import Transformer
from spartan_ng.apps.pictures import Panel


@dataclass(frozen=True, slots=True)
class Decomposition:
    """What `svd`, `ssvd` find: A is nearly (left * values) @ right.

    Parameters
    ----------
    left : left singular vectors, shape (n_rows, n_components); on the workers
    values : singular values, descending, shape (n_components,)
    right : right singular vectors, shape (n_components, n_columns); on the workers
    n_iter : passes over the matrix
    converged : whether `tol` ended them; None where their number was given
    history : the error bound of the squared values after each, as a share of the largest
    """

    left: Any
    values: Any
    right: Any
    n_iter: int
    converged: bool | None
    history: Any


def svd(
    A: Any, n_components: int = 2, *, tol: float = 1e-10, max_iter: int = 500, seed: int | None = None
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

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    A = points(A)
    if not 1 <= n_components <= min(A.shape):
        raise ValueError(f"svd: a matrix of shape {A.shape} has no {n_components} singular values")
    require_positive("svd", max_iter=max_iter)
    if A.shape[0] < A.shape[1]:
        vectors, squares, loop = lanczos(Design(A.T, False), n_components, tol, max_iter, seed)
        values = singular_values(squares, A)
        left, right = np.asarray(vectors), directions(A.T @ vectors, values).T.persist()
    else:
        vectors, squares, loop = lanczos(Design(A, False), n_components, tol, max_iter, seed)
        values = singular_values(squares, A)
        left, right = directions(A @ vectors, values).persist(), np.asarray(vectors.T)
    return Decomposition(left, values, right, loop.n_iter, loop.converged, loop.history)


def singular_values(squares: Any, A: Any) -> Any:
    """The roots of the leading eigenvalues of A.T @ A; 0 for what rounding errors of that may have made."""
    noise = squares[:1] * float(np.finfo(A.dtype).eps) * max(A.shape)
    return np.where(squares > noise, squares, 0).compute() ** 0.5


def directions(images: Any, values: Any) -> Any:
    """What A makes of singular vectors, at unit length; of a singular value of 0 there is nothing left."""
    return images * np.asarray((values > 0) / (values + (values == 0)))


def lanczos(
    A: Design, count: int, tol: float, max_iter: int, seed: int | None
) -> tuple[Any, Any, Iterations]:
    """The leading eigenvectors (columns, count) and eigenvalues of A.T @ A, descending, and how it went."""
    columns = A.shape[1]
    random = np.random.default_rng(seed)
    basis = [_unit(random.standard_normal(columns).compute())]
    diagonal: list[float] = []
    beside: list[float] = []
    loop = Iterations("Lanczos's method", min(max_iter, columns), tol)
    for passes in loop:
        v = np.asarray(basis[-1].astype(A.dtype))
        w = A.turned_times(A.times(v)).compute().astype(float)
        diagonal.append(float(w @ basis[-1]))
        w = _without(w, basis)
        rest = float(w @ w) ** 0.5
        require_finite("svd", A, diagonal[-1])
        values, vectors = linalg.eigh_tridiagonal(diagonal, beside)
        bound = rest * float(abs(vectors[-1, -count:]).max())
        loop.saw(bound / (float(values[-1]) or 1.0))
        loop.converged = passes == columns or (passes >= count and bound <= tol * values[-1])
        if loop.converged:
            continue
        if rest <= 1e-14 * max(diagonal):  # an invariant subspace: go on in another
            w, rest = _without(random.standard_normal(columns).compute(), basis), 0.0
        basis.append(_unit(w))
        beside.append(rest)
    chosen = vectors[:, : -count - 1 : -1]
    return (
        np.stack(basis[: len(chosen)], axis=1).compute() @ chosen,
        values[: -count - 1 : -1].clip(0),
        loop,
    )


def _without(w: Any, basis: list[Any]) -> Any:
    """What is left of a vector without its parts along the basis; twice is enough (Parlett)."""
    for v in basis + basis:
        w = w - float(w @ v) * v
    return w


def _unit(v: Any) -> Any:
    return v / float(v @ v) ** 0.5


class Truncated(Transformer):
    """What the estimators of singular values share."""

    _learned = "right_"
    _history: ClassVar[str] = "error bound, as a share of the largest"
    _sparse: ClassVar[bool] = True

    def transform(self, X: Any) -> Any:
        """Points in terms of the right singular vectors, shape (n_points, n_components)."""
        return self._seen(X) @ self.right_.T

    def score(self, X: Any, y: Any = None) -> float:
        """The share of the squares of X that lies along the right singular vectors: at most 1."""
        del y
        kept, whole = np.compute((self.transform(X) ** 2).sum(), (points(X) ** 2).sum())
        return min(float(kept) / float(whole), 1.0) if whole > 0 else 1.0

    def inverse_transform(self, Z: Any) -> Any:
        """The rows with these coordinates, shape (n_rows, n_columns)."""
        return array(Z) @ self.right_

    def _panels(self, *data: Any) -> list[Panel]:
        total = float((points(data[0]) ** 2).sum()) if data else None
        return [
            pictures.spectrum(self.values_, "singular value"),
            pictures.spectrum(self.values_**2, "squared singular value", total),
        ]


@dataclass(eq=False, repr=False)
class SVD(Truncated):
    """The truncated singular value decomposition as an estimator; see `svd`.

    Attributes after `fit`: `left_`, `values_`, `right_`, `n_iter_`, `converged_`, `history_`,
    `n_features_in_`.
    """

    _find = staticmethod(svd)

    n_components: int = 2
    _: KW_ONLY
    tol: float = 1e-10
    max_iter: int = 500
    random_state: int | None = None
