"""Cholesky's factor of a positive definite matrix, block column by block column.

Spartan (ATC '15), section 5; the right-looking algorithm (Golub and Van Loan, section 4.2.6). The driver
factors a small diagonal block; the column below it, and what the column takes from the rest, are products
on the workers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import points, require_finite, require_positive
from spartan_ng.apps.estimator import Unsupervised
from spartan_ng.apps.pictures import Panel
from spartan_ng.progress import steps


@dataclass(frozen=True, slots=True)
class Factor:
    """What `cholesky` finds.

    Parameters
    ----------
    factor : the lower triangular L of A = L @ L.T, shape (n, n); on the workers
    log_determinant : the logarithm of A's determinant
    """

    factor: Any
    log_determinant: float


def cholesky(A: Any, *, block: int = 512) -> Factor:
    """Factor a symmetric, positive definite matrix.

    Parameters
    ----------
    A : the matrix, shape (n, n); its lower triangle is read
    block : columns that are factored together

    Raises
    ------
    ValueError : A is not square or not positive definite, or block is not positive
    """
    A = points(A)
    n = A.shape[0]
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"cholesky: A has shape {A.shape}; it must be square")
    require_positive("cholesky", block=block, n=n)
    columns = []
    rest, half_log = A, 0.0
    for number in steps(-(-n // block), "Cholesky"):
        size = min(block, rest.shape[0])
        corner = rest[:size, :size].compute()
        require_finite("cholesky", A, corner)
        corner = _factored(corner, (number - 1) * block)
        half_log += float(np.log(corner.diagonal()).sum())
        inverse = linalg.solve_triangular(corner, np.eye(size, dtype=A.dtype).compute(), lower=True)
        below = rest[size:, :size] @ inverse.T
        rest = rest[size:, size:] - below @ below.T
        np.persist(below, rest)
        above = np.zeros((n - size - rest.shape[0], size), A.dtype)
        columns.append(np.concatenate([above, corner, below], axis=0))
    return Factor(np.concatenate(columns, axis=1).persist(), 2 * half_log)


def _factored(corner: Any, first: int) -> Any:
    try:
        return linalg.cholesky(corner, lower=True)
    except linalg.LinAlgError as error:
        raise ValueError(f"cholesky: A is not positive definite (from column {first} on: {error})") from error


@dataclass(eq=False, repr=False)
class Cholesky(Unsupervised):
    """Cholesky's factor as an estimator, with which to solve systems; see `cholesky`.

    Attributes after `fit`: `factor_`, `log_determinant_`, `n_features_in_`.
    """

    _find = staticmethod(cholesky)
    _learned: ClassVar[str] = "factor_"

    _: KW_ONLY
    block: int = 512

    def solve(self, b: Any) -> Any:
        """The x of X @ x = b, block row by block row; a NumPy array of b's shape."""
        self._require_fit()
        L = np.asarray(self.factor_)
        n = L.shape[0]
        x = np.asarray(b).astype(L.dtype).compute()
        if x.shape[:1] != (n,):
            raise ValueError(f"Cholesky: b has shape {x.shape}, the matrix {L.shape}")
        starts = range(0, n, self.block)
        for i in starts:
            here = slice(i, i + self.block)
            below = slice(i + self.block, n)
            x[here] = linalg.solve_triangular(L[here, here].compute(), x[here], lower=True)
            x[below] -= (L[below, here] @ x[here]).compute()
        for i in reversed(starts):
            here = slice(i, i + self.block)
            above = slice(0, i)
            x[here] = linalg.solve_triangular(L[here, here].compute(), x[here], lower=True, trans="T")
            x[above] -= (L[here, above].T @ x[here]).compute()
        return x

    def predict(self, X: Any) -> Any:
        """For each row b of X the x with A @ x = b, shape (n_rows, n)."""
        return np.asarray(self.solve(self._seen(X).T)).T

    def score(self, X: Any, y: Any = None) -> float:
        """1 less the relative error of L @ L.T, in Frobenius's norm."""
        del y
        L, A = self.factor_, self._seen(X)
        lower = np.tril(A)
        lost, whole = np.compute(((np.tril(L @ L.T) - lower) ** 2).sum(), (lower * lower).sum())
        return 1.0 - float((lost / whole) ** 0.5)

    def quality(self, *data: Any) -> dict[str, float]:
        """The relative error of L @ L.T."""
        return {"relative error": 1.0 - self.score(*data)}

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [pictures.matrix(self.factor_, "size of the factor's elements")]
