"""Who holds lazy nodes, and the user's lines that have made them."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator
from math import prod
from types import CodeType
from typing import Any, Protocol
from weakref import ref

from spartan_ng.api.core import door
from spartan_ng.api.core.backlog import FEW, Backlog, inner_backlog, is_light, is_much, work_ns
from spartan_ng.arrays import ArrayRef
from spartan_ng.callers import USERS, UserLine, frame_of_the_users, place_of, whose
from spartan_ng.graph.node import VIEWS, Node


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


Step = tuple[CodeType | None, int]

_held: dict[ref[Node], tuple[tuple[ref[Any], ...], CodeType | None, int, Backlog]] = {}
"""By lazy nodes, as long as they live: the cells that hold one, as long as the user holds an array of it, the
user's code and the instruction in it that made it, where that is known, and what is to be computed for it.
Each lazy array comes by: a weak dictionary takes several calls for each that comes and goes."""
_forget = _held.pop
_find = _held.get
_SHARING = 4
"""Cells of one node that are known, at most: an array, copies of it, and what functions of ours wrap."""
MANY = 16
"""References to a node, at least, that many steps read which have yet to be computed."""
_frame = sys._getframe
_references = sys.getrefcount
_ways: dict[str, tuple[int, CodeType]] = {}
"""By operations, the way from the user's line to `hold` that a node of each took last: how many frames there
were up to the one that the user called, and that one's code."""


def hold(node: Node, cell: Adopter) -> bool:
    """Note that a cell holds a lazy node that the user's line has made; whether so much has yet to be
    computed for it that something may be `due`.

    Of the line there is what `place_of` makes one of, should anybody ask. It is looked for where it was the
    last time for such a node: each frame that is looked at takes its while.
    """
    held = _find(ref(node))
    if held is not None and (cells := _living(held[0], node)):  # a function wraps it anew
        _held[ref(node, _forget)] = (*cells, ref(cell)), *held[1:]
        return False
    fn = node.fn
    name = fn if fn.__class__ is str else node.op  # no function of the user's, which would live on with it
    try:
        level, called = _ways[name]
        below = _frame(level)
        frame = below.f_back if below.f_code is called else None
    except (KeyError, ValueError):  # the first one, or there are not so many frames
        frame = None
    if frame is None or whose[frame.f_code.co_filename] != USERS:
        level, frame = frame_of_the_users(_frame(2), 2)
        _ways[name] = level - 1, _frame(level - 1).f_code
    # Most nodes come by with few before them: nothing is called for those.
    little = steps = work = references = 0
    for operand in node.inputs:
        if operand.inputs:
            held = _find(ref(operand))
            if (known := _references(operand)) > references:
                references = known
            while held is None and operand.op in VIEWS:  # which take nothing
                (operand,) = operand.inputs
                held = _find(ref(operand))
            if held is None and not operand.inputs:
                continue
            before = inner_backlog(operand, known_backlog) if held is None else held[3]
            if steps:
                before = max(little, before[0]), max(steps, before[1]), max(work, before[2])
            little, steps, work = before
    if steps:
        little = little + 1 if door.is_small(prod(node.shape) * node.dtype.itemsize) else 0
        work += work_ns(node) if steps > FEW else 0
    backlog = little, steps + bool(node.inputs), work
    _held[ref(node, _forget)] = (ref(cell),), frame.f_code, frame.f_lasti, backlog
    return (steps > FEW and is_much(backlog)) or references > MANY


def count_anew(node: Node) -> None:
    """Note how little is left to be computed for a lazy node, as what was before it has been evaluated.

    But not where that was work: a loop over large arrays goes on turn by turn, by a plan that comes again.
    """
    held = _find(ref(node))
    if held is not None and is_light(held[3]):
        little, steps, work = inner_backlog(node, known_backlog)
        _held[ref(node, _forget)] = *held[:3], (little, steps + bool(node.inputs), work)


def known_backlog(node: Node) -> Backlog | None:
    """What is to be computed for a node that a cell has held."""
    held = _find(ref(node))
    return None if held is None else held[3]


def _living(cells: tuple[ref[Any], ...], node: Node) -> list[ref[Any]]:
    """Those of the cells that hold a node still, but for the last of many."""
    return [r for r in cells if (cell := r()) is not None and cell.holds(node)][: _SHARING - 1]


def hold_as(node: Node, cell: Adopter, step: Step = (None, 0)) -> None:
    """Note that a cell holds a lazy node that an earlier step has made; by default nobody knows which."""
    held = _find(ref(node))
    others, backlog = ([], (0, 0, 0)) if held is None else (_living(held[0], node), held[3])
    _held[ref(node, _forget)] = (*others, ref(cell)), *step, backlog


def step_of(node: Node) -> Step:
    """The user's code and the instruction in it that made a lazy node."""
    held = _find(ref(node))
    return (None, 0) if held is None else held[1:3]


def holder_of(node: Node) -> Any:
    """A cell that holds a lazy node; None where none does."""
    held = _find(ref(node))
    if held is not None:
        for found in held[0]:
            cell = found()
            if cell is not None and cell.holds(node):
                return cell
    return None


def lazy() -> Iterator[tuple[Node, Any]]:
    """The lazy nodes that cells hold, and the cells."""
    for key in list(_held):  # others may add theirs
        node = key()
        if node is not None and (cell := holder_of(node)) is not None:
            yield node, cell


def newest(count: int, known: Container[Node]) -> list[tuple[Node, Any]]:
    """Of the lazy nodes that cells have held, the last `count`: those of them that one holds still, and that
    cell, but for what is `known`."""
    found = []
    for key in reversed(list(_held)[-count:]):
        node = key()
        if node is not None and node not in known and (cell := holder_of(node)) is not None:
            found.append((node, cell))
    return found


def written_at(order: Iterable[Node]) -> dict[Node, UserLine]:
    """Where in the program lazy nodes were made, as far as that is known."""
    steps = ((node, step_of(node)) for node in order)
    return {node: place_of(code, instruction) for node, (code, instruction) in steps if code is not None}
