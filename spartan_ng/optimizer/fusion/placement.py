"""What fusion does not ask of large arrays that lie on several workers: to move.

A pass keeps dimensions whole for what it computes once for many elements, and for lines that are needed
whole. That constrains how its operands are cut. What is still to be computed is made as it is wanted, but an
array that lies cut along such a dimension is moved, all of it, to save the storing of a value that is no
larger. So these values are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.group import Group
from spartan_ng.optimizer.fusion.labels import Labels, input_labels, is_transparent
from spartan_ng.optimizer.fusion.legality import SIDE_BYTES, repeated_along

Axes = frozenset[int]
_NONE: Axes = frozenset()


def lies_cut(node: Node) -> bool:
    """Whether a node is a large array in several parts."""
    return bool(_parts_cut(node))


def cut_axes(node: Node, below: Mapping[Node, Axes]) -> Axes:
    """The axes along which a large value lies cut, or is best made: it is a view of what lies so, or made of
    it element by element or line by line.

    `below` has those of its inputs.
    """
    if node.data is not None:
        return _parts_cut(node)
    if not any(below[i] for i in node.inputs):
        return _NONE
    if node.op is Op.SCAN or (node.op is Op.SLICE and node.nbytes > SIDE_BYTES):
        return below[node.inputs[0]]
    if node.fn == "along_axis":  # with whole lines, wherever it has them from
        return frozenset(range(node.ndim)) - {node.params[1]}
    if node.op is not Op.MAP and not is_transparent(node):
        return _NONE
    seen = zip(node.inputs, input_labels(node, tuple(range(node.ndim))), strict=True)
    return frozenset(labels[a] for i, labels in seen for a in below[i] if labels[a] != WHOLE)


def breaks_lines(node: Node, cut: Mapping[Node, Axes]) -> bool:
    """Whether a pass that computes the node needs whole lines of what lies cut across them."""
    if node.op is Op.MAP or not any(cut[i] for i in node.inputs):
        return False
    seen = zip(node.inputs, input_labels(node, tuple(range(node.ndim))), strict=True)
    return any(labels[a] == WHOLE for i, labels in seen for a in cut[i])


def moves_another(
    node: Node,
    labels: Labels,
    stage: Group,
    beside: Sequence[tuple[Node, Labels | None]],
    cut: Mapping[Node, Axes],
) -> bool:
    """Whether dimensions that a node does not follow, in the pass of its reader, are those along which
    another operand of the reader lies cut that is as large; `beside`: its operands as it sees them."""
    if not any(cut[other] for other, _ in beside):
        return False
    kept = repeated_along(node, stage, labels)
    return any(
        seen is not None and other.nbytes >= node.nbytes and any(seen[a] in kept for a in cut[other])
        for other, seen in beside
    )


def _parts_cut(node: Node) -> Axes:
    tiling = None if node.data is None else node.data.tiling
    if tiling is None or node.nbytes <= SIDE_BYTES:
        return _NONE
    return frozenset(a for a, n in enumerate(tiling.parts) if n > 1)
