"""`spartan_ng.linalg`: stacks of matrices where they lie, large matrices by blocked algorithms.

A tall matrix is factored by groups of rows, a large square one by panels (see `factorizations`). Other single
matrices are worked on in one task by one worker: eigenvalues, and singular values of what is not tall.
"""

import operator
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.algebra import matrices, products
from spartan_ng.api.algebra.contractions import multi_dot
from spartan_ng.api.algebra.factorizations import (
    adjoint,
    back_substituted,
    eliminated,
    is_large,
    is_tall,
    large_cholesky,
    large_slogdet,
    tall,
    tall_qr,
    tall_r,
    tall_svd,
    triangle,
    upper_diagonal,
    worked_kind,
)
from spartan_ng.api.algebra.norms import matrix_norm, norm, svdvals, vector_norm
from spartan_ng.api.algebra.products import matmul, tensordot, vecdot
from spartan_ng.api.base import constants, manipulation, reductions
from spartan_ng.api.base.manipulation import matrix_transpose
from spartan_ng.api.base.stacks import Outputs, on_stack, probed
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.core.handle import Handle, settle
from spartan_ng.api.core.layouts import lying_as_copy
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.logic import where
from spartan_ng.api.ordering.sorting import argsort, sort
from spartan_ng.api.places.taking import take_along_axis

LinAlgError = np.linalg.LinAlgError
EigResult: Any = type(np.linalg.eig(np.eye(1)))
EighResult: Any = type(np.linalg.eigh(np.eye(1)))
QRResult: Any = type(np.linalg.qr(np.eye(1)))
SlogdetResult: Any = type(np.linalg.slogdet(np.eye(1)))
SVDResult: Any = type(np.linalg.svd(np.eye(1)))
test = np.linalg.test  # type: ignore[attr-defined]


@numpy_function(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of every pair of elements of two vectors."""
    a, b = as_handle(x1), as_handle(x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are x1.ndim={a.ndim} and x2.ndim={b.ndim}."
        )
    return products.outer(a, b)


@numpy_function(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of length 3."""
    a, b = as_handle(x1), as_handle(x2)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they are "
            f"{a.shape[axis]} and {b.shape[axis]} dimensional instead (shapes {a.shape} and {b.shape})"
        )
    return products.cross(a, b, axis=axis)


@numpy_function(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of the last two axes."""
    return manipulation.diagonal(x, offset, -2, -1)


@numpy_function(np.linalg.trace, few=1)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of the last two axes."""
    return products.trace(x, offset, -2, -1, dtype)


def _rounded(parts: Iterable[Any], outputs: Outputs) -> list[Any]:
    """What blocked algorithms have found, in the dtypes of NumPy's results."""
    return [part.astype(kind, copy=False) for part, (_, kind) in zip(parts, outputs, strict=True)]


# --- solving -----------------------------------------------------------------------------------------


@numpy_function(np.linalg.inv, whole=True)
def inv(a: Any) -> Any:
    """The inverses of matrices."""
    a = as_handle(a)
    outputs = probed(np.linalg.inv, [a])
    if is_large(a):
        return solve(a, matrices.eye(a.shape[0], dtype=a.dtype))
    return on_stack("inv", [a], outputs)[0]


@numpy_function(np.linalg.solve, whole=True)
def solve(a: Any, b: Any) -> Any:
    """The solutions of a x = b; a vector `b` serves every matrix."""
    a, b = as_handle(a), as_handle(b)
    if b.ndim == 1:
        return solve(a, b[:, None])[..., 0]
    outputs = probed(np.linalg.solve, [a, b])
    if is_large(a) and b.ndim == 2:
        found = eliminated(a, b)
        if reductions.any(upper_diagonal(found) == 0):
            raise LinAlgError("Singular matrix")
        return back_substituted(found, a.shape[0]).astype(outputs[0][1], copy=False)
    return on_stack("solve", [a, b], outputs)[0]


@numpy_function(np.linalg.tensorsolve, whole=True)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """The solution x of tensordot(a, x, x.ndim) = b."""
    a, b = as_handle(a), as_handle(b)
    if axes is not None:
        kept = [k for k in range(a.ndim) if k not in axes]
        a = a.transpose(*kept, *axes)
    shape = a.shape[-(a.ndim - b.ndim) :]
    size = prod(shape)
    if a.size != size**2:
        raise LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim]) "
            f"(shapes {a.shape} and {b.shape})"
        )
    return solve(a.reshape(size, size), b.ravel()).reshape(shape)


@numpy_function(np.linalg.tensorinv, whole=True)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of a tensor as a matrix over its first `ind` axes."""
    a = as_handle(a)
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    shape = a.shape[ind:] + a.shape[:ind]
    return inv(a.reshape(prod(a.shape[:ind]), -1)).reshape(shape)


@numpy_function(np.linalg.lstsq, whole=True)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Least squares: the solution, sums of squared residuals, the rank, the singular values."""
    a, b = as_handle(a), as_handle(b)
    if b.ndim == 1:
        x, residuals, rank, s = lstsq(a, b[:, None], rcond)
        return x[:, 0], residuals, rank, s
    np.linalg.lstsq(np.ones((1, 1)), np.ones((1, 1)), rcond)  # its errors for a bad rcond
    if a.ndim != 2 or b.ndim != 2 or a.shape[0] != b.shape[0]:
        raise LinAlgError(f"Incompatible dimensions: shapes {a.shape} and {b.shape}")
    (m, n), k = a.shape, b.shape[1]
    kind = np.linalg.lstsq(np.ones((1, 1), a.dtype), np.ones((1, 1), b.dtype), None)[0].dtype
    real = np.empty(0, kind).real.dtype
    wide, beyond = worked_kind(a, b), None
    rcond = float(np.finfo(wide).eps) * max(m, n) if rcond is None else rcond
    left, right = a.astype(wide), b.astype(wide)
    if is_tall(left):
        if m >= 4 * (n + k):  # [A, b] = Q [R, Q^H b]: Q itself is never made
            r = triangle(left, right)
            settle(r)
            left, right, beyond = r[:n, :n], r[:n, n:], r[n:, n:]
        else:
            q, left = tall_qr(left)
            settle(q, left)
            rotated = products.matmul(adjoint(q), right)
            beyond = right - products.matmul(q, rotated)
            right = rotated
    outputs = (((n, k), kind), ((k,), real), ((), real), ((min(m, n),), real))
    x, residuals, rank, s = on_stack("lstsq", [left, right], outputs, rcond=rcond)
    rank = np.int32(int(rank))
    if rank < n or m <= n:
        return x, constants.empty((0,), real), rank, s
    if beyond is not None:
        residuals = reductions.sum(ufuncs.square(ufuncs.absolute(beyond)), 0)
    return x, residuals.astype(real, copy=False), rank, s


@numpy_function(np.linalg.pinv, whole=True)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = np._NoValue) -> Any:
    """The pseudo-inverses of matrices."""
    a = as_handle(a)
    rtol = rtol._force()[()] if isinstance(rtol, Handle) else rtol
    keywords = {} if rtol is np._NoValue else {"rtol": rtol}
    outputs = probed(np.linalg.svd, [a], full_matrices=False)
    several = np.ndim(rcond) or (keywords and np.ndim(rtol))
    if not (is_tall(a) or hermitian or several):
        outputs = ((a.shape[:-3:-1], outputs[0][1]),)
        return on_stack("pinv", [a], outputs, rcond=rcond, **keywords)[0]
    if rcond is not None and keywords.get("rtol") is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    cut = rcond if rcond is not None else keywords.get("rtol", _RCOND)
    cut = max(a.shape[-2:]) * np.finfo(outputs[0][1]).eps if cut is None else cut
    by_groups = None if hermitian or several or not is_tall(a) else tall(a)
    if by_groups is not None:
        settle(*by_groups.kept())
    u, s, vh = svd(a if by_groups is None else by_groups.r, full_matrices=False, hermitian=hermitian)
    large = s > as_handle(cut)[..., None] * reductions.max(s, -1, None, True, initial=0)
    inverse = where(large, 1 / where(large, s, 1), 0)
    turned = [matrix_transpose(ufuncs.conjugate(v) if v.dtype.kind == "c" else v) for v in (u, vh)]
    inverted = products.matmul(turned[1] * inverse[..., None, :], turned[0])
    if by_groups is not None:
        inverted = adjoint(by_groups.times(adjoint(inverted))).astype(outputs[0][1], copy=False)
    return inverted


_RCOND = 1e-15
"""What `pinv` takes for zero, relative to the largest singular value, where nobody says."""


# --- triangles and determinants ----------------------------------------------------------------------


@numpy_function(np.linalg.cholesky, whole=True)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The triangle L (or its adjoint) of a = L L^H."""
    a = as_handle(a)
    outputs = probed(np.linalg.cholesky, [a])
    if is_large(a):
        lower = large_cholesky(adjoint(a) if upper else a).astype(outputs[0][1], copy=False)
        return adjoint(lower) if upper else lower
    return on_stack("cholesky", [a], outputs, upper=upper)[0]


_MODES_OF_OLD = ("f", "full", "e", "economic")
"""NumPy has deprecated them."""


@numpy_function(np.linalg.qr, whole=True)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Q and R of matrices, with LAPACK's signs."""
    if mode in _MODES_OF_OLD:
        return by_numpy(np.linalg.qr, a, mode)
    a = as_handle(a)
    outputs = probed(np.linalg.qr, [a], mode=mode)
    if mode in ("reduced", "r") and is_tall(a):
        found = _rounded([tall_r(a)] if mode == "r" else tall_qr(a), outputs)
        return found[0] if mode == "r" else QRResult(*found)
    parts = on_stack("qr", [a], outputs, check=False, mode=mode)
    return parts[0] if mode == "r" else tuple(parts) if mode == "raw" else QRResult(*parts)


@numpy_function(np.linalg.slogdet, whole=True)
def slogdet(a: Any) -> Any:
    """The sign, and the logarithm of the size, of determinants."""
    a = as_handle(a)
    outputs = probed(np.linalg.slogdet, [a])
    if not is_large(a):
        return SlogdetResult(*on_stack("slogdet", [a], outputs, check=False))
    return SlogdetResult(*_rounded(large_slogdet(a), outputs))


@numpy_function(np.linalg.det, whole=True)
def det(a: Any) -> Any:
    """Determinants."""
    a = as_handle(a)
    outputs = probed(np.linalg.det, [a])
    if is_large(a):
        sign, size = large_slogdet(a)
        return (sign * ufuncs.exp(size)).astype(outputs[0][1])
    return on_stack("det", [a], outputs, check=False)[0]


# --- eigenvalues and singular values -----------------------------------------------------------------


@numpy_function(np.linalg.eigh, whole=True)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices."""
    a = as_handle(a)
    return EighResult(*on_stack("eigh", [a], probed(np.linalg.eigh, [a], UPLO=UPLO), UPLO=UPLO))


@numpy_function(np.linalg.eigvalsh, whole=True)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of Hermitian matrices."""
    a = as_handle(a)
    return on_stack("eigvalsh", [a], probed(np.linalg.eigvalsh, [a], UPLO=UPLO), UPLO=UPLO)[0]


@numpy_function(np.linalg.eig, whole=True)
def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors; complex where any eigenvalue is."""
    return EigResult(*_general("eig", np.linalg.eig, as_handle(a)))


@numpy_function(np.linalg.eigvals, whole=True)
def eigvals(a: Any) -> Any:
    """Eigenvalues; complex where any is."""
    return _general("eigvals", np.linalg.eigvals, as_handle(a))[0]


def _general(name: str, function: Any, a: Any) -> list[Any]:
    """NumPy's dtypes of what may be complex: real results if no eigenvalue of the stack is complex."""
    if a.dtype.type is np.float16 and a.ndim > 1 and a.shape[-1] == a.shape[-2]:
        _finite(a)  # which NumPy asks before it refuses the dtype
    outputs = probed(function, [a])
    wide = [(shape, np.result_type(kind, np.complex64)) for shape, kind in outputs]
    parts = on_stack(name, [_finite(a)], wide)
    if a.dtype.kind == "c" or reductions.any(parts[0].imag != 0):
        return parts
    return [p.real.copy() for p in parts]


def _finite(a: Any) -> Any:
    """The matrices, or NumPy's error where an element is not a number."""
    if not reductions.all(ufuncs.isfinite(a)):
        raise LinAlgError("Array must not contain infs or NaNs")
    return a


@numpy_function(np.linalg.svd, whole=True)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular value decompositions."""
    a = as_handle(a)
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    if not compute_uv:
        return svdvals(a)
    outputs = probed(np.linalg.svd, [a], full_matrices=full_matrices)
    if is_tall(a) and not full_matrices:
        return SVDResult(*_rounded(tall_svd(a), outputs))
    return SVDResult(*on_stack("svd", [a], outputs, full_matrices=full_matrices))


def _hermitian_svd(a: Any, compute_uv: bool) -> Any:
    """By eigenvalues: those below zero turn a vector around."""
    if not compute_uv:
        return sort(ufuncs.absolute(eigvalsh(a)))[..., ::-1].copy()
    found, vectors = eigh(a)
    order = argsort(ufuncs.absolute(found))[..., ::-1]
    found, u = take_along_axis(found, order, -1), take_along_axis(vectors, order[..., None, :], -1)
    turned = u * ufuncs.copysign(1, found)[..., None, :]
    vh = matrix_transpose(ufuncs.conjugate(turned) if turned.dtype.kind == "c" else turned)
    return SVDResult(u, ufuncs.absolute(found), vh)


@numpy_function(np.linalg.matrix_rank, whole=True)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The number of singular values beyond a tolerance."""
    a = as_handle(A)
    if rtol is not None and tol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    if a.ndim < 2:
        return int(reductions.any(a != 0))
    s = ufuncs.absolute(eigvalsh(a)) if hermitian else svdvals(a)
    if tol is None:
        rtol = max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else as_handle(rtol)[..., None]
        tol = reductions.max(s, -1, None, True, initial=0) * rtol
    else:
        tol = as_handle(tol)[..., None]
    return reductions.count_nonzero(s > tol, axis=-1)


@numpy_function(np.linalg.cond, whole=True)
def cond(x: Any, p: Any = None) -> Any:
    """Condition numbers; infinite for singular matrices."""
    a = as_handle(x)
    if a.size == 0 and 0 in a.shape[-2:]:
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = svdvals(a)
        with np.errstate(all="ignore"):
            ratio = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        probed(np.linalg.inv, [a])
        try:
            ratio = norm(a, p, (-2, -1)) * norm(inv(a), p, (-2, -1))
        except LinAlgError:
            if a.ndim > 2:
                return gathered(np.linalg.cond, a, p)
            ratio = constants.full((), np.nan)[()]
    defined = reductions.any(ufuncs.isnan(a), (-2, -1))
    return where(ufuncs.isnan(ratio) & ~defined, np.inf, ratio)[()]


@numpy_function(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """A square matrix to an integer power."""
    a = as_handle(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"Last 2 dimensions of the array must be square, not of shape {a.shape}")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, not {n!r}") from None
    if n == 0:
        same = manipulation.broadcast_to(matrices.eye(a.shape[-1], dtype=a.dtype), a.shape)
        return lying_as_copy(same.copy("C"), a)
    if n < 0:
        a, n = inv(a), -n
    result = None
    while n:
        n, odd = divmod(n, 2)
        if odd:
            result = a if result is None else matmul(result, a)
        if n:
            a = matmul(a, a)
    return result


__all__ = [
    "LinAlgError",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "test",
    "trace",
    "vecdot",
    "vector_norm",
]
