"""Linear systems A @ x = b by iteration: conjugate gradients and Jacobi's method.

Spartan (ATC '15), section 5; Golub and Van Loan, chapters 11.2 and 11.3. An iteration reads A, dense or
sparse, once where it lies; vectors and the scalars made of them stay lazy but for the residual's norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import sparse

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import points, require_finite, require_positive, targets
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Regressor
from spartan_ng.apps.pictures import Panel


@dataclass(frozen=True, slots=True)
class Solution:
    """What `conjugate_gradient` and `jacobi` find.

    Parameters
    ----------
    x : shape (n,); on the workers
    residual : |b - A @ x| / |b|
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the residual after each
    """

    x: Any
    residual: float
    n_iter: int
    converged: bool
    history: Any


def conjugate_gradient(A: Any, b: Any, *, max_iter: int = 1000, tol: float = 1e-8) -> Solution:
    """Solve a symmetric, positive definite system.

    Parameters
    ----------
    A : the matrix, shape (n, n), dense or sparse
    b : the right side, shape (n,)
    max_iter : upper bound of the number of iterations
    tol : stop when the residual's norm is at most this share of b's

    Raises
    ------
    ValueError : shapes do not fit, or A turns out not to be positive definite

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    A, b, size = _system("conjugate_gradient", A, b, max_iter)
    x, r = np.zeros_like(b), b
    p, square = r, (r * r).sum().persist()
    loop = Iterations("conjugate gradients", max_iter, tol)
    loop.converged = size == 0
    for _ in loop:
        q = A @ p
        bend = (p * q).sum()
        length = square / bend
        x, r = x + length * p, r - length * q
        before, square = square, (r * r).sum()
        p = r + square / before * p
        np.persist(x, r, p, square, bend)
        if float(bend) <= 0:
            raise ValueError(f"conjugate_gradient: A is not positive definite, p @ A @ p is {float(bend)}")
        loop.saw(float(square) ** 0.5 / size)
        loop.converged = float(square) ** 0.5 <= tol * size
    residual = float(square) ** 0.5 / (size or 1.0)
    return Solution(x, residual, loop.n_iter, loop.converged, loop.history)


def jacobi(A: Any, b: Any, *, max_iter: int = 1000, tol: float = 1e-8) -> Solution:
    """Solve a system whose matrix is diagonally dominant.

    Parameters
    ----------
    A : the matrix, shape (n, n), dense or sparse
    b : the right side, shape (n,)
    max_iter : upper bound of the number of iterations
    tol : stop when the residual's norm is at most this share of b's

    Raises
    ------
    ValueError : shapes do not fit, a zero on the diagonal, or residuals that grow without bound

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    A, b, size = _system("jacobi", A, b, max_iter)
    diagonal = _diagonal(A).persist()
    if bool((diagonal == 0).any()):
        raise ValueError("jacobi: A has a zero on its diagonal")
    x, r, norm = np.zeros_like(b), b, size
    loop = Iterations("Jacobi's method", max_iter, tol)
    loop.converged = size == 0
    for _ in loop:
        x = x + r / diagonal
        r = b - A @ x
        square = (r * r).sum()
        np.persist(x, r, square)
        norm = float(square) ** 0.5
        if not norm < 1e100 * size:
            raise ValueError("jacobi: the iteration diverges; A is not diagonally dominant enough")
        loop.saw(norm / size)
        loop.converged = norm <= tol * size
    return Solution(x, norm / (size or 1.0), loop.n_iter, loop.converged, loop.history)


def _system(name: str, A: Any, b: Any, max_iter: int) -> tuple[Any, Any, float]:
    """A square matrix, a vector that fits it, and the vector's norm."""
    A = points(A)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"{name}: A has shape {A.shape}; it must be square")
    require_positive(name, max_iter=max_iter)
    b = targets(name, A, b)
    size = float((b * b).sum()) ** 0.5
    require_finite(name, A, size)
    return A, b, size


def _diagonal(A: Any) -> Any:
    if A.format == "dense":
        return np.diagonal(A)
    return (A * np.asarray(sparse.eye_array(A.shape[0], dtype=A.dtype, format="csr"))).sum(axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class _Solver(Regressor):
    """What both estimators share: they fit x to A and b, and predict A @ x."""

    _learned: ClassVar[str] = "x_"
    _history: ClassVar[str] = "relative residual"
    _sparse: ClassVar[bool] = True

    max_iter: int = 1000
    tol: float = 1e-8

    def predict(self, X: Any) -> Any:
        """The right sides of further rows, shape (n_rows,)."""
        return self._seen(X) @ self.x_

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [pictures.line(self.x_, "solution", "element")]


class ConjugateGradient(_Solver):
    """Conjugate gradients as an estimator; see `conjugate_gradient`.

    Attributes after `fit`: `x_`, `residual_`, `n_iter_`, `converged_`, `history_`, `n_features_in_`.
    """

    _find = staticmethod(conjugate_gradient)


class Jacobi(_Solver):
    """Jacobi's method as an estimator; see `jacobi`.

    Attributes after `fit`: `x_`, `residual_`, `n_iter_`, `converged_`, `history_`, `n_features_in_`.
    """

    _find = staticmethod(jacobi)
