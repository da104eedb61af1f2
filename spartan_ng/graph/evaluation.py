"""The one door from the array API to the session: evaluate nodes to arrays with values.

The session opens it when it is imported (imports point from session to graph, never back).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node

Evaluate = Callable[[Sequence[Node]], list[ArrayRef]]
_evaluate: Evaluate | None = None


def open_door(evaluate: Evaluate) -> None:
    """Say who evaluates."""
    global _evaluate
    _evaluate = evaluate


def evaluate(nodes: Sequence[Node]) -> list[ArrayRef]:
    """The values of `nodes`, computed together: shared steps run once."""
    assert _evaluate is not None, "spartan_ng.session has not been imported"
    return _evaluate(nodes)
