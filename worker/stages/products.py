"""A stage whose body is one matrix product, on a whole tile: threads fill pieces of the result in place.

No block is cut out of the operands. A dense product is cut into pieces for BLAS, which runs on one thread for
each of ours: a thread that BLAS starts itself goes on waiting for work for a tenth of a second, on a core
that our threads then lack. A sparse product is cut into runs of rows, see `kernels.compiled.sparse_product`.
Neither the pieces of a dense product nor the order of any sum depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.costs.choices import ALONE_PAIRS, PIECE_FLOPS
from spartan_ng.kernels.contract import dense_product, is_matrix_product, matrices, sparse_first
from spartan_ng.memory import budget_bytes
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_RANGES = 16
"""Ranges of kept rows of a sparse operand for each thread: they differ in how far apart their columns are."""
_LEAST_ROWS, _LEAST_COLUMNS, _LEAST_SUMMED = 240, 480, 256
"""Rows, columns and summed elements of a piece that is cut along them, at least."""
_MOST_PIECES, _MOST_OF_ROWS, _MOST_SUMS = 16, 8, 4
"""Pieces at most: of the result, along its rows (for each, BLAS packs all of the other operand), and along
what is summed. They are a power of two, so that few threads have the same number of them."""

_RUNS = 16
"""Runs of rows for each thread: they differ in how far apart their columns are."""

Span = tuple[int, int]


def multiplied(ex: Executor, run: Run, stage: Fused, operands: list[Any]) -> list[Any] | None:
    """The stage's product as the one array of its result; None where blocks have to make it."""
    if not stage.heavy or stage.rows or len(stage.writes) > 1:
        return None
    (write,) = stage.writes
    row = write.reducer
    if row is None or row.kind != "contract" or not is_matrix_product(*row.params):
        return None
    if any(stage.reads[n].expand for n in row.args):  # a stretched axis has its full length in blocks only
        return None
    a, b = (operands[n] for n in row.args)
    if max(a.ndim, b.ndim) != 2 or not a.dtype == b.dtype == row.dtype:
        return None
    kinds = is_sparse(a), is_sparse(b)
    plain = isinstance(a, np.ndarray), isinstance(b, np.ndarray)
    if all(plain) and row.dtype.kind in "fc" and a.ndim == b.ndim:
        value = _dense(ex, run, row, a, b)
    elif any(kinds) and any(plain):
        value = _sparse(ex, run, row, a, b)
    else:
        return None
    return None if value is None else [value.reshape((1,) * len(write.partial) + value.shape)]


def _dense(ex: Executor, run: Run, row: Row, a: Any, b: Any) -> Any:
    """Pieces of the result; where it is small, partial sums of it, added in order."""
    left, right = matrices(a, b, *row.params)
    (m, k), n = left.shape, right.shape[1]
    most = max(1, 2 * m * n * k // PIECE_FLOPS)
    rows = _spans(m, _power_of_two(min(most, _MOST_OF_ROWS, m // _LEAST_ROWS)))
    columns = _spans(n, _power_of_two(min(min(most, _MOST_PIECES) // len(rows), n // _LEAST_COLUMNS)))
    out = ex.store.allocate((m, n), row.dtype)
    if len(rows) * len(columns) > 1:
        mirrored = _is_with_itself(left, right)
        # Those off the diagonal first, which take twice as long.
        pieces = (
            [*combinations(rows, 2), *zip(rows, rows, strict=True)] if mirrored else product(rows, columns)
        )

        def fill(piece: tuple[Span, Span]) -> None:
            (i0, i1), (j0, j1) = piece
            dense_product(left[i0:i1], right[:, j0:j1], out[i0:i1, j0:j1])
            if mirrored and i0 != j0:
                np.copyto(out[j0:j1, i0:i1], out[i0:i1, j0:j1].T)

        _each(ex, run, list(pieces), fill)
        return out
    summed = _spans(k, min(most, _MOST_SUMS, k // _LEAST_SUMMED))

    def add(span: Span) -> Any:
        return dense_product(left[:, span[0] : span[1]], right[span[0] : span[1]])

    sums = _each(ex, run, summed, add)
    np.copyto(out, sums[0])
    return reduce(lambda total, part: np.add(total, part, out=total), sums[1:], out)


def _is_with_itself(left: Any, right: Any) -> bool:
    """Whether a product is that of a matrix with itself turned, which is symmetric: BLAS makes half of
    it, and of pieces on its diagonal."""
    same = left.shape == right.shape[::-1] and left.strides == right.strides[::-1]
    return same and address(left) == address(right)


def _each(ex: Executor, run: Run, items: list[Any], one: Callable[[Any], Any]) -> list[Any]:
    with ex.single_blas():
        return ex.parallel(run, items, lambda: one, small=False)


def _power_of_two(n: int) -> int:
    """The largest that is no more than `n`, one at least."""
    return 1 << (max(n, 1).bit_length() - 1)


def _spans(n: int, count: int) -> list[Span]:
    """`[0, n)` in so many parts, one at least."""
    count = max(count, 1)
    return list(pairwise(n * i // count for i in range(count + 1)))


def _sparse(ex: Executor, run: Run, row: Row, a: Any, b: Any) -> Any:
    """Runs of the result's rows by the compiled kernel; None where there is none."""
    a, b, flip = sparse_first(a, b, *row.params)
    if a.format not in ("csr", "csc"):
        return None
    turned = a.format == "csc"
    from spartan_ng.kernels.compiled.sparse_product import prepare

    found = prepare(a.T if turned else a, b, turned, run.looked)
    if found is None:
        return None
    shape = found.shape[: len(row.params[2])]  # of a vector, it is a column
    out = ex.store.allocate(shape, row.dtype)
    flipped = ex.store.allocate(found.shape[::-1], row.dtype) if flip else None
    ranges = found.ranges(ex.threads * (1 if turned else _RANGES))
    ex.parallel(run, ranges, lambda: lambda rows: found.run(rows, out, flipped), small=False)
    return out if flipped is None else flipped


def is_sparse_product(stage: Fused) -> bool:
    """Whether the stage's one row is such a product: nothing joins it."""
    return len(stage.rows) == 1 and (stage.rows[0].kind, stage.rows[0].format) == ("contract", "csr")


def run_sparse_product(ex: Executor, run: Run, stage: Fused, operands: list[Any]) -> None:
    """Count what each run of rows has, have room for it all, and fill it."""
    (row,), (write,) = stage.rows, stage.writes
    from spartan_ng.kernels.sparse_products import SparseProduct

    product = SparseProduct(*matrices(*(operands[n] for n in row.args), *row.params))
    small = int(product.pairs[-1]) < ALONE_PAIRS
    runs = product.runs(1 if small else ex.threads * _RUNS)
    counts = ex.parallel(run, runs, lambda: product.count, small)
    product.begin(runs, counts, budget_bytes())
    ex.parallel(run, runs, lambda: product.fill, small)
    ex.put(run, write.slots[0], product.result())
