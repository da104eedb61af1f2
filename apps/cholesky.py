"""Cholesky's factor of a positive definite matrix, block column by block column.

Spartan (ATC '15), section 5; the right-looking algorithm (Golub and Van Loan, section 4.2.6). The driver
factors a small diagonal block; the column below it, and what the column takes from the rest, are products
on the workers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps.estimator import Estimator, points, require_positive
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
        corner = _factored(rest[:size, :size].compute(), (number - 1) * block)
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
class Cholesky(Estimator):
    """Cholesky's factor as an estimator, with which to solve systems; see `cholesky`.

    Attributes after `fit`: `factor_`, `log_determinant_`, `n_features_in_`.
    """

    _learned: ClassVar[str] = "factor_"

    _: KW_ONLY
    block: int = 512

    def fit(self, X: Any, y: Any = None) -> Self:
        """Factor X; `y` is ignored."""
        del y
        found = cholesky(X, **self._options())
        return self._learn(found, found.factor.shape[0])

    def solve(self, b: Any) -> Any:
        """The x of X @ x = b, block row by block row; a NumPy array of b's shape."""
        self._require_fit()
        L = self.factor_
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
