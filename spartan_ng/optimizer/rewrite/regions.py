"""The part of a program that makes a box of each of its results: every value in the box that is needed of it.

From the results down, each operator says which boxes of its inputs a box of its value is made of; a value
with several readers is made in the boxes that they need, one around those that are close. A row of `_RULES`
is an operator's law; a value without one is made whole, as it would be anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import Box, box_of, box_shape, box_size, intersect
from spartan_ng.costs.choices import BOX_SLACK
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, has_lines_of, topological
from spartan_ng.ops.functions import UserFunction

Boxes = list[Box | None]
"""A box of each input, None where nothing of it is needed."""


class BoxRule(Struct, frozen=True):
    """How a box of a node's value is made.

    Parameters
    ----------
    needs : the boxes of the inputs that a box of the value is made of
    make : the value inside the box, of the inputs inside theirs (None for those that are not needed)
    """

    needs: Callable[[Node, Box], Boxes]
    make: Callable[[Node, Box, list[Node | None]], Node]


def restricted(
    roots: Sequence[Node], boxes: Sequence[Box], leaf: Callable[[Node, Box], Node]
) -> tuple[list[Node], list[tuple[Node, Box]]]:
    """`roots` inside `boxes`, and the DATA leaves with the boxes that are needed of them; `leaf` gives their
    values there."""
    order = topological(roots)
    needed: dict[Node, list[Box]] = {}
    for root, box in zip(roots, boxes, strict=True):
        add(needed.setdefault(root, []), box)
    asked: dict[tuple[Node, Box], Boxes] = {}
    # All boxes that are needed of a node are known when its readers have said theirs.
    for node in reversed(order):
        for box in needed.get(node, ()) if node.inputs else ():
            asked[node, box] = _rule(node, box).needs(node, box)
            for i, part in zip(node.inputs, asked[node, box], strict=True):
                if part is not None:
                    is_cut = i.format == "dense" and box_size(part) > 0
                    add(needed.setdefault(i, []), part if is_cut else box_of(i.shape))
    made: dict[tuple[Node, Box], Node] = {}

    def part_of(node: Node, box: Box) -> Node:
        at = containing(needed[node], box)
        return inside(made[node, at], at, box)

    for node in order:
        for box in needed.get(node, ()):
            if node.op is Op.DATA:
                made[node, box] = leaf(node, box)
                continue
            inputs = zip(node.inputs, asked.get((node, box), ()), strict=True)
            parts = [None if part is None else part_of(i, part) for i, part in inputs]
            made[node, box] = _rule(node, box).make(node, box, parts)
    found = [part_of(root, box) for root, box in zip(roots, boxes, strict=True)]
    return found, [at for at in made if at[0].op is Op.DATA]


def add(boxes: list[Box], box: Box) -> None:
    """One more box among those that are needed: two become one where that is hardly larger than they are."""
    apart = []
    for other in boxes:
        both = _around(box, other)
        if box_size(both) <= BOX_SLACK * (box_size(box) + box_size(other)):
            box = both
        else:
            apart.append(other)
    boxes[:] = [*apart, box]


def containing(boxes: Iterable[Box], box: Box) -> Box:
    """The box that another lies in."""
    return next(
        at for at in boxes if all(o <= lo and hi <= p for (lo, hi), (o, p) in zip(box, at, strict=True))
    )


def _around(a: Box, b: Box) -> Box:
    """The smallest box around two."""
    return tuple((min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True))


def inside(node: Node, at: Box, box: Box) -> Node:
    """The part `box` of an array of which `node` is the part `at`."""
    starts = [lo - o for (lo, _), (o, _) in zip(box, at, strict=True)]
    return build.slice_(node, starts, (1,) * len(box), box_shape(box))


def _rule(node: Node, box: Box) -> BoxRule:
    """The law of a node; what is sparse, empty or a user's is made whole."""
    if node.format != "dense" or isinstance(node.fn, UserFunction) or not box_size(box):
        return _WHOLE
    if not node.ndim and node.op is Op.RESHAPE:
        return _WHOLE
    has_lines = node.op is Op.SCAN or node.fn == "along_axis"
    # A stretched operand's lines are not the box's.
    if has_lines and not all(has_lines_of(node, i) for i in node.inputs):
        return _WHOLE
    name = f"{node.op}:{node.fn}" if node.op is Op.JOIN_UPDATE else str(node.op)
    return _RULES.get(name, _WHOLE)


def _again(node: Node, inputs: Sequence[Node | None], shape: tuple[int, ...]) -> Node:
    """The same operator over other inputs."""
    return replace(node, inputs=tuple(_there(i) for i in inputs), shape=shape)


def _there(part: Node | None) -> Node:
    assert part is not None, "its box was asked for"
    return part


def _needs_whole(node: Node, box: Box) -> Boxes:
    return [box_of(i.shape) for i in node.inputs]


def _make_whole(node: Node, box: Box, parts: list[Node | None]) -> Node:
    same = all(a is b for a, b in zip(parts, node.inputs, strict=True))
    return inside(node if same else _again(node, parts, node.shape), box_of(node.shape), box)


_WHOLE = BoxRule(_needs_whole, _make_whole)


# --- elementwise, and views ------------------------------------------------------------------------------


def _under(operand: Node, shape: tuple[int, ...], box: Box) -> Box:
    """The part of an operand that is broadcast to `shape` under a box: what is stretched is there whole."""
    first = len(shape) - operand.ndim
    return tuple(box[first + i] if n == shape[first + i] else (0, n) for i, n in enumerate(operand.shape))


def _map_needs(node: Node, box: Box) -> Boxes:
    return [_under(i, node.shape, box) for i in node.inputs]


def _make_again(node: Node, box: Box, parts: list[Node | None]) -> Node:
    return _again(node, parts, box_shape(box))


def _slice_needs(node: Node, box: Box) -> Boxes:
    found = []
    for (start, step), (lo, hi) in zip(node.params, box, strict=True):
        ends = start + step * lo, start + step * (hi - 1)
        found.append((min(ends), max(ends) + 1))
    return [tuple(found)]


def _make_slice(node: Node, box: Box, parts: list[Node | None]) -> Node:
    below = _there(parts[0])
    steps = [step for _, step in node.params]
    # The part is cut to what is read, so that a slice begins at one of its ends.
    starts = [0 if step > 0 else n - 1 for step, n in zip(steps, below.shape, strict=True)]
    return build.slice_(below, starts, steps, box_shape(box))


def _transpose_needs(node: Node, box: Box) -> Boxes:
    (axes,) = node.params
    return [tuple(box[axes.index(a)] for a in range(node.ndim))]


def _make_broadcast(node: Node, box: Box, parts: list[Node | None]) -> Node:
    return build.broadcast(_there(parts[0]), box_shape(box))


def _rows(shape: tuple[int, ...]) -> int:
    """The first axis that is longer than one, or the last."""
    return next((a for a, n in enumerate(shape) if n > 1), len(shape) - 1)


def _run(shape: tuple[int, ...], box: Box) -> tuple[int, int]:
    """The rows that a box meets, as a run of elements in C order."""
    axis = _rows(shape)
    row = prod(shape[axis + 1 :])
    return box[axis][0] * row, box[axis][1] * row


def _reshape_needs(node: Node, box: Box) -> Boxes:
    below = node.inputs[0]
    if not below.ndim:
        return [()]
    lo, hi = _run(node.shape, box)
    axis = _rows(below.shape)
    row = prod(below.shape[axis + 1 :])
    return [tuple((lo // row, -(-hi // row)) if a == axis else (0, n) for a, n in enumerate(below.shape))]


def _make_reshape(node: Node, box: Box, parts: list[Node | None]) -> Node:
    below, part = node.inputs[0], _there(parts[0])
    lo, hi = _run(node.shape, box)
    (at,) = _reshape_needs(node, box)
    assert at is not None, "a part of the input is needed"
    first = _run(below.shape, at)[0] if below.ndim else 0
    # Rows on either side are runs of elements: those of the box begin somewhere in the part's.
    line = build.slice_(build.reshape_step(part, (part.size,)), [lo - first], [1], (hi - lo,))
    axis = _rows(node.shape)
    rows = tuple(box[a] if a == axis else (0, n) for a, n in enumerate(node.shape))
    return inside(build.reshape_step(line, box_shape(rows)), rows, box)


# --- along lines -----------------------------------------------------------------------------------------


def _fold_needs(node: Node, box: Box) -> Boxes:
    axes, rest = node.params[0], iter(box)
    shape = node.inputs[0].shape
    whole = tuple((0, n) if a in axes else next(rest) for a, n in enumerate(shape))
    return [_under(i, shape, whole) for i in node.inputs]


def _lines(axis: int, node: Node, box: Box) -> Box:
    """The box with whole lines along an axis."""
    return tuple((0, n) if a == axis else b for a, (n, b) in enumerate(zip(node.shape, box, strict=True)))


def _scan_needs(node: Node, box: Box) -> Boxes:
    return [_lines(node.params[0], node, box)] * len(node.inputs)


def _make_scan(node: Node, box: Box, parts: list[Node | None]) -> Node:
    lines = _lines(node.params[0], node, box)
    return inside(_again(node, parts, box_shape(lines)), lines, box)


def _along_needs(node: Node, box: Box) -> Boxes:
    return [_lines(node.params[1], i, box) for i in node.inputs]


def _make_along(node: Node, box: Box, parts: list[Node | None]) -> Node:
    lines = _lines(node.params[1], node, box)
    return inside(_again(node, parts, box_shape(lines)), lines, box)


# --- joins -----------------------------------------------------------------------------------------------


def _contract_needs(node: Node, box: Box) -> Boxes:
    *operands, out = node.params
    of = dict(zip(out, box, strict=True))
    return [
        tuple(of.get(label, (0, n)) for label, n in zip(labels, i.shape, strict=True))
        for labels, i in zip(operands, node.inputs, strict=True)
    ]


def _concatenate_needs(node: Node, box: Box) -> Boxes:
    (axis,), found, first = node.params, [], 0
    for i in node.inputs:
        n = i.shape[axis]
        there = [(lo - first, hi - first) if a == axis else (lo, hi) for a, (lo, hi) in enumerate(box)]
        found.append(intersect(tuple(there), box_of(i.shape)))
        first += n
    return list(found)


def _make_concatenate(node: Node, box: Box, parts: list[Node | None]) -> Node:
    there = [p for p in parts if p is not None]
    return there[0] if len(there) == 1 else build.concatenate(there, node.params[0])


def _written(node: Node, box: Box) -> Box | None:
    """The part of an assigned value that lies in a box."""
    found = []
    for (start, step), (lo, hi), n in zip(node.params, box, node.inputs[1].shape, strict=True):
        first, last = sorted((start, start + step * (n - 1)))
        stride = abs(step)
        a = max(0, -(-(lo - first) // stride))
        b = min(n, (min(hi - 1, last) - first) // stride + 1)
        found.append((a, b) if step > 0 else (n - b, n - a))
    whole = tuple(found)
    return whole if box_size(whole) and all(a < b for a, b in whole) else None


def _assign_needs(node: Node, box: Box) -> Boxes:
    return [box, _written(node, box)]


def _make_assign(node: Node, box: Box, parts: list[Node | None]) -> Node:
    base, value = _there(parts[0]), parts[1]
    at = _written(node, box)
    if value is None or at is None:
        return base
    region = tuple(
        (start + step * a - lo, step)
        for (start, step), (a, _), (lo, _) in zip(node.params, at, box, strict=True)
    )
    return build.assign(base, value, region)


def _tile_as_needs(node: Node, box: Box) -> Boxes:
    return [box]


def _make_tile_as(node: Node, box: Box, parts: list[Node | None]) -> Node:
    return _there(parts[0])


def _take_needs(node: Node, box: Box) -> Boxes:
    (axis,), (a, indices) = node.params, node.inputs
    behind = axis + indices.ndim
    # Along the axis anything may be looked up.
    return [(*box[:axis], (0, a.shape[axis]), *box[behind:]), box[axis:behind]]


_RULES: Mapping[str, BoxRule] = {
    "map": BoxRule(_map_needs, _make_again),
    "slice": BoxRule(_slice_needs, _make_slice),
    "transpose": BoxRule(_transpose_needs, _make_again),
    "broadcast": BoxRule(_map_needs, _make_broadcast),
    "reshape": BoxRule(_reshape_needs, _make_reshape),
    "fold": BoxRule(_fold_needs, _make_again),
    "scan": BoxRule(_scan_needs, _make_scan),
    "join_update:along_axis": BoxRule(_along_needs, _make_along),
    "join_update:contract": BoxRule(_contract_needs, _make_again),
    "join_update:concatenate": BoxRule(_concatenate_needs, _make_concatenate),
    "join_update:assign": BoxRule(_assign_needs, _make_assign),
    "join_update:tile_as": BoxRule(_tile_as_needs, _make_tile_as),
    "join_update:take": BoxRule(_take_needs, _make_again),
}
"""By the operator, and of a join its name."""
