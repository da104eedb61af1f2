"""What a pass takes without its kernels: what is gained by them is weighed against it.

The interpreter goes over a block once for each step; products are BLAS's, with kernels or without. Of rows
that are computed at the non-zeros of a sparse array, these alone count.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.costs.choices import STREAMED_SAVED
from spartan_ng.costs.profile import ONE_THREAD
from spartan_ng.costs.tuned import INTERPRETED_FLOPS_S
from spartan_ng.kernels.patterns import DOT_FLOPS, MOST_DOTS
from spartan_ng.plan.rows import VALUE, Row, Slot
from spartan_ng.plan.stages import Fused
from spartan_ng.plan.stages.passes import row_operations

_OF_BLAS = "fdFD"
"""Dtypes that BLAS multiplies."""
_CALLED = frozenset({"along_axis", "matrices", "take", "search", "random"})
"""Kinds of rows that stay calls of NumPy's beside compiled loops."""


def interpreted_and_saved_s(stage: Fused, slots: Sequence[Slot]) -> tuple[float, float]:
    """Seconds that one thread of the interpreter takes for all of a pass, with what finishes it, and how many
    of these kernels save: none of what stays a call, nor where BLAS multiplies, a share where it waits for
    memory, nearly all of other steps."""
    stored = [None if read.slot == VALUE else slots[read.slot].density for read in stage.reads]
    part = (stored[stage.driver] if stage.is_sampled else None) or 1.0
    shapes = [*(read.shape for read in stage.reads), *(row.shape for row in stage.rows)]
    operations, called, product_ns, waited_ns, pairs_ns = 0, 0, 0, 0, 0
    counts = row_operations(stage.reads, stage.rows, stage.reducers, stored, stage.driver)
    for row, count in zip((*stage.rows, *stage.reducers), counts, strict=True):
        nbytes = row.dtype.itemsize * sum(prod(shapes[a]) for a in row.args)
        if row.kind in _CALLED:
            called += count
        elif not _is_of_blas(row):
            operations += count
        elif not row.sampled:
            took_ns = ONE_THREAD.compute_ns(count, nbytes, 1)
            product_ns += took_ns
            waited_ns += took_ns if took_ns > ONE_THREAD.compute_ns(count, 0, 1) else 0
        else:  # by dot products, or it is BLAS's whole
            flops = count // 2 * DOT_FLOPS if part <= MOST_DOTS else round(count / part)
            pairs_ns += ONE_THREAD.compute_ns(flops, nbytes, 1)
    if operations + called or not product_ns + pairs_ns:
        operations += round(prod(stage.domain) * part)  # one for each element to come by it
    if stage.finish is not None:
        operations += stage.finish.operations(slots)
    saved_s = operations / INTERPRETED_FLOPS_S + pairs_ns / 1e9
    others_s = called / INTERPRETED_FLOPS_S + product_ns / 1e9
    return saved_s + others_s, saved_s + STREAMED_SAVED * waited_ns / 1e9


def _is_of_blas(row: Row) -> bool:
    """Whether BLAS computes it, or NumPy by dot products."""
    return row.kind == "contract" and row.dtype.char in _OF_BLAS and (row.format == "dense" or row.sampled)
