"""Factorizations of one large matrix: of tall ones by reduction trees, of square ones block by block.

No worker needs the whole matrix. TSQR factors groups of rows, then the stacked triangles: Demmel et al.,
"Communication-optimal parallel and sequential QR and LU factorizations" (SIAM J. Sci. Comput. 34(1), 2012).
Cholesky and LU are right-looking: a panel of columns is factored in one place, everything to its right is
updated by matrix products; Golub and Van Loan, "Matrix Computations", 3.2 and 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra import products
from spartan_ng.api.base import constants, joining, manipulation
from spartan_ng.api.base.stacks import on_stack
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.handle import settle, wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.memory import copied_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

PANEL = 512
"""Columns of a panel: its products are dense enough for BLAS, and it fits any worker."""
GROUPS = 64
"""Groups of rows that a tall matrix is cut into at most, unless they are longer than"""
GROUP_BYTES = 1 << 24
"""this; their number does not depend on the workers."""
LARGE = 1 << 22
"""Elements below which a matrix is factored by LAPACK in one task."""


def is_tall(a: ndarray) -> bool:
    """Whether TSQR has something to cut: a large matrix with several times as many rows as columns. In one
    process LAPACK is as good, but for the copies that it makes."""
    large = a.nbytes > copied_bytes() if in_process() else a.size > LARGE
    return large and a.ndim == 2 and a.shape[0] >= 4 * a.shape[1] > 0


def is_large(a: ndarray) -> bool:
    """Whether a square matrix is worth a blocked algorithm."""
    return not in_process() and a.ndim == 2 and a.size > LARGE and a.shape[0] == a.shape[1] > PANEL


# --- tall matrices -----------------------------------------------------------------------------------


def tall_qr(a: ndarray, vectors: bool = True) -> tuple[ndarray | None, ndarray]:
    """Q (if wanted) and R of a tall matrix, with the signs that LAPACK gives them.

    Groups of rows are factored where they are, then their triangles together.
    """
    m, n = a.shape
    kind = np.linalg.inv(np.empty((0, 1, 1), a.dtype)).dtype
    groups = max(1, min(max(GROUPS, a.nbytes // GROUP_BYTES), m // (2 * n)))
    rows = -(-m // groups)
    padding = constants.zeros((groups * rows - m, n), a.dtype)
    padded = joining.concatenate([a, padding]) if padding.size else a
    outputs = (((rows, n), kind), ((n, n), kind))
    q, r = on_stack("qr positive", [padded.reshape(groups, rows, n)], outputs, check=False)
    outputs = (((groups * n, n), kind), ((n, n), kind))
    q2, r2 = on_stack("qr positive", [r.reshape(groups * n, n)], outputs, check=False)
    top = products.matmul(q[0], q2[:n])[:n]
    real = np.empty(0, kind).real.dtype
    (signs,) = on_stack("householder signs", [top], (((n,), real),), check=False)
    r2 = signs[:, None] * r2
    if not vectors:
        return None, r2
    whole = products.matmul(q, q2.reshape(groups, n, n)).reshape(groups * rows, n)[:m]
    return whole * signs, r2


def tall_svd(a: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """The reduced singular value decomposition of a tall matrix: of its triangle's, and Q times that."""
    q, r = tall_qr(a)
    n = a.shape[1]
    real = np.empty(0, r.dtype).real.dtype
    u, s, vh = on_stack("svd", [r], (((n, n), r.dtype), ((n,), real), ((n, n), r.dtype)))
    return products.matmul(q, u), s, vh


# --- square matrices ---------------------------------------------------------------------------------


def adjoint(a: ndarray) -> ndarray:
    """The transposed matrix, conjugated."""
    return ufuncs.conjugate(a.T) if a.dtype.kind == "c" else a.T


def _panels(n: int) -> list[tuple[int, int]]:
    return [(k, min(k + PANEL, n)) for k in range(0, n, PANEL)]


def _solved(factor: ndarray, rows: ndarray, lower: bool, unit: bool = False) -> ndarray:
    """`rows` times the inverse of the transposed triangle: a triangular system for every row.

    Rows go in groups, so that the workers share them.
    """
    n, m = rows.shape
    groups = min(GROUPS, n)
    each = -(-n // groups)
    padded = joining.concatenate([rows, constants.zeros((groups * each - n, m), rows.dtype)])
    (found,) = on_stack(
        "triangular",
        [padded.reshape(groups, each, m)],
        (((each, m), rows.dtype),),
        whole=[factor],
        check=False,
        lower=lower,
        unit=unit,
    )
    return found.reshape(groups * each, m)[:n]  # type: ignore[no-any-return]


def large_cholesky(a: ndarray, kind: np.dtype[Any]) -> ndarray:
    """The lower triangle L of a = L L^H; raises LinAlgError at the call."""
    n = a.shape[0]
    rest = a.astype(kind)
    columns = []
    for lo, hi in _panels(n):
        w = hi - lo
        (corner,) = on_stack("cholesky", [rest[:w, :w]], (((w, w), kind),))
        column = corner
        if hi < n:
            below = _solved(ufuncs.conjugate(corner), rest[w:, :w], lower=True)
            rest = rest[w:, w:] - products.matmul(below, adjoint(below))
            column = joining.concatenate([corner, below])
        columns.append(joining.concatenate([constants.zeros((lo, w), kind), column]) if lo else column)
    return joining.concatenate(columns, 1)


@dataclass(frozen=True, slots=True)
class Eliminated:
    """A matrix [a, b] after Gaussian elimination of a: U, and what is left of b beside it.

    Parameters
    ----------
    corners : the packed factors of the diagonal blocks
    upper : the rows to the right of each corner, those of b included
    sign : of the permutation
    """

    corners: list[ndarray]
    upper: list[ndarray]
    sign: ndarray


def eliminated(a: ndarray, kind: np.dtype[Any], b: ndarray | None = None) -> Eliminated:
    """Gaussian elimination with partial pivoting, b's rows going along, so that nothing keeps L.

    What is left of the matrix stays cut by columns, because every exchange of rows is then a worker's own
    business: only panels travel, n^2 / 2 elements in all to each worker, and the columns beside the cuts,
    n^2 / 4 or less, so that everybody has an equal part of what is left.
    """
    n = a.shape[0]
    rest = _by_columns((a if b is None else joining.concatenate([a, b], 1)).astype(kind))
    sign = wrap(np.float64(1))
    corners: list[ndarray] = []
    upper: list[ndarray] = []
    wide = np.result_type(kind, np.float64)
    for lo, hi in _panels(n):
        w, m = hi - lo, n - lo
        outputs = (((m, w), wide), ((m,), np.dtype(float)), ((), np.dtype(float)))
        factors, rows, odd = on_stack("lu", [rest[:, :w]], outputs, check=False)
        factors, sign, order = factors.astype(kind), sign * odd, rows.astype(np.int64)
        corners.append(factors[:w].copy())
        settle(factors, corners[-1], order, sign)
        if rest.shape[1] == w:
            break
        right = _by_columns(wrap_node(build.take(rest[:, w:]._node(), order._node(), 0)))
        upper.append(_by_columns(_solved(corners[-1], right[:w].T, lower=True, unit=True).T))
        rest = _by_columns(right[w:] - products.matmul(factors[w:], upper[-1])) if hi < n else rest
        settle(upper[-1], rest)
    return Eliminated(corners, upper, sign)


def _by_columns(a: ndarray) -> ndarray:
    """The matrix, cut by columns over the workers where it has several."""
    return wrap_node(build.tile_as(a._node(), "column")) if a.shape[1] > 1 else a


def back_substituted(found: Eliminated, n: int) -> ndarray:
    """The solution for the columns of b, from the last panel up."""
    parts: list[ndarray] = []
    for corner, upper in zip(reversed(found.corners), reversed(found.upper), strict=True):
        at = n - sum(p.shape[0] for p in parts) - corner.shape[0]
        left = n - at - corner.shape[0]
        y = upper[:, left:]
        if parts:
            y = y - products.matmul(upper[:, :left], joining.concatenate(parts))
        parts.insert(0, _solved(corner, y.T, lower=False).T)
    return joining.concatenate(parts)


def upper_diagonal(found: Eliminated) -> ndarray:
    """The diagonal of U."""
    return joining.concatenate([manipulation.diagonal(as_handle(c)) for c in found.corners])
