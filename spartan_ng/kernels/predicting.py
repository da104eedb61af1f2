"""What a pass takes without its kernels: what is gained by them is weighed against it.

The interpreter goes over a block once for each step; products are BLAS's, with kernels or without.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.costs.profile import ONE_THREAD
from spartan_ng.costs.tuned import INTERPRETED_FLOPS_S
from spartan_ng.plan.rows import VALUE, Row, Slot
from spartan_ng.plan.stages import Fused
from spartan_ng.plan.stages.passes import row_operations

_OF_BLAS = "fdFD"
"""Dtypes that BLAS multiplies."""


def interpreted_s(stage: Fused, slots: Sequence[Slot]) -> float:
    """Seconds that one thread of the interpreter takes for all of a pass, with what finishes it."""
    stored = [None if read.slot == VALUE else slots[read.slot].density for read in stage.reads]
    shapes = [*(read.shape for read in stage.reads), *(row.shape for row in stage.rows)]
    operations, product_ns = 0, 0
    counts = row_operations(stage.reads, stage.rows, stage.reducers, stored)
    for row, count in zip((*stage.rows, *stage.reducers), counts, strict=True):
        if _is_of_blas(row):
            nbytes = row.dtype.itemsize * sum(prod(shapes[a]) for a in row.args)
            product_ns += ONE_THREAD.compute_ns(count, nbytes, 1)
        else:
            operations += count
    if operations or not product_ns:
        operations += prod(stage.domain)  # one for each element to come by it
    if stage.finish is not None:
        operations += stage.finish.operations(slots)
    return operations / INTERPRETED_FLOPS_S + product_ns / 1e9


def _is_of_blas(row: Row) -> bool:
    """Whether BLAS computes it."""
    return row.kind == "contract" and row.dtype.char in _OF_BLAS and row.format == "dense" and not row.sampled
