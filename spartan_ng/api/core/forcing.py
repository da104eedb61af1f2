"""Evaluate nodes, and keep along the way what the program is about to need again.

Nothing else remembers results: when an array that the user still holds is a step on the way to what is
evaluated, it may be worth keeping its value, too. It is kept when it is small, or no larger than what it
comes from and dear (computing it again would take longer than writing it now), when its steps have been
evaluated once before, or when NumPy makes it anyway. What nobody holds any more, as it was written over, but
living steps outside the evaluation read, is kept where it is small and dear. So a loop that looks at one
number an iteration costs its own steps only, and a temporary array that is used once is still fused away.

What is kept is the node's own from then on (`graph.node.become`): steps that were built on it before read it,
too, and a loop that asks for one number an iteration computes that iteration alone, whatever it has written
over before it asked. Small steps that nobody holds are kept the second time that they are on the way.

Of a temporary that is left in a single view, as in `(A @ B)[3]`, nobody can ask for the rest: the whole is
kept only if it is needed twice, or the view shows most of it, as `ifft(x).real` does.

Fusion plans (SystemML), section 4.3: the costs, see `optimizer.fusion.keeping`.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.errstate import as_noted
from spartan_ng.api.core.holders import Adopter, holder_of, lazy
from spartan_ng.api.core.siblings import read_elsewhere, siblings_of
from spartan_ng.arrays import ArrayRef, Box, box_of
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import evaluate, in_process, is_dear, is_made
from spartan_ng.graph.node import OPERATORS, VIEWS, Node, Op, become, topological
from spartan_ng.memory import budget_bytes
from spartan_ng.sources.reading import read_whole

_SHARE = 8
"""What may be needed again takes no more than one part in so many of the memory."""
_COMPUTED = OPERATORS | {Op.RANDOM}
"""Nodes whose elements are made by work, and not where they are read."""
_READ_ONCE = 4
"""References that `_worth_keeping` sees of a step that one reads: that, `order`, a name, an argument."""
_PARTIAL = 4
"""A view that shows less than one part in so many leaves most of an array uncomputed."""
_PARTS = frozenset({"real", "imag"})
"""Elementwise functions that are views to programs."""
_COPY = "positive"
"""The elementwise function whose result is a copy, of numbers; truth values have none."""
_ALWAYS_DEAR = frozenset({Op.SCAN, Op.FILTER})
"""Operators with passes and moves of their own, besides joins that are no products."""


class Holder(Protocol):
    """A backend that holds tiles of an array."""

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box`."""
        ...


_seen: set[weakref.ref[Node]] = set()
"""Steps that have been evaluated on the way to something; a step leaves it when it dies."""
_counts: weakref.WeakKeyDictionary[Node, int] = weakref.WeakKeyDictionary()


_running: set[object] = set()
"""Evaluations that are under way, in all threads; no node changes meanwhile."""
_begins = threading.Lock()


def compute_nodes(nodes: Sequence[Node]) -> list[ArrayRef]:
    """The values of `nodes`, computed together; cells of steps on the way adopt theirs."""
    if not nodes:
        return []
    with _begins:
        _running.add(this := object())
    try:
        asked = list(dict.fromkeys(nodes))
        order = topological(asked)
        others = siblings_of(asked, order)
        if others:
            asked += [node for node, _ in others]
            order = topological(asked)
        kept = others + _worth_keeping(asked, order)
        # In one evaluation, so that what they share is computed once.
        wanted = list(dict.fromkeys([*asked, *dict(kept)]))
        turned = {}
        for node in wanted:  # what has one axis lies in one order: most evaluations ask no more
            if len(node.shape) > 1:
                turned = _turned(wanted)
                break
        if not turned:
            found = as_noted(order, evaluate, wanted, order)
        else:
            found = as_noted(order, evaluate, [turned[n][0] if n in turned else n for n in wanted])
        refs = dict(zip(wanted, found, strict=True))
        for node, (_, axes) in turned.items():
            refs[node] = refs[node].with_axes(tuple(map(int, np.argsort(axes))))
    finally:
        _running.discard(this)
    # Only now: an evaluation that fails leaves all as it was.
    for node, cell in kept:
        if cell is None:
            settled(node, refs[node])
        else:
            cell.adopt(refs[node], node)
    return [refs[n] for n in nodes]


def _turned(wanted: list[Node]) -> dict[Node, tuple[Node, tuple[int, ...]]]:
    """Of nodes whose values are to lie in another order of axes, what is computed instead, and that order."""
    found = {}
    for node in wanted if in_process() else ():
        axes = getattr(holder_of(node), "order", None)
        if axes is not None and node.op in OPERATORS and node.format == "dense":
            found[node] = build.transpose(node, axes), axes
    return found


def settled(node: Node, ref: ArrayRef) -> Node:
    """A leaf with a node's value: the node itself, unless somebody may be walking over it."""
    with _begins:
        # Another thread may be in the middle of this graph, and would find a leaf where it saw inputs.
        if _running or node.op not in _COMPUTED or (node.shape, node.dtype) != (ref.shape, ref.dtype):
            return build.data(ref)
        become(node, ref)
        return node


def once(node: Node) -> Any:
    """The elements of a node on the driver, for a part of an array that as a whole is not to be kept."""
    with _begins:
        _running.add(this := object())
    try:
        return value_of(as_noted(topological([node]), evaluate, [node])[0])
    finally:
        _running.discard(this)


def release(ref: ArrayRef) -> None:
    """Evaluate the arrays that are still to be computed from `ref`: its memory is about to change."""
    waiting = dict(lazy())
    reading: set[Node] = set()
    # Inputs come before readers: whoever reads one that reads it, reads it.
    for node in topological(list(waiting)):
        if node.data is ref or not reading.isdisjoint(node.inputs):
            reading.add(node)
    readers = [node for node in waiting if node in reading and node.data is None]
    for node, value in zip(readers, compute_nodes(readers), strict=True):
        waiting[node].adopt(value, node)


def value_of(ref: ArrayRef) -> Any:
    """The elements on the driver: what is there, or gathered from the workers."""
    if ref.value is not None:
        return ref.value
    if ref.source is not None:
        return read_whole(ref.source)
    holder: Holder = ref.backend  # type: ignore[assignment]
    return holder.gather(ref, box_of(ref.shape))


def count_true(mask: Node) -> int:
    """How many elements of a boolean node are true; evaluated once a node."""
    if mask not in _counts:
        if mask.data is not None and mask.data.value is not None:
            value = mask.data.value
            _counts[mask] = int(value.count_nonzero() if is_sparse(value) else np.count_nonzero(value))
        else:
            _counts[mask] = int(value_of(compute_nodes([counter(mask)])[0]))
    return _counts[mask]


def counted(mask: Node) -> tuple[Node, int]:
    """A mask whose places are about to be asked for, kept where there is room, and how many are true."""
    if mask.op not in OPERATORS or mask in _counts or mask.nbytes > budget_bytes() // _SHARE:
        return mask, count_true(mask)
    number, ref = compute_nodes([counter(mask), mask])
    kept = settled(mask, ref)
    _counts[mask] = _counts[kept] = int(value_of(number))
    return kept, _counts[kept]


def counted_among(source: Node, mask: Node, is_next: bool = False) -> tuple[Node, Node, int]:
    """A node that elements are about to be taken from, their mask, and how many it says.

    Where the mask is made of the node, that is dear, and nobody holds it, as a sorted line, it is kept: it is
    asked for next. So is the mask, where the elements themselves are what `is_next`.
    """
    is_needed = mask not in _counts and source.op in OPERATORS and source.format == "dense"
    if is_needed and source.nbytes <= budget_bytes() // _SHARE and holder_of(source) is None:
        order = topological([mask])
        if source in order and _is_dear(source, set()):
            number, ref = compute_nodes([counter(mask), source])
            _counts[mask] = int(value_of(number))
            return settled(source, ref), mask, _counts[mask]
    return source, *(counted(mask) if is_next else (mask, count_true(mask)))


def counter(mask: Node) -> Node:
    """The number of true elements, as a node."""
    return build.fold("add", mask, range(mask.ndim)) if mask.ndim else build.cast(mask, build.INTP)


def remember_count(mask: Node, count: int) -> None:
    """Note what another evaluation has counted."""
    _counts[mask] = count


def known_count(mask: Node) -> int | None:
    """The number of true elements where it has been counted."""
    return _counts.get(mask)


def _worth_keeping(asked: list[Node], order: Sequence[Node]) -> list[tuple[Node, Adopter | None]]:
    """Nodes on the way (all of them in `order`) whose values should be kept, and the cells that hold them."""
    stored, before = set(asked), set()
    held: set[Node] = set()
    shared: set[Node] = set()
    ends: set[Node] = set()
    for node in order:
        if node.op not in _COMPUTED:
            continue
        if weakref.ref(node) in _seen:
            before.add(node)
        else:
            _seen.add(weakref.ref(node, _seen.discard))
            if before:
                # Old steps that a new one reads: here the loop's last iteration ended.
                ends.update(before.intersection(node.inputs))
        if node not in stored and holder_of(node) is not None:
            held.add(node)
        elif node.op is Op.JOIN_UPDATE and sys.getrefcount(node) > _READ_ONCE and node not in stored:
            shared.add(node)
    if not held and not ends and not shared:
        return []
    shared = read_elsewhere(shared, order)
    again: set[Node] = set()
    sources: dict[Node, int] = {}
    kept: list[tuple[Node, Adopter | None]] = []
    room = budget_bytes() // _SHARE
    parts: dict[Node, int] | None = None
    for node in order:
        cell = holder_of(node) if node in held else None
        if not node.inputs:
            sources[node] = node.nbytes
            if node in before and cell is not None and cell.holds(node) and node.nbytes <= room:  # drawn anew
                kept.append((node, cell))
            continue
        sources[node] = max(map(sources.__getitem__, node.inputs))
        if node.fn == "along_axis":  # is made as a whole in any case
            sources[node] = max(sources[node], node.nbytes)
        if node in before or not again.isdisjoint(node.inputs):
            again.add(node)
        if cell is None or not cell.holds(node):
            is_shared = node in shared and node.nbytes <= min(room, sources[node]) and _is_dear(node, stored)
            if (node in ends or is_shared) and node not in stored and door.is_small(node.nbytes):
                kept.append((node, None))
                stored.add(node)
                again.discard(node)
            continue
        if node not in again:
            if node.nbytes > room:  # others need it
                continue
            if cell.is_part_of_one():
                parts = _parts_read(held, asked, order) if parts is None else parts
                if _PARTIAL * parts[node] < node.size:
                    continue
        small = door.is_small(node.nbytes)
        is_worth_it = node.nbytes <= sources[node] and _is_dear(node, stored)
        if small or node in again or is_worth_it or is_made(node):
            kept.append((node, cell))
            stored.add(node)
            again.discard(node)
            sources[node] = node.nbytes
    return kept


def _parts_read(nodes: set[Node], asked: list[Node], order: Sequence[Node]) -> dict[Node, int]:
    """How many elements of `nodes` are read at once on the way, or `asked` for, through views: the most."""
    shown = {node: (node, node.size) for node in nodes}
    read = dict.fromkeys(nodes, 0)
    asked_for = set(asked)
    for node in order:
        is_view = node.op in VIEWS or node.fn in _PARTS
        for operand in node.inputs:
            if operand in shown:
                base, size = shown[operand]
                if is_view:
                    shown[node] = base, (size := min(size, node.size))
                if not is_view or node in asked_for:
                    read[base] = max(read[base], size)
    return read


def is_kept(node: Node, stored: set[Node]) -> bool:
    """Whether an evaluation keeps a step that an array of the user's holds, were it the first one."""
    small = door.is_small(node.nbytes)
    return node.op in OPERATORS and holder_of(node) is not None and (small or _is_dear(node, stored))


def on_its_own(node: Node) -> Node:
    """The same elements as a step, for a copy of them: of what is dear, a view would be read past the array
    that holds it."""
    is_view = node.op in VIEWS and node.dtype.kind in "iufc"
    return build.map_(_COPY, node) if is_view and _is_dear(node, set()) else node


def _is_dear(node: Node, stored: set[Node]) -> bool:
    """Whether computing the node again costs more than keeping it. Views and copies are as dear as what they
    show."""
    while node.op in VIEWS or node.fn == _COPY:
        node = node.inputs[0]
        if node in stored:
            return False
    sorts = node.op is Op.JOIN_UPDATE and node.fn != "contract"
    return node.op in _ALWAYS_DEAR or sorts or is_dear(node, stored)
