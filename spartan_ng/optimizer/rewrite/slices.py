"""Push slices towards the leaves: a slice of a map is the map of slices, if nobody needs the rest; so it is
with what is looked up, and with windows, which are.

A slice under a map would store the map's whole value; at a leaf it is a part of the read. So would several
slices, which may overlap, as long as together they are no more than half of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.random import is_stream, is_walk, logical_block, part_key
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


def slice_of_indices(node: Node, readers: ReaderCounts) -> Node | None:
    """Indices from another one on, in other steps."""
    below = node.inputs[0]
    if below.op is not Op.INDEX:
        return None
    ((start, step),), (first, stride) = node.params, below.params or (0, 1)
    return build.iota(node.shape[0], first + stride * start, stride * step)


def slice_of_draws(node: Node, readers: ReaderCounts) -> Node | None:
    """The numbers that are asked for alone: those of a stream wherever they are, those of logical blocks
    where no more of these are drawn than make up all."""
    below = node.inputs[0]
    if below.op is not Op.RANDOM or not (readers.alone(below) or readers.in_parts(below)):
        return None
    key, *parameters = below.params
    if is_walk(key) and any(step < 0 for _, step in node.params):
        return None  # nobody walks backwards
    part = part_key(key, below.shape, node.params)
    if not is_stream(key) and _times_drawn(part, node.shape) >= 1:
        return None
    return build.random(str(below.fn), part, tuple(parameters), node.shape, below.dtype)


def _times_drawn(part: tuple[Any, ...], shape: tuple[int, ...]) -> float:
    """How much of an array is drawn for a part of it: a block of that may meet two logical blocks an axis."""
    _, _, whole, view = part
    found = 1.0
    for n, b, size, (start, step) in zip(whole, logical_block(whole), shape, view, strict=True):
        drawn = b * min(-(-size * abs(step) // b), size) * (1 if step > 0 and not start % b else 2)
        found *= drawn / n
    return found


def reshape_of_draws(node: Node, readers: ReaderCounts) -> Node | None:
    """The same numbers of a stream, drawn in another shape."""
    below = node.inputs[0]
    if below.op is not Op.RANDOM or below.params[0][0] not in ("stream", "walk") or not readers.alone(below):
        return None
    key, *parameters = below.params
    return build.random(str(below.fn), key, tuple(parameters), node.shape, below.dtype)


def slice_of_reshape(node: Node, readers: ReaderCounts) -> Node | None:
    """What is made of indices, or of a stream's numbers, element by element, is made of those that a slice of
    it has in another shape."""
    below = node.inputs[0]
    a = below.inputs[0] if below.op is Op.RESHAPE else below
    if a is below or not readers.alone(below) or not _is_made(a, readers):
        return None
    if a.op is Op.INDEX:
        return _indices(a, node, below.shape)
    starts, steps = zip(*node.params, strict=True)
    if a.op is Op.RANDOM:
        key, *parameters = a.params
        made = build.random(str(a.fn), key, tuple(parameters), below.shape, a.dtype)
        return build.slice_(made, starts, steps, node.shape)
    wide = (build.reshape_step(i, below.shape) if i.ndim else i for i in a.inputs)
    parts = tuple(build.slice_(i, starts, steps, node.shape) if i.ndim else i for i in wide)
    return Node(Op.MAP, a.fn, parts, a.params, node.shape, a.dtype)


def _is_made(a: Node, readers: ReaderCounts) -> bool:
    """Whether a value that nobody else reads is made of indices, or a stream's numbers, and scalars alone."""
    if a.op is Op.INDEX:
        return True
    if not readers.alone(a):
        return False
    if a.op is Op.RANDOM:
        return a.params[0][0] in ("stream", "walk")
    if a.op is not Op.MAP or isinstance(a.fn, UserFunction):
        return False
    wide = [i for i in a.inputs if i.ndim]
    return all(i.shape == a.shape and _is_made(i, readers) for i in wide) and bool(wide)


def _indices(a: Node, view: Node, shape: tuple[int, ...]) -> Node:
    """A part of indices in another shape: for each axis how far its places lie from the first."""
    first, stride = a.params or (0, 1)
    found = build.iota(1, first)
    for d, ((start, step), n) in enumerate(zip(view.params, view.shape, strict=True)):
        along = stride * prod(shape[d + 1 :])
        line = build.iota(n, start * along, step * along)
        found = build.map_("add", found, build.reshape_step(line, (n, *(1,) * (len(shape) - d - 1))))
    return found


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
        "slice of indices",
        "arange(n)[s]",
        "s.start + s.step * arange(m)",
        "",
        Op.SLICE,
        slice_of_indices,
    ),
    Rule(
        "slice of random numbers",
        "rng.random(shape)[s]",
        "these numbers alone",
        "one slice, or a few that are half of it at most; of those drawn in logical blocks no more than all",
        Op.SLICE,
        slice_of_draws,
    ),
    Rule(
        "reshape of random numbers",
        "rng.random(n).reshape(shape)",
        "rng.random(shape)",
        "of a stream, that nobody else reads",
        Op.RESHAPE,
        reshape_of_draws,
    ),
    Rule(
        "slice of a reshape",
        "f(arange(n)).reshape(shape)[s]",
        "f(these indices)",
        "what is made of indices or a stream's numbers, and scalars, that nobody else reads",
        Op.SLICE,
        slice_of_reshape,
    ),
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
    if not any(n.op is Op.SLICE or _is_of_draws(n) for n in topological(roots)):
        return list(roots)
    return rewritten(_RULES, roots)


def _is_of_draws(node: Node) -> bool:
    return node.op is Op.RESHAPE and node.inputs[0].op is Op.RANDOM
