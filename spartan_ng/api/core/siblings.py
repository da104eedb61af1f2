"""What a program holds besides what it asks for, and is nearly computed with it.

A loop brings several arrays from one turn to the next (`u, v = f(u, v), g(u, v)`), of which one is asked for
first. All turns are on the way to each, and each is but a step from what is computed for the others: the one
that is asked for next would have all of them computed again. So such are computed together, as they would be
if the program asked for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spartan_ng.api.core.backlog import any_work_ns, is_affordable
from spartan_ng.api.core.holders import newest
from spartan_ng.costs.tuned import CHAIN_STEPS
from spartan_ng.graph.node import OPERATORS, VIEWS, Node
from spartan_ng.ops.functions import UserFunction

_SHARE = 4
"""Of all that is computed, what nobody asked for takes no more than one part in so many: if it is not needed,
little is lost, and if it is, all but that is won."""
_SEEN = 4
"""Arrays that are looked at, for each node that is computed."""
_MOST = 8
"""Arrays that are computed though nobody asked."""


def siblings_of(asked: Sequence[Node], order: Sequence[Node]) -> list[tuple[Node, Any]]:
    """Nodes that cells hold, and these, to be computed with those `asked` for: nearly all that they need is
    in `order`, and would be computed again. What is asked for is not: that is kept."""
    if len(order) < CHAIN_STEPS:
        return []
    places = {node: i if node.inputs else 0 for i, node in enumerate(order)}
    places |= dict.fromkeys(asked, 0)
    found: list[tuple[Node, Any]] = []
    added: dict[Node, None] = {}
    for node, cell in newest(_SEEN * len(order)):
        if node in places or node in added or not is_affordable(node) or cell.is_part_of_one():
            continue
        more = _rest(node, places, added)
        if more is not None:
            found.append((node, cell))
            added.update(dict.fromkeys(more))
            if len(found) == _MOST:
                break
    if found and _SHARE * sum(map(any_work_ns, added)) > sum(map(any_work_ns, order)):
        return []
    return found


def _rest(node: Node, places: Mapping[Node, int], added: Mapping[Node, None]) -> list[Node] | None:
    """What a node needs that is neither in `places` nor `added`; None if that is much, or the places of what
    it shares with them are early ones, or it calls a function of the user's."""
    most, last = len(places) // _SHARE, 0
    rest, waiting = {node}, [node]
    while waiting:
        below = waiting.pop()
        if below.op not in OPERATORS and below.op not in VIEWS:
            if below.inputs or below.data is None:
                return None
        elif isinstance(below.fn, UserFunction):
            return None
        for operand in below.inputs:
            if operand in places:
                last = max(last, places[operand])
            elif operand not in rest and operand not in added:
                rest.add(operand)
                waiting.append(operand)
        if len(rest) > most:
            return None
    return [*rest] if last >= len(places) // 2 else None
