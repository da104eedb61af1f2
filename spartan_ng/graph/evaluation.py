"""The one door from the array API to the session: evaluate nodes to arrays with values.

The session opens it when it is imported (imports point from session to graph, never back).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node

Evaluate = Callable[[Sequence[Node]], list[ArrayRef]]
_evaluate: Evaluate | None = None
IsDear = Callable[[Node, Container[Node]], bool]
_in_process: Callable[[], bool] = bool
_is_dear: IsDear | None = None


def open_door(evaluate: Evaluate, in_process: Callable[[], bool] = bool) -> None:
    """Say who evaluates, and how to learn whether that happens in this process (it does not by default)."""
    global _evaluate, _in_process
    _evaluate, _in_process = evaluate, in_process


def lend_costs(is_dear: IsDear) -> None:
    """Say who knows what computing a node again costs."""
    global _is_dear
    _is_dear = is_dear


def in_process() -> bool:
    """Whether programs run in this process, on the driver's own memory."""
    return _in_process()


def is_dear(node: Node, stored: Container[Node]) -> bool:
    """Whether computing `node` again from data and `stored` nodes takes longer than keeping its value; no
    value is dear where nobody knows costs."""
    return _is_dear is not None and _is_dear(node, stored)


def evaluate(nodes: Sequence[Node]) -> list[ArrayRef]:
    """The values of `nodes`, computed together: shared steps run once."""
    assert _evaluate is not None, "spartan_ng.session has not been imported"
    return _evaluate(nodes)
