"""Evaluate nodes, and keep along the way what the program is about to need again.

Nothing else remembers results: when an array that the user still holds is a step on the way to what is
evaluated, it may be worth keeping its value, too. It is kept when it is small, or no larger than what it
comes from and dear (computing it again would take longer than writing it now), or when its steps have been
evaluated once before. So a loop that looks at one number an iteration costs its own steps only, and
a temporary array that is used once is still fused away.

Of a temporary that is left in a single view, as in `(A @ B)[3]`, nobody can ask for the rest: the whole is
kept only if it is needed twice.

Fusion plans (SystemML), section 4.3: the costs, see `optimizer.fusion.keeping`.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Sequence
from types import CodeType, FrameType
from typing import Any, Protocol

import numpy as np

from spartan_ng.api.core.errstate import as_noted
from spartan_ng.arrays import ArrayRef, Box, box_of
from spartan_ng.callers import Place, passed, place_of
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import evaluate, is_dear
from spartan_ng.graph.node import OPERATORS, Node, Op, topological
from spartan_ng.memory import budget_bytes
from spartan_ng.sources import read_box

_SHARE = 8
"""What may be needed again takes no more than one part in so many of the memory."""
_ALWAYS_DEAR = frozenset({Op.SCAN, Op.FILTER})
"""Operators with passes and moves of their own, besides joins that are no products."""


class Adopter(Protocol):
    """A cell, as this module sees it."""

    def adopt(self, ref: ArrayRef, node: Node) -> None:
        """Become the evaluated form of a node, unless that is what it stands for no more."""
        ...

    def holds(self, node: Node) -> bool:
        """Whether `node` still is what the cell stands for."""
        ...

    def is_part_of_one(self) -> bool:
        """Whether a single view is all that is left of it."""
        ...


class Holder(Protocol):
    """A backend that holds tiles of an array."""

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box`."""
        ...


class Held(weakref.ref[Any]):
    """The cell that holds a lazy node, as long as the user holds an array of it; and, as long as the node
    lives, the user's code and the instruction in it that made it. It has no `step` where nobody knows."""

    __slots__ = ("step",)
    step: tuple[CodeType, int]


live: weakref.WeakKeyDictionary[Node, Held] = weakref.WeakKeyDictionary()
"""Who holds lazy nodes."""

_seen: set[weakref.ref[Node]] = set()
"""Steps that have been evaluated on the way to something; a step leaves it when it dies."""
_counts: weakref.WeakKeyDictionary[Node, int] = weakref.WeakKeyDictionary()
_levels: dict[str, int] = {}
"""How many frames above `hold` the user's was when it last held a node of each operation."""


def hold(node: Node, cell: Adopter) -> None:
    """Note that a cell holds a lazy node that the user's line has made.

    Every lazy array comes by here: of the line there is what `place_of` makes one of, should anybody ask. It
    is looked for where it was the last time for such a node: each frame that is looked at takes its while.
    """
    held = live[node] = Held(cell)
    fn = node.fn
    name = fn if fn.__class__ is str else node.op  # no function of the user's, which would live on with it
    level = _levels.get(name, 3)
    try:
        frame: FrameType | None = sys._getframe(level)
        below = sys._getframe(level - 1)
    except ValueError:  # there are not so many
        frame = None
    if frame is None or passed[frame.f_code.co_filename] or not passed[below.f_code.co_filename]:
        level, frame = 2, sys._getframe(2)
        while frame is not None and passed[frame.f_code.co_filename]:
            level, frame = level + 1, frame.f_back
        _levels[name] = level
    if frame is not None:
        held.step = frame.f_code, frame.f_lasti


def written_at(order: Iterable[Node]) -> dict[Node, Place]:
    """Where in the program lazy nodes were made, as far as that is known."""
    steps = ((node, getattr(live.get(node), "step", None)) for node in order)
    return {node: place_of(*step) for node, step in steps if step is not None}


def run(nodes: Sequence[Node]) -> list[ArrayRef]:
    """The values of `nodes`, computed together; cells of steps on the way adopt theirs."""
    if not nodes:
        return []
    asked = list(dict.fromkeys(nodes))
    order = topological(asked)
    kept = _worth_keeping(asked, order)
    wanted = [*asked, *dict(kept)]
    with as_noted(order):
        refs = dict(zip(wanted, evaluate(wanted, order), strict=True))
    for node, cell in kept:
        cell.adopt(refs[node], node)
    return [refs[n] for n in nodes]


def once(node: Node) -> Any:
    """The elements of a node on the driver, for a part of an array that as a whole is not to be kept."""
    with as_noted(topological([node])):
        return value_of(evaluate([node])[0])


def release(ref: ArrayRef) -> None:
    """Evaluate the arrays that are still to be computed from `ref`: its memory is about to change."""
    nodes = [node for key in live.keyrefs() if (node := key()) is not None]  # others may add theirs
    waiting = {n: cell for n in nodes if (watch := live.get(n)) and (cell := watch()) and cell.holds(n)}
    reading: set[Node] = set()
    for node in topological(list(waiting)):
        if node.data is ref or not reading.isdisjoint(node.inputs):
            reading.add(node)
    readers = [node for node in waiting if node in reading and node.data is None]
    for node, value in zip(readers, run(readers), strict=True):
        waiting[node].adopt(value, node)


def value_of(ref: ArrayRef) -> Any:
    """The elements on the driver: what is there, or gathered from the workers."""
    if ref.value is not None:
        return ref.value
    if ref.source is not None:
        return (
            read_box(ref.source, box_of(ref.shape)) if 0 not in ref.shape else np.empty(ref.shape, ref.dtype)
        )
    holder: Holder = ref.backend  # type: ignore[assignment]
    return holder.gather(ref, box_of(ref.shape))


def count_true(mask: Node) -> int:
    """How many elements of a boolean node are true; evaluated once a node."""
    if mask not in _counts:
        if mask.data is not None and mask.data.value is not None:
            _counts[mask] = int(np.count_nonzero(mask.data.value))
        else:
            _counts[mask] = int(value_of(run([counter(mask)])[0]))
    return _counts[mask]


def counter(mask: Node) -> Node:
    """The number of true elements, as a node."""
    return build.fold("add", mask, range(mask.ndim)) if mask.ndim else build.cast(mask, build.INTP)


def remember_count(mask: Node, count: int) -> None:
    """Note what another evaluation has counted."""
    _counts[mask] = count


def known_count(mask: Node) -> int | None:
    """The number of true elements where it has been counted."""
    return _counts.get(mask)


def _worth_keeping(asked: list[Node], order: Sequence[Node]) -> list[tuple[Node, Adopter]]:
    """Nodes on the way (all of them in `order`), with living cells, whose values should be kept."""
    stored, before = set(asked), set()
    held: dict[Node, weakref.ref[Any]] = {}
    for node in order:
        if weakref.ref(node) in _seen:
            before.add(node)
        elif node.op in OPERATORS:
            _seen.add(weakref.ref(node, _seen.discard))
        if node.op in OPERATORS and node not in stored and (reference := live.get(node)) and reference():
            held[node] = reference
    if not held:
        return []
    again: set[Node] = set()
    sources: dict[Node, int] = {}
    kept: list[tuple[Node, Adopter]] = []
    room = budget_bytes() // _SHARE
    for node in order:
        if not node.inputs:
            sources[node] = node.nbytes
            continue
        sources[node] = max(map(sources.__getitem__, node.inputs))
        if node in before or not again.isdisjoint(node.inputs):
            again.add(node)
        cell = held[node]() if node in held else None
        if cell is None or not cell.holds(node):
            continue
        if node not in again and (node.nbytes > room or cell.is_part_of_one()):  # others need the room
            continue
        small = node.nbytes <= config.small_bytes
        if small or node in again or (node.nbytes <= sources[node] and _is_dear(node, stored)):
            kept.append((node, cell))
            stored.add(node)
            again.discard(node)
            sources[node] = node.nbytes
    return kept


def _is_dear(node: Node, stored: set[Node]) -> bool:
    """Whether computing the node again costs more than keeping it."""
    sorts = node.op is Op.JOIN_UPDATE and node.fn != "contract"
    return node.op in _ALWAYS_DEAR or sorts or is_dear(node, stored)
