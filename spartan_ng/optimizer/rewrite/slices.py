"""Push slices towards the leaves: a slice of a map is the map of slices, if nobody needs the rest; so it is
with what is looked up, and with windows, which are.

A slice under a map would store the map's whole value; at a leaf it is a part of the read. So would several
slices, which may overlap, as long as together they are no more than half of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.functions import UserFunction
from spartan_ng.optimizer.rewrite.rule import ReaderCounts, Rule, rewritten


def slice_of_map(node: Node, readers: ReaderCounts) -> Node | None:
    """The map of the slices in place of the slice of the map that it, or it and few others, alone reads."""
    below = node.inputs[0]
    if below.op is not Op.MAP or isinstance(below.fn, UserFunction) or below.format != "dense":
        return None
    if not (readers.alone(below) or readers.in_parts(below)):
        return None
    operands = tuple(_part(i, below, node, readers) for i in below.inputs)
    return Node(Op.MAP, below.fn, operands, below.params, node.shape, below.dtype, below.format)


def slice_of_lookup(node: Node, readers: ReaderCounts) -> Node | None:
    """What a slice of looked up elements reads: fewer places, of a part of the other axes."""
    below = node.inputs[0]
    if below.fn != "take" or any(i.format != "dense" for i in below.inputs):
        return None
    if not (readers.alone(below) or readers.in_parts(below)):
        return None
    (a, places), (axis,) = below.inputs, below.params
    view = [(start, step, n) for (start, step), n in zip(node.params, node.shape, strict=True)]
    of_places = view[axis : axis + places.ndim]
    of_array = [*view[:axis], (0, 1, a.shape[axis]), *view[axis + places.ndim :]]
    return build.take(_cut(a, of_array, readers), _cut(places, of_places, readers), axis)


def slice_of_transpose(node: Node, readers: ReaderCounts) -> Node | None:
    """The transpose of the slice."""
    below = node.inputs[0]
    if below.op is not Op.TRANSPOSE or below.inputs[0].fn != "take" or not readers.alone(below):
        return None  # elsewhere a transpose is how an array is read, as a slice is
    ((axes,), (a,)) = below.params, below.inputs
    # The cut of each axis of `a`, where the transpose has put it.
    view = [(*node.params[i], node.shape[i]) for i in np.argsort(axes)]
    return build.transpose(_cut(a, view, readers), axes)


def _cut(a: Node, view: Sequence[tuple[int, int, int]], readers: ReaderCounts) -> Node:
    starts, steps, shape = zip(*view, strict=True) if view else ((), (), ())
    return readers.cut(a, starts, steps, shape)


def _part(operand: Node, map_node: Node, view: Node, readers: ReaderCounts) -> Node:
    """The operand's part: axes that it stretches, or lacks, are not cut."""
    first = map_node.ndim - operand.ndim
    starts, steps, shape = [], [], []
    for i, n in enumerate(operand.shape):
        start, step = view.params[first + i]
        stretched = n != map_node.shape[first + i]
        starts.append(0 if stretched else start)
        steps.append(1 if stretched else step)
        shape.append(n if stretched else view.shape[first + i])
    return readers.cut(operand, starts, steps, tuple(shape))


SLICE_OF_MAP = Rule(
    "slice of a map",
    "f(x, y)[s]",
    "f(x[s], y[s])",
    "dense results; a user's function stays whole; one slice, or a few that are half of it at most",
    Op.SLICE,
    slice_of_map,
)


_RULES = (
    SLICE_OF_MAP,
    Rule(
        "slice of a lookup",
        "x[places][s]",
        "x[places[s]]",
        "dense operands; one slice, or a few that are half of it at most",
        Op.SLICE,
        slice_of_lookup,
    ),
    Rule(
        "slice of a transpose",
        "x[places].T[s]",
        "x[places][t].T",
        "of a lookup",
        Op.SLICE,
        slice_of_transpose,
    ),
)


def push_slices(roots: Sequence[Node]) -> list[Node]:
    """Move each slice below the elementwise maps and lookups that it alone reads, all the way down."""
    if not any(n.op is Op.SLICE for n in topological(roots)):
        return list(roots)
    return rewritten(_RULES, roots)
