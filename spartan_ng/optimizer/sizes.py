"""How large sparse results will be: known for data, measured in an earlier run, sampled, or estimated.

Spartan (ATC '15), section 3.4, "Sparse arrays": sizes are estimated by sampling before a program runs, and
corrected by what was measured when it has run.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from spartan_ng.arrays.sparse import csr_bytes, csr_nonzeros
from spartan_ng.costs.operations import met, pairs
from spartan_ng.graph.node import VIEWS, Node, Op

_SAMPLED_ROWS = 64
_PLACING = frozenset({Op.MAP, Op.TRANSPOSE, Op.RESHAPE})
"""Operators that of one sparse operand of their size have an element wherever that has one."""


def sparse_key(fn: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Hashable:
    """Under which the bytes of a sparse result are remembered."""
    return ("csr", str(fn), shape, dtype.str)


def expected_bytes(found: Mapping[Node, float]) -> dict[Node, int]:
    """Bytes of CSR nodes that are expected to have so many non-zeros."""
    return {
        n: n.nbytes if n.data is not None else csr_bytes(int(nnz), n.shape[0], n.dtype.itemsize)
        for n, nnz in found.items()
    }


def expected_nonzeros(order: Sequence[Node], measured: Mapping[Hashable, int]) -> dict[Node, float]:
    """Non-zeros of every CSR node of a topologically ordered graph.

    What has been measured of other operands never stands for what these ones say for sure.
    """
    nnz: dict[Node, float] = {}
    sure: set[Node] = set()
    for node in order:
        if node.format != "csr":
            continue
        if node.data is not None:
            nnz[node] = node.data.nnz or 0
            sure.add(node)
            continue
        sparse = [i for i in node.inputs if i in nnz]
        if node.op in _PLACING and len(sparse) == 1 and sparse[0] in sure and sparse[0].size == node.size:
            nnz[node] = nnz[sparse[0]]
            sure.add(node)
            continue
        known = measured.get(sparse_key(node.fn, node.shape, node.dtype))
        nnz[node] = (
            _expected(node, nnz) if known is None else csr_nonzeros(known, node.shape[0], node.dtype.itemsize)
        )
    return nnz


def _expected(node: Node, nnz: Mapping[Node, float]) -> float:
    """Non-zeros of a result from those of its sparse operands."""
    operands = [i for i in node.inputs if i in nnz]
    if node.size == 0:
        return 0.0
    if node.fn == "contract":
        return met(node.size, pairs(node, nnz))
    if node.op in VIEWS or len(operands) == 1:
        return min(nnz[operands[0]] * node.size / max(operands[0].size, 1), node.size)
    sample = _sampled(node, operands)
    if sample is not None:
        return sample
    if node.fn == "multiply":
        density = 1.0
        for i in operands:
            density *= nnz[i] / max(i.size, 1)
        return density * node.size
    return min(sum(nnz[i] for i in operands), node.size)


def _sampled(node: Node, operands: Sequence[Node]) -> float | None:
    """Non-zeros of an elementwise result, from some rows of operands whose values are here."""
    values: list[Any] = []
    for i in operands:
        value = i.data.value if i.op is Op.DATA and i.data is not None else None
        if value is None or value.shape != node.shape:
            return None
        values.append(value)
    rows = np.unique(np.linspace(0, node.shape[0] - 1, _SAMPLED_ROWS).astype(int))
    patterns = [(v[rows] != 0).astype(np.int8) for v in values]
    total = patterns[0]
    for pattern in patterns[1:]:
        total = total.multiply(pattern) if node.fn == "multiply" else total + pattern
    return float(total.nnz) * node.shape[0] / len(rows)
