"""Sources under another shape, as sources: a reshape would have all of one in memory, or on disk, first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.rewrite.rebuild import rebuild
from spartan_ng.sources.in_order import shaped_source


def read_in_order(roots: Sequence[Node], room: int) -> list[Node]:
    """`roots` with what takes more than so many bytes, and is made of sources element by element, made of
    sources of the shape that is asked for."""
    leaves: dict[tuple[Node, tuple[int, ...]], Node] = {}

    def rule(node: Node) -> Node:
        if node.op is not Op.RESHAPE or node.nbytes <= room:
            return node
        return _shaped(node.inputs[0], node.shape, leaves) or node

    return rebuild(roots, rule)


def _shaped(
    node: Node, shape: tuple[int, ...], leaves: dict[tuple[Node, tuple[int, ...]], Node]
) -> Node | None:
    """The node under another shape, without a reshape; None where that takes one."""
    if node.data is not None and node.data.chunks is not None:
        if (node, shape) not in leaves:
            source = None if node.data.source is None else shaped_source(node.data.source, shape)
            if source is None:
                return None
            leaves[node, shape] = build.data(ArrayRef(shape, node.dtype, source=source))
        return leaves[node, shape]
    if node.data is not None and node.data.is_mapped:
        of_file = build.reshape(node, shape)
        return of_file if of_file.op is Op.DATA else None
    if node.op is not Op.MAP or node.format != "dense":
        return None
    inputs = []
    for operand in node.inputs:
        found = _shaped(operand, shape, leaves) if operand.shape == node.shape else None
        if operand.ndim and found is None:
            return None
        inputs.append(operand if found is None else found)
    if all(operand.shape != shape for operand in inputs):  # numbers alone, of which the step makes one
        return None
    return replace(node, inputs=tuple(inputs), shape=shape)
