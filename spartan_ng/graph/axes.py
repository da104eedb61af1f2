"""The same steps with axes in another order: `x.T + 1 = (x + 1).T`, `sort(x, 0).T = sort(x.T, 1)`.

Arrays that lie turned in memory (in Fortran's order, or as the transpose of one in C's) are worked on as they
lie, and so is what is made of them. Else each pass would read them along their columns, a line of the cache
for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, has_lines_of
from spartan_ng.graph.trail import tell

Axes = tuple[int, ...]
_VIEWS = (Op.SLICE, Op.TRANSPOSE)
_STRETCHED = 2
"""An operand with less than one part in so many of the elements is put into any order of axes."""
_FEW = 8
"""Elements of computed steps that are turned back are one part in so many of the largest array at most."""


def as_they_lie(roots: Sequence[Node], order: Sequence[Node]) -> list[Node] | None:
    """Nodes with the values of `roots`, whose graph is `order`, where steps on turned arrays are done in the
    order of axes in which these lie; None where there are no such steps, or their results are to be in C's
    order for who reads them.

    Sums of floating numbers may be rounded in another way, and stay as they are with `config.reproducible`.
    """
    if not _has_steps_on_turned(order):
        return None
    lying = _Lying()
    for node in order:
        lying.add(node)
    found = [lying.root(r) for r in roots]
    if not lying.has_turned or lying.turned_back * _FEW > max(n.size for n in order):
        return None
    lying.tell()
    return found


def _has_steps_on_turned(order: Sequence[Node]) -> bool:
    """Whether steps may be done in another order of axes: not where all that is turned are views of leaves,
    and products alone read them, as `X.T @ v` does. Loops ask that each turn."""
    views, turned = set[Node](), set[Node]()
    for node in order:
        value = None if node.data is None else node.data.value
        if node.data is not None or (node.op in _VIEWS and node.inputs[0] in views):
            views.add(node)
            lies_turned = isinstance(value, np.ndarray) and not value.flags.c_contiguous
            if lies_turned or node.op is Op.TRANSPOSE or not turned.isdisjoint(node.inputs):
                turned.add(node)
        elif node.op is Op.TRANSPOSE or not (node.fn == "contract" or turned.isdisjoint(node.inputs)):
            return True
    return False


class _Lying:
    """For each node of a graph one that its value is a transpose of, and by which axes."""

    def __init__(self) -> None:
        self.has_turned = False
        self.turned_back = 0
        """Elements of steps that are done as they lie, and read as they do not."""
        self._made: dict[Node, tuple[Node, Axes]] = {}
        self._views: set[Node] = set()
        """Leaves, and what is seen of them, which anybody reads in any order."""
        self._leaves: dict[ArrayRef, Node] = {}

    def add(self, node: Node) -> None:
        """The next node of the graph, whose inputs are known."""
        found = None
        if node.format == "dense" and all(i.format == "dense" for i in node.inputs):
            found = self._leaf(node) if node.data is not None else self._turned(node)
        is_view = node.data is not None or node.op in _VIEWS
        if is_view and self._views.issuperset(node.inputs):
            self._views.add(node)
        elif found is not None and not is_view:
            self.has_turned = True
        self._made[node] = (self._of_plain(node), _same(node)) if found is None else found

    def root(self, node: Node) -> Node:
        """What is evaluated for a root, which is to be in memory of its own."""
        found = self._plain(node)
        return node if found.op is Op.DATA else found

    def tell(self) -> None:
        """Say what is in the place of which."""
        tell({node: made for node, (made, _) in self._made.items()})

    def _plain(self, node: Node) -> Node:
        """A node's value in C's order of axes."""
        made, axes = self._made[node]
        if node in self._views:
            return node
        if axes != _same(node) and node.op is not Op.TRANSPOSE:
            self.turned_back += node.size
        return build.transpose(made, axes)

    def _of_plain(self, node: Node) -> Node:
        inputs = tuple(map(self._plain, node.inputs))
        is_same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        return node if is_same else replace(node, inputs=inputs)

    def _leaf(self, node: Node) -> tuple[Node, Axes] | None:
        ref = node.data
        if ref is None or ref.source is not None or type(ref.value) is not np.ndarray:
            return None
        # From the outermost to the innermost.
        axes = sorted(range(node.ndim), key=lambda i: (-abs(ref.value.strides[i]), i))
        if axes == sorted(axes) or not ref.value.transpose(axes).flags.c_contiguous:
            return None
        if ref not in self._leaves:
            self._leaves[ref] = build.data(ref.with_axes(tuple(axes)))
        return self._leaves[ref], _back(axes)

    def _turned(self, node: Node) -> tuple[Node, Axes] | None:
        """A step on turned inputs, None where they are not all alike, or it is not the same in any order."""
        if node.op is Op.TRANSPOSE:
            made, axes = self._made[node.inputs[0]]
            return made, tuple(axes[i] for i in node.params[0])
        if not (node.fn is None or isinstance(node.fn, str)):
            return None
        rule = _RULES.get(node.op) if node.op is not Op.JOIN_UPDATE else _JOINS.get(node.fn or "")
        return None if rule is None else rule(self, node)

    def _axes(self, operands: Iterable[Node]) -> Axes | None:
        """The order of axes that operands have in common, where it is not C's."""
        found = {self._made[i][1] for i in operands}
        (axes,) = found if len(found) == 1 else [()]
        return None if axes == tuple(range(len(axes))) else axes

    def _in_order(self, node: Node, axes: Axes, among: int) -> Node | None:
        """What `node` is a transpose of by `axes`, once broadcast to as many; None where elements would be
        put in order for that which are many `among` those of its reader."""
        made, own = self._made[node]
        if own == axes:
            return made
        if not node.ndim:
            return node
        shape = (1,) * (len(axes) - node.ndim) + node.shape
        if _is_stretched(node):
            below = self._in_order(node.inputs[0], axes, among)
            return None if below is None else build.broadcast(below, _with_axes(shape, axes))
        if sum(n != 1 for n in shape) <= 1:
            return build.reshape_step(self._plain(node), _with_axes(shape, axes))
        if node.size * _STRETCHED > among:
            return None
        return build.transpose(build.reshape_step(self._plain(node), shape), _back(axes))

    # --- a rule for each kind of step

    def _map(self, node: Node) -> tuple[Node, Axes] | None:
        if node.params:
            return None
        axes = self._axes(i for i in node.inputs if i.shape == node.shape and not _is_stretched(i))
        return None if axes is None else self._alike(node, axes, node.inputs)

    def _alike(
        self, node: Node, axes: Axes, operands: Sequence[Node], params: tuple[Any, ...] | None = None
    ) -> tuple[Node, Axes] | None:
        """The step with other operands and parameters, in the order of `axes`."""
        inputs = [self._in_order(i, axes, node.size) for i in operands]
        made = tuple(i for i in inputs if i is not None)
        if len(made) < len(inputs):
            return None
        params = node.params if params is None else params
        return replace(node, inputs=made, params=params, shape=_with_axes(node.shape, axes)), axes

    def _slice(self, node: Node) -> tuple[Node, Axes] | None:
        made, axes = self._made[node.inputs[0]]
        starts, steps = zip(*_with_axes(node.params, axes), strict=True) if axes else ((), ())
        return build.slice_(made, starts, steps, _with_axes(node.shape, axes)), axes

    def _fold(self, node: Node) -> tuple[Node, Axes] | None:
        axes = None if config.reproducible else self._axes(node.inputs[:1])
        if axes is None:
            return None
        inputs = [self._in_order(i, axes, node.inputs[0].size) for i in node.inputs]
        if None in inputs:
            return None
        (folded,) = node.params
        kept = [axes[i] for i in range(len(axes)) if i not in folded]
        along = tuple(sorted(axes[i] for i in folded))
        left = sorted(kept)
        own = tuple(left.index(i) for i in kept)
        shape = _with_axes(node.shape, own)
        return replace(node, inputs=tuple(inputs), params=(along,), shape=shape), own

    def _scan(self, node: Node) -> tuple[Node, Axes] | None:
        axes = None if config.reproducible else self._axes(node.inputs)
        return None if axes is None else self._alike(node, axes, node.inputs, (axes[node.params[0]],))

    def _on_lines(self, node: Node) -> tuple[Node, Axes] | None:
        axes = self._axes(node.inputs) if all(has_lines_of(node, i) for i in node.inputs) else None
        if axes is None:
            return None
        name, axis, keywords = node.params
        return self._alike(node, axes, node.inputs, (name, axes[axis], keywords))

    def _concatenate(self, node: Node) -> tuple[Node, Axes] | None:
        lying = [i for i in node.inputs if sum(n != 1 for n in i.shape) > 1 and not _is_stretched(i)]
        axes = self._axes(lying)
        return None if axes is None else self._alike(node, axes, node.inputs, (axes[node.params[0]],))

    def _assign(self, node: Node) -> tuple[Node, Axes] | None:
        axes = self._axes(node.inputs[:1])
        return None if axes is None else self._alike(node, axes, node.inputs, _with_axes(node.params, axes))

    def _take(self, node: Node) -> tuple[Node, Axes] | None:
        a, indices = node.inputs
        axes = self._axes([a]) if indices.ndim == 1 else None
        if axes is None:
            return None
        inputs = self._made[a][0], self._plain(indices)
        params = (axes[node.params[0]],)
        return replace(node, inputs=inputs, params=params, shape=_with_axes(node.shape, axes)), axes

    def _contract(self, node: Node) -> tuple[Node, Axes] | None:
        """Labels go with the axes of what is made turned; views of leaves are read as they are."""
        if config.reproducible or self._views.issuperset(node.inputs):
            return None
        inputs, labels = [], []
        for operand, of in zip(node.inputs, node.params, strict=False):
            made, axes = (operand, _same(operand)) if operand in self._views else self._made[operand]
            inputs.append(made)
            labels.append(_with_axes(of, axes))
        return replace(node, inputs=tuple(inputs), params=(*labels, node.params[2])), _same(node)


def _same(node: Node) -> Axes:
    return tuple(range(node.ndim))


def _back(axes: Sequence[int]) -> Axes:
    """The axes that turn back."""
    found = [0] * len(axes)
    for i, axis in enumerate(axes):
        found[axis] = i
    return tuple(found)


def _with_axes(items: Sequence[Any], axes: Axes) -> tuple[Any, ...]:
    """What an array has for each axis, for one that it is a transpose of."""
    return tuple(items[i] for i in _back(axes))


def _is_stretched(node: Node) -> bool:
    return node.op is Op.BROADCAST and node.inputs[0].size * _STRETCHED <= node.size


_RULES: dict[Op, Callable[[_Lying, Node], tuple[Node, Axes] | None]] = {
    Op.MAP: _Lying._map,
    Op.FOLD: _Lying._fold,
    Op.SCAN: _Lying._scan,
    Op.SLICE: _Lying._slice,
}
_JOINS: dict[str, Callable[[_Lying, Node], tuple[Node, Axes] | None]] = {
    "contract": _Lying._contract,
    "along_axis": _Lying._on_lines,
    "concatenate": _Lying._concatenate,
    "assign": _Lying._assign,
    "take": _Lying._take,
}
