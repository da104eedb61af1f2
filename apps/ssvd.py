"""The leading singular triplets of a matrix from its product with a few random vectors.

Spartan (ATC '15), section 5; Halko, Martinsson and Tropp (2011). A tall basis is made orthonormal by the
Cholesky factor of its small Gram matrix, twice, so that nothing tall ever leaves the workers.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps.checks import points, require_finite
from spartan_ng.apps.svd import Decomposition, Truncated, directions, singular_values
from spartan_ng.progress import steps


def ssvd(
    A: Any, n_components: int = 2, *, n_oversamples: int = 10, n_passes: int = 5, seed: int | None = None
) -> Decomposition:
    """Approximate the largest singular values of a matrix, and their vectors.

    Parameters
    ----------
    A : the matrix, shape (n_rows, n_columns), dense or sparse
    n_components : how many singular values
    n_oversamples : how many random vectors more
    n_passes : power iterations, each of two passes; more of them separate slowly falling values
    seed : seed of the random vectors

    Raises
    ------
    ValueError : A is not two-dimensional, or has no so many singular values
    """
    A = points(A)
    if not 1 <= n_components <= min(A.shape):
        raise ValueError(f"ssvd: a matrix of shape {A.shape} has no {n_components} singular values")
    if n_oversamples < 0 or n_passes < 0:
        raise ValueError(f"ssvd: n_oversamples={n_oversamples} or n_passes={n_passes} is negative")
    width = min(n_components + n_oversamples, *A.shape)
    start = np.random.default_rng(seed).standard_normal((A.shape[1], width)).astype(A.dtype)
    Q = orthonormal(A @ start)
    for _ in steps(n_passes, "SSVD"):
        Q = orthonormal(A @ orthonormal(A.T @ Q))
    B = (A.T @ Q).persist()
    squares, turn = linalg.eigh((B.T @ B).compute())
    require_finite("ssvd", A, squares)
    squares, turn = squares[::-1][:n_components].clip(0), turn[:, ::-1][:, :n_components]
    values = singular_values(squares, A)
    left, right = np.persist(Q @ turn * np.asarray(values > 0), directions(B @ turn, values).T)
    return Decomposition(left, values, right, 2 * n_passes + 2, None, np.zeros(0).compute())


def orthonormal(Y: Any) -> Any:
    """A basis, shape (n, k), of the space of Y's k columns; evaluated, n may be large and k not.

    Columns that depend on the others to working precision become columns of no weight (near 0).
    """
    for _ in range(2):
        values, vectors = linalg.eigh((Y.T @ Y).compute())
        floor = max(values[-1], 1e-300) * len(values) * 1e-15
        Y = Y @ (vectors / values.clip(floor) ** 0.5)
        Y.persist()
    return Y


@dataclass(eq=False, repr=False)
class SSVD(Truncated):
    """The stochastic singular value decomposition as an estimator; see `ssvd`.

    Attributes after `fit`: `left_`, `values_`, `right_`, `n_iter_`, `n_features_in_`.
    """

    _find = staticmethod(ssvd)

    n_components: int = 2
    _: KW_ONLY
    n_oversamples: int = 10
    n_passes: int = 5
    random_state: int | None = None
