"""What has yet to be computed for a lazy array, and when it is too much to wait until somebody asks.

Waiting lets steps be fused, and what nobody asks for go uncomputed. But a program may ask for nothing for
long: one that works until a time is over, or until Ctrl-C, would go through its steps a thousand times as
fast as they can be computed, and never end. So a loop is caught up with: on small arrays after some steps,
as all of them are planned again with every program that asks for something after them, on large ones when
they have work for a while, and a line of the program's is there for the third time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from spartan_ng.api.core import door
from spartan_ng.costs.operations import work_of_node
from spartan_ng.costs.profile import ONE_THREAD
from spartan_ng.costs.tuned import BACKLOG_NS, BACKLOG_STEPS, CHAIN_STEPS, LAUNCH_NS
from spartan_ng.graph.node import OPERATORS, Node
from spartan_ng.memory import budget_bytes

Backlog = tuple[int, int, int]
"""The longest way to a node, of those that are not evaluated: steps on small arrays in a row, steps of any,
and the nanoseconds that those on large arrays take one thread."""
FEW = 4
"""Steps, at most, whose work is not counted: there is no loop yet, and most programs have no more."""
_INSIDE = 4
"""Nodes in a row, at most, that one step of the user's is made of."""
_SHARE = 8
"""What is evaluated without having been asked for takes no more than one part in so many of the memory."""


def inner_backlog(node: Node, known: Callable[[Node], Backlog | None], inside: int = 1) -> Backlog:
    """What is to be computed for a node inside of a step; that of what steps give is `known`."""
    little = steps = work = 0
    for operand in node.inputs if inside <= _INSIDE else ():
        if operand.inputs:
            before = known(operand) or inner_backlog(operand, known, inside + 1)
            little, steps, work = max(little, before[0]), max(steps, before[1]), max(work, before[2])
    return little, steps, work + (work_ns(node) if steps > FEW else 0)


def work_ns(node: Node) -> int:
    """Nanoseconds that a node on large arrays takes one thread, none for others."""
    return 0 if door.is_small(max(map(_bytes, (node, *node.inputs)))) else any_work_ns(node)


def any_work_ns(node: Node) -> int:
    """Nanoseconds that a node takes one thread."""
    if node.op not in OPERATORS:
        return 0
    return ONE_THREAD.compute_ns(work_of_node(node), sum(map(_bytes, (node, *node.inputs))), 1)


def is_chain(backlog: Backlog) -> bool:
    """Whether a node that ends so many steps on small arrays is evaluated where it stands."""
    return backlog[0] > CHAIN_STEPS


def is_much(backlog: Backlog) -> bool:
    """Whether it may be too much."""
    return is_chain(backlog) or backlog[2] > BACKLOG_NS or backlog[1] > BACKLOG_STEPS


def is_light(backlog: Backlog) -> bool:
    """Whether its steps take less than what a stage of each would: several of them are worth being fused."""
    return backlog[2] <= backlog[1] * LAUNCH_NS


def is_affordable(node: Node) -> bool:
    """Whether a node's value takes so little of the memory that it is evaluated though nobody has asked."""
    return _bytes(node) <= budget_bytes() // _SHARE


def _bytes(node: Node) -> int:
    return prod(node.shape) * node.dtype.itemsize
