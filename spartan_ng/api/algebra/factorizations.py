"""Factorizations of one large matrix: of tall ones by reduction trees, of square ones block by block.

No worker needs the whole matrix. TSQR factors groups of rows, then the stacked triangles: Demmel et al.,
"Communication-optimal parallel and sequential QR and LU factorizations" (SIAM J. Sci. Comput. 34(1), 2012).
Cholesky and LU are right-looking: a panel of columns is factored in one place, everything to its right is
updated by matrix products; Golub and Van Loan, "Matrix Computations", 3.2 and 4.2.

What lies between the steps is of double precision, whatever the matrix's: NumPy has LAPACK work so on all
matrices, and rounds at the end, so that its default tolerances mean that. Callers round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.algebra import matrices, products
from spartan_ng.api.base import constants, joining, manipulation, reductions
from spartan_ng.api.base.room import budget
from spartan_ng.api.base.stacks import on_stack
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.handle import settle
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.logic import where
from spartan_ng.costs.choices import BLOCKED
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process, lead

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

PANEL = 512
"""Columns of a panel: its products are dense enough for BLAS, and it fits any worker."""
GROUPS = 64
"""Groups of rows that a tall matrix is cut into at most, unless they are longer than"""
GROUP_BYTES = 1 << 24
"""this, or than what a worker's memory has room for so often:"""
GROUP_SHARE = 24
"""LAPACK takes four copies of a group, beside the result, in each thread. The groups do not depend on how
many workers there are."""
LARGE = 1 << 22
"""Elements below which workers leave a matrix to LAPACK in one task."""
COPIES = 6
"""Times a matrix's bytes, as it is worked on, that such a task has room for."""


def is_tall(a: ndarray) -> bool:
    """Whether TSQR has something to cut: a matrix with several times as many rows as columns that no task has
    room for, or a large one on several workers. In one process LAPACK is as good, but for its copies."""
    large = COPIES * a.size * worked_kind(a).itemsize > budget() or (not in_process() and a.size > LARGE)
    return large and a.ndim == 2 and a.shape[0] >= 4 * a.shape[1] > 0


def worked_kind(*beside: ndarray) -> np.dtype[Any]:
    """The dtype in which matrices beside each other are worked on, whatever dtype the factors have."""
    return np.result_type(np.float64, *(a.dtype for a in beside))


def is_large(a: ndarray) -> bool:
    """Whether a square matrix is worth a blocked algorithm: on workers that do enough more than one of them,
    or where no task has room for it."""
    if in_process() or a.ndim != 2 or a.size <= LARGE or not a.shape[0] == a.shape[1] > PANEL:
        return False
    return lead() >= BLOCKED or COPIES * a.size * worked_kind(a).itemsize > budget()


# --- tall matrices -----------------------------------------------------------------------------------


class RowGroup(Struct, frozen=True):
    """Groups of rows of one length, factored: `lines` has for each what "qr positive" gives, Q first."""

    lines: ndarray
    rows: int
    rank: int
    """Columns of Q, and rows of R."""

    def triangles(self, columns: int) -> ndarray:
        """The triangles, one below the other."""
        behind = self.rows * self.rank
        found: ndarray = self.lines[:, behind:].reshape(-1, columns)
        return found

    def times(self, m: ndarray) -> ndarray:
        """Q of each group times its own rows of a matrix."""
        count, columns = self.lines.shape[0], m.shape[1]
        outputs = (((self.rows, columns), m.dtype),)
        own = m.reshape(count, self.rank, columns)
        (found,) = on_stack("first times", [self.lines[:, None], own], outputs, check=False, rows=self.rows)
        return found.reshape(count * self.rows, columns)


class Tall(Struct, frozen=True):
    """A tall matrix Q R whose Q is not put together: that of the rows' groups, and what is behind it, a small
    matrix or the Q of the groups' triangles. The diagonal of R is not negative."""

    groups: tuple[RowGroup, ...]
    behind: ndarray | Tall
    r: ndarray

    def times(self, m: ndarray) -> ndarray:
        """Q times a matrix, group by group."""
        small = self.behind.times(m) if isinstance(self.behind, Tall) else products.matmul(self.behind, m)
        found, at = [], 0
        for group in self.groups:
            end = at + group.lines.shape[0] * group.rank
            found.append(group.times(small[at:end]))
            at = end
        return joining.concatenate(found) if len(found) > 1 else found[0]

    def kept(self) -> Iterator[ndarray]:
        """What Q and R are made of."""
        yield from (g.lines for g in self.groups)
        yield from self.behind.kept() if isinstance(self.behind, Tall) else (self.behind, self.r)

    def top(self) -> ndarray:
        """The first rows of Q, as many as columns."""
        n = self.r.shape[0]
        first = self.groups[0].lines[0, : n * n].reshape(n, n)
        behind = self.behind.top() if isinstance(self.behind, Tall) else self.behind[:n]
        return products.matmul(first, behind)  # type: ignore[no-any-return]


def tall(a: ndarray, least: int = GROUPS) -> Tall:
    """Groups of rows, so many at least, are factored where they are, then their triangles together."""
    n, kind = a.shape[1], worked_kind(a)
    groups = []
    for part in _grouped([a], least)[0]:
        _, rows, rank = *part.shape[:2], min(part.shape[1:])
        length = rows * rank + rank * n
        lines = on_stack("qr positive", [part], (((length,), kind),), check=False)[0]
        groups.append(RowGroup(wrap_node(lines._node()), rows, rank))
    below = [g.triangles(n) for g in groups]
    stack = joining.concatenate(below) if len(below) > 1 else below[0]
    if _is_more(stack):
        behind = tall(stack, 1)
        return Tall(tuple(groups), behind, behind.r)
    outputs = ((stack.shape, kind), ((n, n), kind))
    q, r = on_stack("qr positive", [stack], outputs, check=False)
    return Tall(tuple(groups), wrap_node(q._node()), wrap_node(r._node()))


def triangle(*beside: ndarray, least: int = GROUPS) -> ndarray:
    """R of tall matrices beside each other; its diagonal is not negative."""
    stack = _triangles(beside, least)
    n = stack.shape[1]
    if _is_more(stack):
        return triangle(stack, least=1)
    return wrap_node(on_stack("r positive", [stack], (((n, n), stack.dtype),), check=False)[0]._node())


def _triangles(beside: Sequence[ndarray], least: int) -> ndarray:
    """The triangles of all groups of rows, one below the other."""
    n, kind = sum(a.shape[1] for a in beside), worked_kind(*beside)
    found = []
    for parts in zip(*_grouped(beside, least), strict=True):
        rank = min(parts[0].shape[1], n)
        lines = on_stack("r positive", parts, (((rank, n), kind),), check=False)[0]
        found.append(lines.reshape(-1, n))
    return joining.concatenate(found) if len(found) > 1 else found[0]


def _is_more(stack: ndarray) -> bool:
    """Whether triangles are too many to be factored together."""
    return stack.nbytes > 2 * _group_bytes() and stack.shape[0] >= 4 * stack.shape[1]


def tall_r(a: ndarray) -> ndarray:
    """R of a tall matrix with the signs that LAPACK gives it."""
    top, r = _top_and_triangle(a)
    found: ndarray = _signs(top)[:, None] * r
    return found


def _top_and_triangle(a: ndarray, least: int = GROUPS) -> tuple[ndarray, ndarray]:
    """The first rows of Q, as many as columns, and R."""
    (m, n), kind = a.shape, worked_kind(a)
    rows = _rows_of_groups(m, n, kind.itemsize, least)
    first, _ = on_stack("qr positive", [a[:rows]], (((rows, n), kind), ((n, n), kind)), check=False)
    stack = _triangles([a], least)
    if _is_more(stack):
        behind, r = _top_and_triangle(stack, 1)
    else:
        q, r = on_stack("qr positive", [stack], ((stack.shape, kind), ((n, n), kind)), check=False)
        behind = q[:n]
    return products.matmul(first[:n], behind), r


def _signs(top: ndarray) -> ndarray:
    """What LAPACK would have multiplied the rows of R with, by the first rows of a Q whose R is positive."""
    real = np.empty(0, top.dtype).real.dtype
    return on_stack("householder signs", [top], (((len(top),), real),), check=False)[0]


def tall_qr(a: ndarray) -> tuple[ndarray, ndarray]:
    """Q and R of a tall matrix with the signs that LAPACK gives them."""
    found = tall(a)
    signs = _signs(found.top())
    n = found.r.shape[0]
    return found.times(signs * matrices.eye(n, dtype=found.r.dtype)), signs[:, None] * found.r


def tall_svd(a: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """The reduced singular value decomposition of a tall matrix: of its triangle's, and Q times that."""
    found = tall(a)
    settle(*found.kept())
    n, signs = a.shape[1], _signs(found.top())[:, None]
    r = signs * found.r  # the signs of vectors are those that LAPACK gives the whole matrix's
    real = np.empty(0, r.dtype).real.dtype
    u, s, vh = on_stack("svd", [r], (((n, n), r.dtype), ((n,), real), ((n, n), r.dtype)))
    return found.times(signs * u), s, vh


def _group_bytes() -> int:
    return min(GROUP_BYTES, budget() // GROUP_SHARE)


def _grouped(beside: Sequence[ndarray], least: int) -> list[list[ndarray]]:
    """For each of the matrices the stack of its groups of rows, and that of the one that is left over."""
    m, n = beside[0].shape[0], sum(a.shape[1] for a in beside)
    rows = _rows_of_groups(m, n, worked_kind(*beside).itemsize, least)
    end = m // rows * rows
    found = [[a[:end].reshape(-1, rows, a.shape[1])] for a in beside]
    if end < m:
        for a, parts in zip(beside, found, strict=True):
            parts.append(a[end:][None])
    return found


def _rows_of_groups(m: int, n: int, itemsize: int, least: int) -> int:
    """Rows of a group: such that none are left over, where one can be found."""
    most = max(1, m // (2 * n))
    groups = max(1, min(max(least, -(-m * n * itemsize // max(_group_bytes(), 1))), most))
    return m // next((g for g in range(groups, min(2 * groups, most) + 1) if m % g == 0), groups)


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


def large_cholesky(a: ndarray) -> ndarray:
    """The lower triangle L of a = L L^H; raises LinAlgError at the call."""
    n, kind = a.shape[0], worked_kind(a)
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


class Eliminated(Struct, frozen=True):
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


def eliminated(a: ndarray, b: ndarray | None = None) -> Eliminated:
    """Gaussian elimination with partial pivoting, b's rows going along, so that nothing keeps L.

    What is left of the matrix stays cut by columns, because every exchange of rows is then a worker's own
    business: only panels travel, n^2 / 2 elements in all to each worker, and the columns beside the cuts,
    n^2 / 4 or less, so that everybody has an equal part of what is left.
    """
    beside = [a] if b is None else [a, b]
    n, kind = a.shape[0], worked_kind(*beside)
    rest = _by_columns((a if b is None else joining.concatenate(beside, 1)).astype(kind))
    sign = wrap(np.float64(1))
    corners: list[ndarray] = []
    upper: list[ndarray] = []
    for lo, hi in _panels(n):
        w, m = hi - lo, n - lo
        outputs = (((m, w), kind), ((m,), np.dtype(float)), ((), np.dtype(float)))
        factors, rows, odd = on_stack("lu", [rest[:, :w]], outputs, check=False)
        sign, order = sign * odd, rows.astype(np.int64)
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


def large_slogdet(a: ndarray) -> tuple[ndarray, ndarray]:
    """The sign, and the logarithm of the size, of a large matrix's determinant."""
    found = eliminated(a)
    diagonal = upper_diagonal(found)
    size = ufuncs.absolute(diagonal)
    sign = found.sign * ufuncs.multiply.reduce(where(size == 0, 0, diagonal / where(size == 0, 1, size)))
    with np.errstate(divide="ignore"):
        return sign, reductions.sum(ufuncs.log(size))
