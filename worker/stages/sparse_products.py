"""A stage that multiplies two sparse matrices: threads share the rows of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spartan_ng.kernels.contract import matrices
from spartan_ng.kernels.sparse_products import SparseProduct
from spartan_ng.memory import budget_bytes
from spartan_ng.plan.stages import Fused

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_SMALL_PAIRS = 1 << 13
"""Pairs of non-zeros that one thread multiplies sooner."""
_RUNS = 16
"""Runs of rows for each thread: they differ in how far apart their columns are."""


def is_sparse_product(stage: Fused) -> bool:
    """Whether the stage's one row is such a product: nothing joins it."""
    return [(row.kind, row.format) for row in stage.rows] == [("contract", "csr")]


def run_sparse_product(ex: Executor, run: Run, stage: Fused, operands: list[Any]) -> None:
    """Count what each run of rows has, have room for it all, and fill it."""
    (row,), (write,) = stage.rows, stage.writes
    product = SparseProduct(*matrices(*(operands[n] for n in row.args), *row.params))
    small = int(product.pairs[-1]) < _SMALL_PAIRS
    runs = product.runs(1 if small else ex.threads * _RUNS)
    counts = ex.parallel(run, runs, lambda: product.count, small)
    product.begin(runs, counts, budget_bytes())
    ex.parallel(run, runs, lambda: product.fill, small)
    ex.put(run, write.slots[0], product.result())
