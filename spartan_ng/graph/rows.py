"""The flat form of a graph: one hashable row a node, leaves numbered. The key under which plans are kept.

Two graphs with equal keys differ in their leaves' values alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node, Op


def flatten(order: Sequence[Node], roots: Sequence[Node]) -> tuple[Hashable, list[ArrayRef]]:
    """The key of a topologically ordered graph, and the arrays of its leaves in order."""
    number: dict[Node, int] = {}
    leaf_number: dict[ArrayRef, int] = {}
    rows: list[Any] = []
    for node in order:
        number[node] = len(rows)
        if node.op is Op.DATA:
            ref = node.data
            assert ref is not None, "a DATA node has an array"
            leaf = leaf_number.setdefault(ref, len(leaf_number))
            nnz = None if ref.nnz is None else ref.nnz.bit_length()
            also = tuple(copy.tiling for copy in ref.also)
            skewed = ref.serial if ref.skewed else None  # its plan has its own cuts
            rows.append((leaf, ref.shape, ref.dtype, ref.tiling, also, nnz, skewed))
        else:
            inputs = tuple(number[i] for i in node.inputs)
            rows.append((node.op, node.fn, inputs, node.params, node.shape, node.dtype, node.format))
    return (tuple(rows), tuple(number[r] for r in roots)), list(leaf_number)
