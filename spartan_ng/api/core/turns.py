"""What a loop brings from one turn to the next, which is evaluated where it has much to be computed.

A loop's lines make a node for each of its turns, each of those before. Whatever is evaluated between them
cuts the chain; but what else a turn computes is fused as it was if that is what the turn begins with, which
the program holds, and the least there is of it: a regression's weights, and not the errors of all its points.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import getrefcount

from spartan_ng.api.core import door
from spartan_ng.api.core.backlog import inner_backlog, is_affordable, is_chain
from spartan_ng.api.core.holders import MANY, Adopter, holder_of, known_backlog, step_of
from spartan_ng.costs.tuned import BACKLOG_STEPS
from spartan_ng.graph.node import Node

_TURNS = 2
"""Times that a line has been there before, from which on it is taken for that of a loop."""


def due(node: Node, cell: Adopter) -> list[Node]:
    """What is evaluated now that a cell holds a node with much before it: nothing, the node, or what a loop
    has brought to it."""
    backlog = known_backlog(node)
    if backlog is not None and is_chain(backlog):
        return [node]
    if many := [i for i in node.inputs if i.inputs and _is_read_by_many(i)]:
        return many
    line = step_of(node)
    way, turn, turns = [], 0, 0
    for below in _longest_way(node):
        way.append(below)
        turns += step_of(below) == line
        turn = turn or turns * len(way)
        if turns == _TURNS:
            break
    else:  # no loop: what goes on for so long is cut anywhere
        return [node] if len(way) > BACKLOG_STEPS and is_affordable(node) else []
    held = [n for n in way[:turn] if _is_held(n, cell)]
    for one in sorted(held, key=lambda n: n.nbytes):
        if not any(step_of(n) == line for n in _before(node, one)):
            return [one] if is_affordable(one) else []
    several = [n for n in _before(node, None, cell) if _is_held(n, cell)] or [node]
    return several if all(map(is_affordable, several)) else []


def _is_read_by_many(node: Node) -> bool:
    """Whether the program holds a small array that many steps read which have yet to be computed: a loop's,
    as `labels == k` is for each of the `labels`. Each that is asked for would compute it again."""
    return getrefcount(node) > MANY and door.is_small(node.nbytes) and holder_of(node) is not None


def _is_held(node: Node, cell: Adopter) -> bool:
    """Whether the program holds an array of a node, besides the one that it is about to get."""
    holder = holder_of(node)
    return holder is not None and holder is not cell


def _longest_way(node: Node) -> Iterator[Node]:
    """The nodes to be computed before a node, from each to that which has most before it."""
    while True:
        longest, most = None, (0, 0)
        for operand in node.inputs:
            if operand.inputs:
                _, steps, work = known_backlog(operand) or inner_backlog(operand, known_backlog)
                if longest is None or (work, steps) > most:
                    longest, most = operand, (work, steps)
        if longest is None:
            return
        yield (node := longest)


def _before(node: Node, without: Node | None, cell: Adopter | None = None) -> Iterator[Node]:
    """All nodes to be computed before a node, but for those that are only before one of them; with a cell,
    those that are only before one that another cell holds."""
    seen, waiting = {node}, [node]
    while waiting:
        for operand in waiting.pop().inputs:
            if operand.inputs and operand is not without and operand not in seen:
                seen.add(operand)
                yield operand
                if cell is None or not _is_held(operand, cell):
                    waiting.append(operand)
