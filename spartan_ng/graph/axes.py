"""The same steps with axes in another order: `sort(x, 0).T = sort(x.T, 1)`.

What is to lie in another order than C's is made so, line by line, and not copied when all of it is there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, has_lines_of

_ON_LINES = "along_axis"


def reordered(root: Node, axes: tuple[int, ...], order: Sequence[Node]) -> Node | None:
    """A node with the elements of `root` and its axes in the order `axes`, of as much work; None where it
    would be a copy of them.

    `order` is the graph of all that is evaluated together. What others read is not made once more: such
    steps are read turned, as leaves are.
    """
    readers = Counter(i for node in order for i in node.inputs)
    if readers[root] or not _leads_to_lines(root):
        return None
    region: list[Node] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        region.append(node)
        waiting += [
            i for i in dict.fromkeys(node.inputs) if _goes_on(i, node) and readers[i] == node.inputs.count(i)
        ]
    made: dict[Node, Node] = {}
    for node in reversed(region):
        inputs = tuple(made.get(i) or _read_turned(i, node, axes) for i in node.inputs)
        made[node] = _with_axes(node, inputs, axes)
    return made[root]


def _read_turned(value: Node, by: Node, axes: tuple[int, ...]) -> Node:
    """What a step of the region reads of a value outside of it, which a map may stretch."""
    if not value.ndim:
        return value
    return build.transpose(build.broadcast(value, by.shape) if by.op is Op.MAP else value, axes)


def _goes_on(node: Node, reader: Node | None = None) -> bool:
    """Whether a step makes the same of its inputs with the axes in any order, and so does what reads it."""
    if node.format != "dense" or any(i.format != "dense" for i in node.inputs):
        return False
    if not node.ndim or (reader is not None and reader.op is Op.MAP and reader.shape != node.shape):
        return False
    if node.op is Op.MAP:
        return isinstance(node.fn, str) and not node.params
    return node.op is Op.SLICE or (_is_on_lines(node) and all(has_lines_of(node, i) for i in node.inputs))


def _is_on_lines(node: Node) -> bool:
    """Whether a step is one along an axis."""
    if node.op is Op.SCAN:
        return isinstance(node.fn, str)
    return node.op is Op.JOIN_UPDATE and node.fn == _ON_LINES


def _leads_to_lines(root: Node) -> bool:
    """Whether the root is a step along an axis, or made of one element by element."""
    node: Node | None = root
    while node is not None and _goes_on(node):
        if _is_on_lines(node):
            return True
        node = next((i for i in node.inputs if _goes_on(i, node)), None)
    return False


def _with_axes(node: Node, inputs: tuple[Node, ...], axes: tuple[int, ...]) -> Node:
    """A step of the region, of turned inputs."""
    shape = tuple(node.shape[i] for i in axes)
    if node.op is Op.SLICE:
        starts, steps = zip(*(node.params[i] for i in axes), strict=True)
        return build.slice_(inputs[0], starts, steps, shape)
    if node.op is Op.MAP:
        return replace(node, inputs=inputs, shape=shape)
    place = 0 if node.op is Op.SCAN else 1
    along = axes.index(node.params[place])
    params = (*node.params[:place], along, *node.params[place + 1 :])
    return replace(node, inputs=inputs, params=params, shape=shape)
