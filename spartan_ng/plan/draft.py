"""Stages before they are cut: the bodies of fused groups as rows over registers.

A draft is a stage without its grid. Tiling looks at drafts through sketches; `lower` puts the two
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.optimizer.fusion.group import Group
from spartan_ng.optimizer.fusion.labels import Labels, input_labels, is_transparent, root
from spartan_ng.plan.plan import Read, Row
from spartan_ng.plan.reads import base_of, view_read

_KINDS = {Op.MAP: "map", Op.FOLD: "fold", Op.INDEX: "iota", Op.RANDOM: "random"}


@dataclass(slots=True)
class Draft:
    """A fused stage, or a stage of its own kind (`rows` is empty then), without a grid."""

    node: Node
    slot: int
    domain: tuple[int, ...]
    out: Labels
    whole: tuple[int, ...]
    uncut: tuple[int, ...]
    reads: list[Read] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    register: int = -1
    reducer: Row | None = None
    separate: bool = False
    after: Draft | None = None
    """What makes the stored value of a product's; it reads `VALUE`."""


class Body:
    """The rows of one fused group; registers are numbered reads first, once all reads are known."""

    def __init__(self, group: Group, slots: Mapping[Node, int]) -> None:
        self._slots = slots
        self._reads: dict[Read, int] = {}
        self._rows: list[tuple[Node, Labels, tuple[int, ...]]] = []
        self._rows_at: dict[tuple[Node, Labels], int] = {}
        self.group = group

    def draft(self) -> Draft:
        """Emit all members and the root."""
        group, node = self.group, self.group.root
        for member, labels in reversed(group.members):
            self._emit(member, labels)
        draft = Draft(
            node,
            self._slots[node],
            group.domain,
            group.out,
            tuple(sorted(group.whole)),
            tuple(sorted(group.uncut)),
        )
        if node.op in VIEWS:
            result = self._root_view(node, group.out)
        else:
            self._append(node, group.out, root(node).inputs)
            result = -len(self._rows)
        rows = [self._numbered(*r) for r in self._rows]
        draft.reads = list(self._reads)
        draft.register = self._register(result)
        if node.op is Op.FOLD or len(group.out) < len(group.domain) or node.fn == "bincount":
            draft.reducer = rows.pop()
            draft.register = -1
        draft.rows = rows
        return draft

    def _root_view(self, node: Node, labels: Labels) -> int:
        """A stored view: its read, or the row of the fused node below it."""
        if is_transparent(node):
            (passed,) = input_labels(node, labels)
            if (below := self._row_at(node.inputs[0], passed)) is not None:
                self._rows.append((node, labels, (below,)))
                return -len(self._rows)
        return self._read(node, labels, expand=True)

    def _emit(self, node: Node, labels: Labels) -> None:
        """The row of a fused member; a view over a stored array needs none, it is part of the read."""
        seen = input_labels(node, labels)
        if is_transparent(node) and self._row_at(node.inputs[0], seen[0]) is None:
            return
        if self._row_at(node, labels) is not None:
            return
        self._append(node, labels, seen)
        self._rows_at[(node, self.group.canonical(labels))] = -len(self._rows)

    def _append(self, node: Node, labels: Labels, seen: tuple[Labels, ...]) -> None:
        expand = node.op is not Op.MAP or not self._fills(node, seen)
        args = tuple(self._argument(i, s, expand) for i, s in zip(node.inputs, seen, strict=True))
        self._rows.append((node, labels, args))

    def _fills(self, node: Node, seen: tuple[Labels, ...]) -> bool:
        """Whether a map's operands have its full shape between them without stretching views.

        NumPy stretches operands against each other, not to a shape that none of them has.
        """
        shapes = []
        for i, labels in zip(node.inputs, seen, strict=True):
            stored = i.op not in VIEWS or self._row_at(i, labels) is not None
            shapes.append(i.shape if stored else self._unstretched(i, labels))
        return all(s == node.shape for s in shapes) or np.broadcast_shapes(*shapes) == node.shape

    def _unstretched(self, node: Node, labels: Labels) -> tuple[int, ...]:
        """The shape of a view's read before broadcast axes are stretched."""
        base = base_of(node, self._slots)
        read = view_read(node, labels, base, self._slots[base])
        return tuple(
            n if o >= 0 and read.axes[o].size == n else 1 for o, n in zip(read.order, node.shape, strict=True)
        )

    def _argument(self, node: Node, labels: Labels, expand: bool) -> int:
        """A register: -1 - i for row i (not numbered yet), i for read i."""
        found = self._row_at(node, labels)
        return found if found is not None else self._read(node, labels, expand)

    def _row_at(self, node: Node, labels: Labels) -> int | None:
        return self._rows_at.get((node, self.group.canonical(labels)))

    def _read(self, node: Node, labels: Labels, expand: bool) -> int:
        is_root = node is self.group.root
        base = base_of(node.inputs[0] if is_root else node, self._slots)
        read = view_read(node, labels, base, self._slots[base])
        if read.expand and not expand:
            read = replace(read, expand=False)
        return self._reads.setdefault(read, len(self._reads))

    def _register(self, number: int) -> int:
        return number if number >= 0 else len(self._reads) - number - 1

    def _numbered(self, node: Node, labels: Labels, args: tuple[int, ...]) -> Row:
        kind, fn, params = row_of(node)
        numbers = tuple(self._register(a) for a in args)
        return Row(kind, fn, numbers, params, node.dtype, node.shape, labels, node.format)


def row_of(node: Node) -> tuple[str, Any, tuple[Any, ...]]:
    """The row's kind, function and parameters for a node."""
    if node.op in _KINDS:
        return _KINDS[node.op], node.fn, node.params
    if node.op is Op.JOIN_UPDATE:
        return str(node.fn), None, node.params
    if node.op is Op.TRANSPOSE:
        return "transpose", None, node.params
    return ("broadcast" if node.op is Op.BROADCAST else "reshape"), None, ()
