"""Elementwise work on turned arrays is done as they lie, and turned afterwards: `x.T + 1 = (x + 1).T`.

In this process, that is; a plan that is explained is that of the program as written. Else a turned array is
read along its columns, a line of the cache for each element, and the result, which is to lie as its operands
do, is copied once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op

Axes = tuple[int, ...]
_HELD = 4
"""Results that take less than this share of the memory stay in it."""


def turned(
    roots: Sequence[Node],
    order: Sequence[Node],
    memory_bytes: int,
    evaluate: Callable[[list[Node]], list[ArrayRef]],
) -> list[ArrayRef] | None:
    """The values of `roots`, whose graph is `order`, by way of nodes that lie as their operands do; None
    where one of them has none, or they take much of the memory: what goes to disk is turned on its way."""
    if sum(root.nbytes for root in roots) > memory_bytes // _HELD:
        return None
    found = [_as_it_lies(root, order) for root in roots]
    plain = [f for f in found if f is not None]
    if len(plain) < len(roots):
        return None
    known: dict[tuple[ArrayRef, Axes], ArrayRef] = {}  # equal steps have one array
    refs = []
    for ref, (_, axes) in zip(evaluate([node for node, _ in plain]), plain, strict=True):
        if (ref, axes) not in known:
            known[ref, axes] = _turn(ref, axes, evaluate)
        refs.append(known[ref, axes])
    return refs


def _turn(ref: ArrayRef, axes: Axes, evaluate: Callable[[list[Node]], list[ArrayRef]]) -> ArrayRef:
    """A new array with its axes in the order `axes`."""
    if ref.value is None:  # it lies in a file
        return evaluate([build.transpose(build.data(ref), axes)])[0]
    return ref.with_axes(axes)


def _as_it_lies(root: Node, order: Sequence[Node]) -> tuple[Node, Axes] | None:
    """A node whose transpose by the axes is `root`: all that it is made of elementwise, scalars aside, is
    turned by them. None where it is not."""
    if root.op is not Op.MAP or root.format != "dense":
        return None
    turns = {n.params[0] for n in order if n.op is Op.TRANSPOSE and n.shape == root.shape}
    if len(turns) != 1:
        return None
    (axes,) = turns
    back = tuple(int(i) for i in np.argsort(axes))
    new: dict[Node, Node | None] = {}
    for node in order:
        new[node] = _turned_back(node, new, root.shape, back)
    found = new[root]
    return None if found is None else (found, axes)


def _turned_back(node: Node, new: dict[Node, Node | None], shape: tuple[int, ...], back: Axes) -> Node | None:
    """A node with its axes in the order `back`, where its inputs have them; None where that would turn it."""
    if node.ndim == 0:
        return node
    if node.shape != shape or node.format != "dense":
        return None
    lies = tuple(shape[i] for i in back)
    if node.op is Op.TRANSPOSE:
        return node.inputs[0]
    if node.op is Op.BROADCAST and node.inputs[0].ndim == 0:
        return build.broadcast(node.inputs[0], lies)
    if node.op is not Op.MAP or not isinstance(node.fn, str) or node.params:
        return None
    inputs = [new[i] for i in node.inputs]
    if any(i is None for i in inputs):
        return None
    return replace(node, inputs=tuple(i for i in inputs if i is not None), shape=lies)
