"""Stages before they are cut: the bodies of fused groups as rows over registers.

A draft is a stage without its grid. Tiling looks at drafts through sketches; `lower` puts the two
together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import VIEWS, Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.optimizer.fusion.group import Group
from spartan_ng.optimizer.fusion.labels import Labels, input_labels, is_transparent, root
from spartan_ng.optimizer.fusion.sampling import Drivers, is_sampled
from spartan_ng.plan.rows import Read, Row
from spartan_ng.plan.views import base_of, view_read

_Pending = tuple[Node, Labels, tuple[int, ...]]
_End = int | _Pending
_KINDS = {Op.MAP: "map", Op.FOLD: "fold", Op.SCAN: "scan", Op.INDEX: "iota", Op.RANDOM: "random"}


class DraftResult(Struct, frozen=True):
    """What a stage stores: a register's values, or (`reducer`) a value reduced over the domain."""

    node: Node
    slot: int
    out: Labels
    register: int = -1
    reducer: Row | None = None


class Draft(Struct):
    """A fused stage, or one of its own kind (of which only sorts of lines have `rows`), without a grid."""

    results: list[DraftResult]
    domain: tuple[int, ...]
    whole: tuple[int, ...] = ()
    uncut: tuple[int, ...] = ()
    reads: list[Read] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    separate: bool = False
    driver: int = -1
    """The sparse read at whose non-zeros the sampled rows are computed, or else a compressed read; -1: there
    is none."""
    stepwise: bool = False
    """Whether the body makes operands of its product, step by step."""
    after: Draft | None = None
    """What makes the stored value of a product's; it reads `VALUE`."""
    members: tuple[Node, ...] = ()
    """The nodes that it computes, for who tells people of it."""

    @property
    def node(self) -> Node:
        """The node of the first result, the only one of a stage of its own kind."""
        return self.results[0].node

    @property
    def slot(self) -> int:
        """The slot of the first result."""
        return self.results[0].slot

    @property
    def out(self) -> Labels:
        """The labels of the first result."""
        return self.results[0].out

    @property
    def reducers(self) -> list[Row]:
        """What reduces results over the domain."""
        return [r.reducer for r in self.results if r.reducer is not None]


class Drafting:
    """The rows of one fused group; registers are numbered reads first, once all reads are known."""

    def __init__(self, group: Group, slots: Mapping[Node, int], drivers: Drivers) -> None:
        self._slots = slots
        self._drivers = drivers
        self._sparse: dict[int, Node] = {}
        self._packed: list[int] = []
        self._reads: dict[Read, int] = {}
        self._rows: list[_Pending] = []
        self._rows_at: dict[tuple[Node, Labels], int] = {}
        self.group = group

    def draft(self) -> Draft:
        """Emit all members and the results."""
        group = self.group
        # Members stand as fusion found them, users before inputs; rows go the other way.
        for member, labels in reversed(group.members):
            self._emit(member, labels)
        ends = [(group.root, group.out, self._root_end())]
        for r in group.more:
            end = self._row_at(r.node, r.out) if r.inputs is None else self._pending(r.node, r.out, r.inputs)
            assert end is not None, "a stored member has a row"
            ends.append((r.node, r.out, end))
        kept = [e for _, _, end in ends for e in ((end,) if isinstance(end, int) else end[2])]
        driver, sampled = self._sample([-1 - e for e in kept if e < 0])
        return Draft(
            [self._result(*end) for end in ends],
            group.domain,
            tuple(sorted(group.whole)),
            tuple(sorted(group.uncut)),
            list(self._reads),
            [self._numbered(*r, i in sampled) for i, r in enumerate(self._rows)],
            driver=driver,
            members=(*group.stored, *(node for node, _ in group.members)),
        )

    def _root_end(self) -> _End:
        group, node = self.group, self.group.root
        if node.op in VIEWS:
            return self._root_view(node, group.out)
        inputs = root(node).inputs
        if node.op is Op.FOLD or len(group.out) < len(group.domain) or node.fn in REDUCING:
            return self._pending(node, group.out, inputs)
        self._rows.append(self._pending(node, group.out, inputs))
        return -len(self._rows)

    def _result(self, node: Node, out: Labels, end: _End) -> DraftResult:
        if isinstance(end, int):
            return DraftResult(node, self._slots[node], out, self._register(end))
        return DraftResult(node, self._slots[node], out, reducer=self._numbered(*end))

    def _sample(self, kept: list[int]) -> tuple[int, set[int]]:
        """The sparse read that most rows may be sampled at (of equals, the one with the fewest non-zeros),
        and those rows; the rows `kept` are used outside the body."""
        best: tuple[int, set[int]] = (-1, set())
        if self._drivers:
            for register in sorted(self._sparse, key=lambda r: self._sparse[r].nbytes):
                sampled = self._sampled(register, kept)
                if len(sampled) > len(best[1]):
                    best = register, sampled
        # A pass has one driver, and at non-zeros alone there is the least to do.
        packed = [r for r in self._packed if best[0] < 0]
        return (packed[0], set()) if packed else best

    def _sampled(self, register: int, kept: list[int]) -> set[int]:
        """The rows needed at the non-zeros of a sparse read alone: sparse ones, and what only they need.

        They see their elements where the read sees its own: of an array that is read plain and turned, one
        of the two drives.
        """
        driver = self._sparse[register]
        place = self.group.canonical(list(self._reads)[register].labels)
        sampled: set[int] = set()
        everywhere = set(kept)
        for i in reversed(range(len(self._rows))):
            node, labels, args = self._rows[i]
            fits = is_sampled(node) and driver in self._drivers.get(node, ())
            fits = fits and self.group.canonical(labels) == place
            if fits and (node.format == "csr" or i not in everywhere):
                sampled.add(i)
            else:
                everywhere.update(-1 - a for a in args if a < 0)
        return sampled

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
        self._rows.append(self._pending(node, labels, seen))
        self._rows_at[self._key(node, labels)] = -len(self._rows)

    def _pending(self, node: Node, labels: Labels, seen: tuple[Labels, ...]) -> _Pending:
        """A row whose registers are not numbered yet."""
        expand = node.op is not Op.MAP or not self._fills(node, seen)
        args = tuple(self._argument(i, s, expand) for i, s in zip(node.inputs, seen, strict=True))
        return node, labels, args

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
        return self._rows_at.get(self._key(node, labels))

    def _key(self, node: Node, labels: Labels) -> tuple[Node, Labels]:
        """The same for labels under which a node's elements are the same: along an axis of one element there
        is but that one."""
        found = self.group.canonical(labels)
        return node, tuple([WHOLE if n == 1 else d for d, n in zip(found, node.shape, strict=True)])

    def _read(self, node: Node, labels: Labels, expand: bool) -> int:
        is_root = node is self.group.root
        base = base_of(node.inputs[0] if is_root else node, self._slots)
        read = view_read(node, labels, base, self._slots[base])
        if read.expand and not expand:
            read = replace(read, expand=False)
        register = self._reads.setdefault(read, len(self._reads))
        if node.format == "csr":
            self._sparse.setdefault(register, node)
        elif node.format == "compressed" and base.op is Op.DATA:
            self._packed.append(register)
        return register

    def _register(self, number: int) -> int:
        return number if number >= 0 else len(self._reads) - number - 1

    def _numbered(self, node: Node, labels: Labels, args: tuple[int, ...], sampled: bool = False) -> Row:
        kind, fn, params = row_of(node)
        numbers = tuple(self._register(a) for a in args)
        return Row(kind, fn, numbers, params, node.dtype, node.shape, labels, node.format, sampled)


def row_of(node: Node) -> tuple[str, Any, tuple[Any, ...]]:
    """The row's kind, function and parameters for a node."""
    if node.op in _KINDS:
        return _KINDS[node.op], node.fn, node.params
    if node.op is Op.JOIN_UPDATE:
        return str(node.fn), None, node.params
    if node.op is Op.TRANSPOSE:
        return "transpose", None, node.params
    return ("broadcast" if node.op is Op.BROADCAST else "reshape"), None, ()


def stage_name(draft: Draft) -> str:
    """The user's operations in the stage, in order, long runs shortened."""
    rows = [*draft.rows, *draft.reducers]
    if draft.after is not None:
        rows += draft.after.rows
    names = [str(r.fn) if r.fn is not None else r.kind for r in rows] or ["copy"]
    if len(names) > 8:
        names = [*names[:4], f"... {len(names) - 7} more", *names[-3:]]
    return " > ".join(names)
