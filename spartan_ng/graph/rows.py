"""The flat form of a graph: one hashable tuple, leaves numbered. The key under which plans are kept.

Two graphs with equal keys differ in their leaves' values alone. A node is its own fields, then the numbers of
its inputs; a leaf is a tuple. All lies in one row, so that a program that comes again is walked once and
allocates next to nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node


def flatten(order: Sequence[Node], roots: Sequence[Node]) -> tuple[Hashable, list[ArrayRef]]:
    """The key of a topologically ordered graph, and the arrays of its leaves in order."""
    number: dict[Node, int] = {}
    leaf_number: dict[ArrayRef, int] = {}
    row: list[Any] = []
    place = number.__getitem__
    for i, node in enumerate(order):
        number[node] = i
        ref = node.data
        if ref is None:
            inputs = map(place, node.inputs)
            row += (node.op, node.fn, node.params, node.shape, node.dtype, node.format, *inputs)
        else:
            leaf = leaf_number.setdefault(ref, len(leaf_number))
            nnz = None if ref.nnz is None else ref.nnz.bit_length()
            also = tuple(copy.tiling for copy in ref.also) if ref.also else ()
            skewed = ref.serial if ref.skewed else None  # its plan has its own cuts
            outside = (ref.chunks, ref.beside_bytes, ref.whole_bytes) if ref.value is None else ref.is_mapped
            row.append((leaf, ref.shape, ref.dtype, ref.format, ref.tiling, also, nnz, skewed, outside))
    row.append(tuple(map(place, roots)))
    return tuple(row), list(leaf_number)
