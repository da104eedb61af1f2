"""Rows that keep the last bits, however their operands lie in memory and are cut: `config.reproducible`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.kernels.formats import is_sparse_block
from spartan_ng.ops.folds import FOLDS, fold_in_order
from spartan_ng.plan.rows import Row

Evaluate = Callable[[list[Any], Box, Any], Any]


def exactly(row: Row, evaluate: Evaluate) -> Evaluate:
    """What computes a row so that its bits are always the same; `evaluate` is what computes it else."""
    if row.kind == "fold" and isinstance(row.fn, str):
        return _fold_in_order(row, evaluate)
    if row.kind != "map":
        return evaluate

    def on_forward_operands(registers: list[Any], block: Box, out: Any) -> Any:
        if isinstance(out, np.ndarray) and out.size == 1 and out.dtype.kind == "c":
            out = None  # a single product in place of its factor has other last bits than one of several
        turned = [a for a in row.args if _is_turned(registers[a])]
        if turned:  # of these, NumPy's loops do not make vectors, and have other last bits
            registers = list(registers)
            for a in turned:
                registers[a] = np.array(registers[a], order="C")
        return evaluate(registers, block, out)

    return on_forward_operands


def _is_turned(x: Any) -> bool:
    return isinstance(x, np.ndarray) and any(step < 0 for step in x.strides)


def _fold_in_order(row: Row, evaluate: Evaluate) -> Evaluate:
    """A fold in the order of `ops.order`, whose axes a block has whole; of a sparse operand in SciPy's."""
    (axes,) = row.params
    fold = FOLDS[str(row.fn)]

    def fold_block(registers: list[Any], block: Box, out: Any) -> Any:
        if any(is_sparse_block(registers[a]) for a in row.args):
            return evaluate(registers, block, out)
        x, *masks = (registers[a] for a in row.args)
        kept = iter(row.shape)
        shape = tuple(n if a in axes else next(kept) for a, n in enumerate(x.shape))
        return fold_in_order(fold, x, axes, row.dtype, masks[0] if masks else None, shape)

    return fold_block
