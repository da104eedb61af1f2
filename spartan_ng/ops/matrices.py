"""Functions of matrices: one row for each of NumPy's decompositions, applied to every matrix of a stack.

A stack is cut along its leading axes, a matrix never. The results of one matrix lie one after the other in a
flat line, so that a decomposition into several matrices is one array; the line's last element says whether
the function failed, because a worker must not raise what NumPy raises at the call. Functions that never fail
have no such mark: their lines, one behind the other, are the stack of their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct


class MatrixFunction(Struct, frozen=True):
    """A function of matrices.

    Parameters
    ----------
    name : NumPy's name, or what a blocked algorithm calls its step
    function : of stacks of matrices; gives one array, or a tuple of them, each a stack, too
    failure : what NumPy says where the function fails; "" where it never does
    scipys : whether it calls the LAPACK that SciPy brings
    """

    name: str
    function: Callable[..., Any]
    failure: str = "Singular matrix"
    scipys: bool = False


_AT_ONCE_BYTES = 1 << 20
"""Larger results are made matrix by matrix: LAPACK copies what it works on several times."""


def evaluate_matrices(
    name: str,
    matrices: Sequence[Any],
    stacked: Sequence[bool],
    batch: tuple[int, ...],
    length: int,
    dtype: np.dtype[Any],
    keywords: tuple[tuple[str, Any], ...],
) -> Any:
    """The lines of results of a stack: `length` elements for each matrix, the last one 1 for a failure, if
    the function may fail."""
    out = np.zeros((*batch, length), dtype)
    row, options = MATRIX_FUNCTIONS[name], dict(keywords)
    one_by_one = out.nbytes > _AT_ONCE_BYTES and len(batch) > 0
    for index in np.ndindex(*batch) if one_by_one else [()]:
        own = [m[index] if follows else m for m, follows in zip(matrices, stacked, strict=True)]
        _fill(out[index], row, own, options)
    return out


def _fill(lines: Any, row: MatrixFunction, matrices: Sequence[Any], options: dict[str, Any]) -> None:
    """Put the results of one stack into its lines."""
    try:
        parts = row.function(*matrices, **options)
    except np.linalg.LinAlgError:
        lines[..., -1] = 1
        return
    first = 0
    for part in parts if isinstance(parts, tuple) else (parts,):
        flat = np.asarray(part).reshape((*lines.shape[:-1], -1))
        lines[..., first : first + flat.shape[-1]] = flat
        first += flat.shape[-1]


def _lu(panel: Any) -> tuple[Any, Any, Any]:
    """Partial pivoting on a tall matrix: packed factors, where each row comes from, and the sign of that."""
    from scipy import linalg

    factors, swaps, _ = linalg.get_lapack_funcs("getrf", (panel,))(panel)
    rows = np.arange(panel.shape[0])
    for i, j in enumerate(swaps):
        rows[[i, j]] = rows[[j, i]]
    odd = np.count_nonzero(swaps != np.arange(len(swaps))) % 2
    return factors, rows, np.asarray(-1.0 if odd else 1.0)


def _triangular(factor: Any, columns: Any, lower: bool, unit: bool = False) -> Any:
    """The solution of a triangular system, which is not singular, for right-hand sides that lie in rows."""
    from scipy import linalg

    rows = columns.reshape(-1, columns.shape[-1])
    found = linalg.solve_triangular(factor, rows.T, lower=lower, unit_diagonal=unit, check_finite=False)
    return found.T.reshape(columns.shape)


def _lstsq(a: Any, b: Any, rcond: Any) -> tuple[Any, ...]:
    """The solution, the residuals (zeros where NumPy gives none), the rank, the singular values."""
    x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
    return x, residuals if residuals.size else np.zeros(b.shape[-1]), np.asarray(rank), s


def _householder_signs(top: Any) -> Any:
    """The signs that LAPACK's reflections give the diagonal of R, from the top of a Q whose R has none.

    Ballard et al., "Reconstructing Householder vectors from tall-skinny QR" (IPDPS 2014), Algorithm 5:
    elimination on Q - diag(s), each s chosen against the element that it meets.
    """
    work = np.array(top)
    n = len(work)
    signs = np.empty(n)
    for j in range(n):
        signs[j] = -1.0 if work[j, j].real >= 0 else 1.0
        work[j, j] -= signs[j]
        work[j + 1 :, j] /= work[j, j]
        work[j + 1 :, j + 1 :] -= np.outer(work[j + 1 :, j], work[j, j + 1 :])
    return signs


def _qr_positive(*beside: Any) -> tuple[Any, Any]:
    """Q and R with a diagonal of R that is real and not negative, of matrices beside each other."""
    q, r = np.linalg.qr(_together(beside))
    phase = _phase(r)
    q *= phase[..., None, :]
    return q, np.conjugate(phase)[..., :, None] * r


def _r_positive(*beside: Any) -> Any:
    """R of `_qr_positive`."""
    r = np.linalg.qr(_together(beside), "r")
    return np.conjugate(_phase(r))[..., :, None] * r


def _together(beside: Sequence[Any]) -> Any:
    """In double precision, as LAPACK gets it from NumPy, which rounds the result: that is factored again."""
    found = beside[0] if len(beside) == 1 else np.concatenate(beside, -1)
    return found.astype(np.result_type(found, np.float64), copy=False)


def _phase(r: Any) -> Any:
    """By what R's diagonal differs from its size."""
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    size = np.abs(diagonal)
    return np.where(size == 0, 1, diagonal / np.where(size == 0, 1, size))


def _first_times(lines: Any, m: Any, rows: int) -> Any:
    """The matrix of so many rows that lines begin with, times another."""
    (_, length), columns = lines.shape[-2:], m.shape[-2]
    assert rows * columns <= length, "the lines have more behind it"
    left = lines[..., 0, : rows * columns].reshape((*lines.shape[:-2], rows, columns))
    return np.matmul(left, m)


def _poly(zeros: Any) -> Any:
    """Coefficients from roots, for every line of them."""
    return np.stack([np.poly(line) for line in zeros.reshape(-1, zeros.shape[-1])])


def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """Quotients and remainders, in the common dtype; these keep the length of `u`."""
    kind = np.result_type(u, v)
    quotients, rests = [], []
    for a, b in zip(u.reshape(-1, u.shape[-1]), v.reshape(-1, v.shape[-1]), strict=True):
        m, n = len(a) - 1, len(b) - 1
        quotient, rest = np.zeros(max(m - n + 1, 1), kind), a.astype(kind)
        scale = 1.0 / b[0]
        for k in range(m - n + 1):
            factor = scale * rest[k]
            quotient[k] = factor
            rest[k : k + n + 1] -= factor * b
        quotients.append(quotient)
        rests.append(rest)
    return np.stack(quotients), np.stack(rests)


_DIVERGED = "Eigenvalues did not converge"

_ROWS = [
    MatrixFunction("inv", np.linalg.inv),
    MatrixFunction("solve", np.linalg.solve),
    MatrixFunction("det", np.linalg.det),
    MatrixFunction("slogdet", np.linalg.slogdet),
    MatrixFunction("cholesky", np.linalg.cholesky, "Matrix is not positive definite"),
    MatrixFunction("eig", np.linalg.eig, _DIVERGED),
    MatrixFunction("eigvals", np.linalg.eigvals, _DIVERGED),
    MatrixFunction("eigh", np.linalg.eigh, _DIVERGED),
    MatrixFunction("eigvalsh", np.linalg.eigvalsh, _DIVERGED),
    MatrixFunction("svd", np.linalg.svd, "SVD did not converge"),
    MatrixFunction("svdvals", np.linalg.svdvals, "SVD did not converge"),
    MatrixFunction("qr", np.linalg.qr),
    MatrixFunction("lstsq", _lstsq, "SVD did not converge in Linear Least Squares"),
    MatrixFunction("pinv", np.linalg.pinv, "SVD did not converge"),
    # polynomials: a line of coefficients, or of roots, is a matrix of one axis
    MatrixFunction("poly", _poly),
    MatrixFunction("polydiv", _polydiv),
    # the steps of blocked algorithms
    MatrixFunction("qr positive", _qr_positive, ""),
    MatrixFunction("r positive", _r_positive, ""),
    MatrixFunction("first times", _first_times, ""),
    MatrixFunction("householder signs", _householder_signs, ""),
    MatrixFunction("lu", _lu, scipys=True),
    MatrixFunction("triangular", _triangular, scipys=True),
]

MATRIX_FUNCTIONS: dict[str, MatrixFunction] = {row.name: row for row in _ROWS}
"""Every function of matrices by its name."""
