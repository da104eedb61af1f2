"""What a program holds besides what it asks for, and is nearly computed with it.

A loop brings several arrays from one turn to the next (`u, v = f(u, v), g(u, v)`), of which one is asked for
first. All turns are on the way to each, and each is but a step from what is computed for the others: the one
that is asked for next would have all of them computed again. So such are computed together, as they would be
if the program asked for all of them at once.

A function may give several arrays that are made of one dear result, which nobody has once it has returned
(`f = fft2(x); return ifft2(f * a), ifft2(f * b)`). Each would make that result anew, so they are computed
together, too, as NumPy has done long before.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from spartan_ng.api.core import door
from spartan_ng.api.core.backlog import any_work_ns, is_affordable
from spartan_ng.api.core.holders import holder_of, newest
from spartan_ng.costs.tuned import CHAIN_STEPS
from spartan_ng.graph.evaluation import is_dear
from spartan_ng.graph.node import OPERATORS, VIEWS, Node, Op
from spartan_ng.ops.functions import UserFunction

_SHARE = 4
"""Of all that is computed, what nobody asked for takes no more than one part in so many: if it is not needed,
little is lost, and if it is, all but that is won."""
_SEEN = 4
"""Arrays that are looked at, for each node that is computed."""
_STEPS = 12
"""Steps, at most, between a result that several arrays are made of and them."""
_BY_LINES = frozenset({"along_axis", "contract", "matrices"})
"""Functions that work on whole lines or matrices, beside scans: nothing is fused into them."""
_MOST = 8
"""Arrays that are computed though nobody asked."""


def siblings_of(asked: Sequence[Node], order: Sequence[Node]) -> list[tuple[Node, Any]]:
    """Nodes that cells hold, and these, to be computed with those `asked` for: what is dear of all that they
    need is in `order`, and would be computed again. What is asked for is not: that is kept."""
    apart = [i for i, node in enumerate(order) if node.fn in _BY_LINES or node.op is Op.SCAN]
    is_long = len(order) >= CHAIN_STEPS
    others = _others(order) if apart or is_long else []
    if not others:
        return []
    shared = _shared(asked, order, apart) if apart else None
    found = _made_of(shared, others) if shared else []
    return found + _brought_along([*asked, *dict(found)], order, others) if is_long else found


def _others(order: Sequence[Node]) -> list[tuple[Node, Any]]:
    """The last arrays that there are besides those of `order`, as far as there is room, and their cells."""
    found = newest(_SEEN * len(order), set(order))
    return [(node, cell) for node, cell in found if is_affordable(node)] if found else found


def _shared(asked: Sequence[Node], order: Sequence[Node], apart: Sequence[int]) -> set[Node]:
    """Large results on the way that no array has, and steps outside of `order` read: those at the places
    `apart` that are dear, and what is made of them."""
    dear, places = set[Node](), set(apart)
    for i in range(apart[0], len(order)):
        node = order[i]
        is_dear_itself = i in places and not door.is_small(node.nbytes)
        if is_dear_itself and node.fn == "contract":
            is_dear_itself = is_dear(node, ())
        if (is_dear_itself or not dear.isdisjoint(node.inputs)) and holder_of(node) is None:
            dear.add(node)
    del node  # references are counted below
    dear.difference_update(asked)
    return {n for n in read_elsewhere(dear, order) if not door.is_small(n.nbytes) and is_affordable(n)}


def read_elsewhere(nodes: set[Node], order: Sequence[Node]) -> set[Node]:
    """Those of `nodes` (in `order`) that steps outside of `order` read, too."""
    inside = Counter([i for node in order for i in node.inputs if i in nodes]) if nodes else {}
    # Known to the set, to `order`, to the counter, to the name here, and to the argument, besides.
    return {node for node in nodes if sys.getrefcount(node) > 5 + inside[node]}


def _made_of(shared: set[Node], others: Sequence[tuple[Node, Any]]) -> list[tuple[Node, Any]]:
    """Of `others` those that are made of what is `shared`, within few steps: the last ones."""
    found = ((node, cell) for node, cell in others if _reads(node, shared))
    return list(islice(found, _MOST))


def _reads(node: Node, shared: set[Node]) -> bool:
    """Whether a node is made of one of others in few steps, none of which is a function of the user's."""
    seen, waiting = {node}, [node]
    while waiting and len(seen) <= _STEPS:
        below = waiting.pop()
        if isinstance(below.fn, UserFunction):
            return False
        for operand in below.inputs:
            if operand in shared:
                return True
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)
    return False


def _brought_along(
    asked: Sequence[Node], order: Sequence[Node], others: Sequence[tuple[Node, Any]]
) -> list[tuple[Node, Any]]:
    """Those of which nearly all steps are in `order`, up to late ones."""
    places = {node: i if node.inputs else 0 for i, node in enumerate(order)}
    places |= dict.fromkeys(asked, 0)
    found: list[tuple[Node, Any]] = []
    added: dict[Node, None] = {}
    for node, cell in others:
        if node in places or node in added or cell.is_part_of_one():
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
