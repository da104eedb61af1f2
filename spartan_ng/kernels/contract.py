"""Einstein sums of two operands as matrix products: dense blocks through BLAS, sparse ones through SciPy.

Each kind of loop that is ready-made is imported by its first product: few programs have several.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import takewhile
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from spartan_ng.compressed import is_compressed
from spartan_ng.costs.choices import is_one_loop, is_stack_of_lines
from spartan_ng.error_state import error_state
from spartan_ng.kernels.formats import dense, is_sparse_block
from spartan_ng.memory import budget_bytes, copied_bytes

Labels = tuple[int, ...]
COPIED_BYTES = 1 << 23
"""What is copied of an operand at a time to lie as BLAS wants it; with less its threads are slow."""


def contract(
    a: Any, b: Any, la: Labels, lb: Labels, lo: Labels, in_threads: bool = False, out: Any = None
) -> Any:
    """Sum over the labels that `lo` lacks of a[la] * b[lb], with axes in the order `lo`.

    `out` is an array that a product of dense matrices of its dtype may be put into, where `makes_matrix` says
    so.
    `in_threads` says that the program's threads each have products of their own: there is other Python to run
    meanwhile, and BLAS has no threads beside them.
    """
    if not type(a) is type(b) is np.ndarray:
        if is_compressed(a) or is_compressed(b):
            return _compressed(a, b, la, lb, lo)
        if is_sparse_block(a) or is_sparse_block(b):
            return _sparse(a, b, la, lb, lo)
    shape = _arrange(la, lb, lo)
    if shape.plain:
        a, b = a.T if shape.turn_a else a, b.T if shape.turn_b else b
        # On its own, a product that keeps arithmetic busy has all of BLAS's threads.
        out = out if out is not None and a.dtype == b.dtype == out.dtype else None
        if a.ndim == b.ndim == 2:  # BLAS reads a vector's matrix once
            found = _compiled_product(a, b, out) if in_threads else _product_of_few_lines(a, b)
            if found is not None:
                return found
        return _multiply_in_threads(a, b, out) if in_threads else np.matmul(a, b, out=out)
    if not shape.inner:
        return _outer(a, b, shape, lo)
    if shape.batch and not (shape.rows or shape.columns):
        # Sums along lines of two arrays alike: a product of matrices would be one of each line.
        return np.einsum(a, la, b, lb, lo)
    is_looped = shape.of_lines and _is_one_loop(a, b, la, lb, lo)
    found = _looped(a, b, la, lb, lo) if is_looped or _is_along_stack(a, b, shape, lo) else None
    return _batched(a, b, shape) if found is None else found


def _is_one_loop(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> bool:
    """Whether a stack of products of a matrix and a vector is best made in one loop over the elements of the
    matrices: for BLAS each is a call of its own, which NumPy makes with the interpreter's lock."""
    matrices, labels = (a, la) if a.ndim > b.ndim else (b, lb)
    stacked = [n for n, x in zip(matrices.shape, labels, strict=True) if x in lo and x in la and x in lb]
    return is_one_loop(matrices, prod(stacked))


def _is_along_stack(a: Any, b: Any, shape: _Arrangement, lo: Labels) -> bool:
    """Whether products of small matrices are best made in one loop along their stack, whose elements lie side
    by side: for BLAS, which has each matrix side by side, both are copied, and each is a call of its own."""
    n = shape.trailing
    if not n or a.strides[-1] != a.itemsize or b.strides[-1] != b.itemsize:
        return False
    columns = [m for m, x in zip(b.shape, shape.all_b, strict=True) if x not in shape.all_a]
    return is_stack_of_lines(a.size * prod(columns), prod(a.shape[-n:]))


def _looped(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> Any:
    """The products in NumPy's loops over elements; None where matmul has something to tell of them, as einsum
    has not."""
    if a.dtype != b.dtype or error_state().is_strict:
        return None
    found = np.einsum(a, la, b, lb, lo)
    return found if found.dtype.kind not in "fc" or np.isfinite(found).all() else None


def contract_and_sums(
    a: Any, b: Any, la: Labels, lb: Labels, lo: Labels, wanted: tuple[bool, bool]
) -> tuple[Any, tuple[Any, Any]]:
    """The product as by `contract`, and those of the `wanted` sums of its two operands over the label that is
    summed that are made on the way; None for the others."""
    if type(a) is type(b) is np.ndarray and _arrange(la, lb, lo).plain:
        shape = _arrange(la, lb, lo)
        left, right = a.T if shape.turn_a else a, b.T if shape.turn_b else b
        from spartan_ng.kernels.compiled import tall

        found = tall.product_and_sums(left, right, wanted)
        if found is not None:
            return found.value, found.sums
    return contract(a, b, la, lb, lo, in_threads=True), (None, None)


def _product_of_few_lines(a: Any, b: Any) -> Any:
    from spartan_ng.kernels.compiled.few_lines import product  # of a module, not a package: half the time

    return product(a, b)


def dense_product(a: Any, b: Any, out: Any = None) -> Any:
    """The product of two dense matrices, in `out` if that is given."""
    found = _compiled_product(a, b, out)
    return np.matmul(a, b, out=out) if found is None else found


@cache
def load_products() -> tuple[ModuleType, ...]:
    """Import what multiplies matrices that BLAS is slow with, which the first product does else."""
    from spartan_ng.kernels.compiled import few_lines, narrow, tall

    return few_lines, tall, narrow


def _compiled_product(a: Any, b: Any, out: Any = None) -> Any:
    """The product of matrices that BLAS is slow with on one thread; None where it is not, or has to do it
    (for now)."""
    for kind in load_products():
        found = kind.product(a, b, out)
        if found is not None:
            return found
    return None


def _multiply_in_threads(a: Any, b: Any, out: Any) -> Any:
    """The product of two matrices, or of a matrix and a vector, without the interpreter's lock.

    NumPy's `matmul` keeps the lock unless there are many rows; its `dot` calls the same BLAS without it, but
    is silent about floating-point errors, and adds what it multiplies by a single element to no zeros. Of
    columns cut out of a matrix it makes a copy first, which takes longer than the product of a few rows with
    them.
    """
    several = a.dtype == b.dtype and a.dtype.char in "fdFD" and a.size > 1 and b.size > 1
    if several and a.flags.forc and b.flags.forc and not error_state().is_strict:
        return np.dot(a, b, out=out if out is None or out.flags.c_contiguous else None)
    return np.matmul(a, b, out=out)


class _Arrangement:
    """Labels sorted into batch, rows, columns and inner, and the axes orders that put them so."""

    def __init__(self, la: Labels, lb: Labels, lo: Labels) -> None:
        self.batch = [x for x in lo if x in la and x in lb]
        self.rows = [x for x in lo if x in la and x not in lb]
        self.columns = [x for x in lo if x in lb and x not in la]
        self.inner = [x for x in la if x not in lo]
        self.order_a = [la.index(x) for x in (*self.batch, *self.rows, *self.inner)]
        self.order_b = [lb.index(x) for x in (*self.batch, *self.inner, *self.columns)]
        self.result = [*self.batch, *self.rows, *self.columns]
        self.order_out = [self.result.index(x) for x in lo]
        self.all_a, self.all_b = la, lb
        self.plain = (
            len(self.inner) == 1
            and not self.batch
            and len(self.rows) <= 1
            and len(self.columns) <= 1
            and self.order_out == sorted(self.order_out)
        )
        ends = zip(la[::-1], lb[::-1], lo[::-1], strict=False)
        self.trailing = len(list(takewhile(lambda last: len({*last}) == 1, ends)))
        """How many of the last labels of both operands are the last of the result."""
        self.of_lines = bool(self.batch) and bool(self.rows) != bool(self.columns)
        self.turn_a = self.plain and self.order_a != sorted(self.order_a)
        self.turn_b = self.plain and self.order_b != sorted(self.order_b)


@lru_cache(maxsize=4096)
def _arrange(la: Labels, lb: Labels, lo: Labels) -> _Arrangement:
    return _Arrangement(la, lb, lo)


def makes_matrix(la: Labels, lb: Labels, lo: Labels) -> bool:
    """Whether a product of two operands is that of two matrices, as they are or turned, and a matrix."""
    return len(lo) == 2 and _arrange(la, lb, lo).plain


def _outer(a: Any, b: Any, shape: _Arrangement, lo: Labels) -> Any:
    """Nothing is summed: a broadcast product."""
    left = a.transpose([shape.all_a.index(x) for x in lo if x in shape.all_a])
    right = b.transpose([shape.all_b.index(x) for x in lo if x in shape.all_b])
    return np.multiply(
        left[tuple(slice(None) if x in shape.all_a else None for x in lo)],
        right[tuple(slice(None) if x in shape.all_b else None for x in lo)],
    )


def _batched(a: Any, b: Any, shape: _Arrangement) -> Any:
    """The product as one of stacked matrices. Operands that do not lie so are copied; where that takes much,
    part after part, so that no copy of a whole one is there."""
    a, b = a.transpose(shape.order_a), b.transpose(shape.order_b)
    nb, nr, ni = len(shape.batch), len(shape.rows), len(shape.inner)
    return _in_parts(a, b, nb, nr, ni, shape.order_out)


def _in_parts(a: Any, b: Any, nb: int, nr: int, ni: int, order: list[int]) -> Any:
    """The product of operands with `nb` axes of a batch, `nr` of rows (`a`), and `ni` that are summed; its
    axes in another order."""
    kept, summed = (*a.shape[: nb + nr], *b.shape[nb + ni :]), a.shape[nb + nr :]
    axis, parts = _parts_of(a, b, nb, nr, ni)
    if parts == 1:
        return _matrices_product(a, b, nb, nr, ni).transpose(order)
    out = np.empty([kept[i] for i in order], np.result_type(a, b))
    result = out.transpose(np.argsort(order))
    first, same = True, list(range(len(kept)))
    n = (*kept, *summed)[axis]
    for lo, hi in ((n * i // parts, n * (i + 1) // parts) for i in range(parts)):
        part = slice(lo, hi)
        if axis >= len(kept):  # a summed one
            k = axis - len(kept)
            found = _in_parts(_at(a, nb + nr + k, part), _at(b, nb + k, part), nb, nr, ni, same)
            np.add(result, found, out=result) if not first else np.copyto(result, found)
            first = False
            continue
        left = _at(a, axis, part) if axis < nb + nr else a
        right = _at(b, axis, part) if axis < nb else _at(b, axis - nr + ni, part) if axis >= nb + nr else b
        np.copyto(_at(result, axis, part), _in_parts(left, right, nb, nr, ni, same))
    return out


def _at(x: Any, axis: int, part: slice) -> Any:
    return x[(*(slice(None),) * axis, part)]


def _matrices_product(a: Any, b: Any, nb: int, nr: int, ni: int) -> Any:
    batch, rows = a.shape[:nb], a.shape[nb : nb + nr]
    columns = b.shape[nb + ni :]
    inner = prod(a.shape[nb + nr :])
    left = a.reshape(*batch, prod(rows), inner)
    right = b.reshape(*batch, inner, prod(columns))
    return np.matmul(left, right).reshape((*batch, *rows, *columns))


def _parts_of(a: Any, b: Any, nb: int, nr: int, ni: int) -> tuple[int, int]:
    """The axis of batch, rows, columns and summed ones that a product goes along in parts, and how many."""
    copied, most = [_copied_bytes(a, nb, nr), _copied_bytes(b, nb, ni)], min(COPIED_BYTES, copied_bytes())
    if max(copied) <= most:
        return 0, 1
    kept = nb + nr + b.ndim - nb - ni
    summed = [kept + k for k in range(ni)]
    of_a = [*range(nb + nr), *summed]
    of_b = [*range(nb), *summed, *range(nb + nr, kept)]
    larger, axes = (a, of_a) if copied[0] >= copied[1] else (b, of_b)
    # One that both have, where both are copied: else all of the other one is, again for each part.
    both = {*range(nb), *summed} if min(copied) > most else {*axes}
    cut = [i for i in range(larger.ndim) if larger.shape[i] > 1 and axes[i] in both]
    # The outermost, of which the fewest pages are read again for the next part.
    found = max(cut or range(larger.ndim), key=lambda i: (larger.shape[i] > 1, abs(larger.strides[i])))
    return axes[found], min(larger.shape[found], -(-max(copied) // most))


def _copied_bytes(x: Any, stacked: int, second: int) -> int:
    """Bytes of a copy of an operand whose axes do not lie as those of stacked matrices; 0 where they do."""
    mid = stacked + second
    try:
        np.reshape(x, (*x.shape[:stacked], prod(x.shape[stacked:mid]), prod(x.shape[mid:])), copy=False)
    except ValueError:
        return int(x.nbytes)
    return 0


def _compressed(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> Any:
    """A compressed matrix times a dense vector or matrix; other products are those of the dense form."""
    if is_compressed(a) and is_compressed(b):
        b = dense(b)
    if is_compressed(b):
        a, b, la, lb = b, a, lb, la
    b = dense(b)
    shape = _arrange(la, lb, lo)
    plain = is_matrix_product(la, lb, lo) and len(shape.rows) == 1
    left = a.T if plain and la[0] == shape.inner[0] else a
    right = b.T if plain and b.ndim == 2 and lb[1] == shape.inner[0] else b
    out = None
    if plain:
        from spartan_ng.kernels.compiled import dictionaries

        out = dictionaries.multiply(left, right)
    if out is None:
        return contract(dense(a), b, la, lb, lo)
    return out.T if shape.order_out == [1, 0] else out


def is_matrix_product(la: Labels, lb: Labels, lo: Labels) -> bool:
    """Whether a product of two operands is that of matrices, or of a matrix and a vector."""
    shape = _arrange(la, lb, lo)
    kept = sorted((len(shape.rows), len(shape.columns)))
    return len(shape.inner) == 1 and not shape.batch and kept in ([0, 1], [1, 1])


def dense_turned(a: Any, b: Any, la: Labels, lb: Labels) -> tuple[Any, Any]:
    """The operands, a dense one beside a sparse one with its summed axis outermost in memory.

    SciPy would copy it so for every block.
    """
    if is_sparse_block(a) == is_sparse_block(b):
        return a, b
    (summed,) = set(la) & set(lb)
    return _outermost(a, la.index(summed)), _outermost(b, lb.index(summed))


def _outermost(x: Any, axis: int) -> Any:
    if is_sparse_block(x) or x.ndim != 2:
        return x
    return np.ascontiguousarray(x) if axis == 0 else np.ascontiguousarray(x.T).T


def matrices(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> tuple[Any, Any]:
    """Two matrices whose plain product is the sum over the one label that `lo`, of two, lacks."""
    left, labels, right, others = (a, la, b, lb) if lo[0] in la else (b, lb, a, la)
    return left if labels[0] == lo[0] else left.T, right if others[1] == lo[1] else right.T


def sparse_first(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> tuple[Any, Any, bool]:
    """Two operands, one of them sparse, as a sparse one times another, and whether that is the transpose.

    Both have two dimensions at most, and one label is summed.
    """
    shape = _arrange(la, lb, lo)
    assert len(shape.inner) == 1, "sparse products join one axis"
    inner = shape.inner[0]
    left = a.T if a.ndim == 2 and la[0] == inner else a
    right = b.T if b.ndim == 2 and lb[1] == inner else b
    flip = len(lo) == 2 and shape.order_out == [1, 0]
    if is_sparse_block(right) and not is_sparse_block(left):  # SciPy's product wants the sparse operand first
        return right.T, left.T, not flip
    return left, right, flip


def _sparse(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> Any:
    """The kernel's or SciPy's product; what is no product of matrices is one of dense blocks."""
    shape = _arrange(la, lb, lo)
    if shape.batch or len(shape.inner) != 1:
        return contract(dense(a), dense(b), la, lb, lo)
    if max(a.ndim, b.ndim) > 2:
        return _stacked(a, b, la, lb, lo)
    if is_sparse_block(a) and is_sparse_block(b) and len(lo) == 2:
        from spartan_ng.kernels.sparse_products import sparse_product

        return sparse_product(*matrices(a, b, la, lb, lo), budget_bytes())
    left, right, flip = sparse_first(a, b, la, lb, lo)
    out = _product(left, right)
    return out.T if flip else out


def _stacked(a: Any, b: Any, la: Labels, lb: Labels, lo: Labels) -> Any:
    """A sparse matrix and a dense array of more axes: all but the summed one are the columns of a matrix."""
    if not is_sparse_block(a):
        a, b, la, lb = b, a, lb, la
    (inner,) = set(la) - set(lo)
    lines = np.moveaxis(b, lb.index(inner), 0)
    out = _product(a.T if la[0] == inner else a, lines.reshape(len(lines), -1))
    made = [x for x in (*la, *lb) if x != inner]
    return out.reshape(-1, *lines.shape[1:]).transpose([made.index(x) for x in lo])


def _product(a: Any, b: Any) -> Any:
    """A sparse matrix times anything: the compiled kernel for what it can do, else SciPy."""
    if not is_sparse_block(b):
        from spartan_ng.kernels.compiled.sparse_product import multiply

        turned = a.format == "csc"
        found = multiply(a.T if turned else a, b, turned)
        if found is not None:
            return found
    return a @ b
