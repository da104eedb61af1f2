"""Views become reads: a chain of views over a stored array is one affine index map.

Spartan (ATC '15), section 3.1: the shape and location of a view are translated to those of the
underlying array when a tile is read; no view is ever copied for its own sake.
"""

from __future__ import annotations

from collections.abc import Container

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.labels import Labels, unit_reshape
from spartan_ng.plan.rows import Axis, Read


def base_of(node: Node, stored: Container[Node]) -> Node:
    """The stored array (or leaf) under a chain of views."""
    while node not in stored and node.op is not Op.DATA:
        (node,) = node.inputs
    return node


def view_read(node: Node, labels: Labels, base: Node, slot: int) -> Read:
    """The read of `node`, a chain of views over the array `base` in `slot`, under `labels`."""
    axes = [Axis(label, 0, 1, n) for label, n in zip(labels, node.shape, strict=True)]
    order = list(range(node.ndim))
    current = node
    while current is not base:
        axes, order = _UNDER[current.op](current, axes, order)
        (current,) = current.inputs
    stretched = any((o < 0 or axes[o].size != n) and n != 1 for o, n in zip(order, node.shape, strict=True))
    return Read(slot, tuple(axes), tuple(order), node.shape, labels, stretched)


def _under_transpose(view: Node, axes: list[Axis], order: list[int]) -> tuple[list[Axis], list[int]]:
    (permutation,) = view.params
    below = list(axes)
    for position, axis in enumerate(permutation):
        below[axis] = axes[position]
    return below, [permutation[o] if o >= 0 else -1 for o in order]


def _under_slice(view: Node, axes: list[Axis], order: list[int]) -> tuple[list[Axis], list[int]]:
    below = [
        Axis(a.label, start + step * a.start, step * a.step, a.size)
        for a, (start, step) in zip(axes, view.params, strict=True)
    ]
    return below, order


def _under_broadcast(view: Node, axes: list[Axis], order: list[int]) -> tuple[list[Axis], list[int]]:
    base = view.inputs[0]
    first = view.ndim - base.ndim
    below = [
        axes[first + i] if n == view.shape[first + i] else Axis(WHOLE, 0, 1, 1)
        for i, n in enumerate(base.shape)
    ]
    return below, [o - first if o >= first else -1 for o in order]


def _under_reshape(view: Node, axes: list[Axis], order: list[int]) -> tuple[list[Axis], list[int]]:
    source = unit_reshape(view)
    assert source is not None, "a reshape that moves elements is a stage"
    below = [Axis(WHOLE, 0, 1, 1)] * view.inputs[0].ndim
    for new, old in enumerate(source):
        if old >= 0:
            below[old] = axes[new]
    return below, [source[o] if o >= 0 else -1 for o in order]


_UNDER = {
    Op.TRANSPOSE: _under_transpose,
    Op.SLICE: _under_slice,
    Op.BROADCAST: _under_broadcast,
    Op.RESHAPE: _under_reshape,
}
