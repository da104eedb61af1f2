"""The one door from the array API to the session: evaluate nodes to arrays with values.

The session opens it when it is imported (imports point from session to graph, never back).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node

Evaluate = Callable[[Sequence[Node]], list[ArrayRef]]
_evaluate: Evaluate | None = None
_in_process: Callable[[], bool] = bool


def open_door(evaluate: Evaluate, in_process: Callable[[], bool] = bool) -> None:
    """Say who evaluates, and how to learn whether that happens in this process (it does not by default)."""
    global _evaluate, _in_process
    _evaluate, _in_process = evaluate, in_process


def in_process() -> bool:
    """Whether programs run in this process, on the driver's own memory."""
    return _in_process()


_AT_ONCE = 8


def at_once_bytes(small_bytes: int) -> int:
    """How large a value that is here already may be for NumPy to fold or pick from it at once.

    A plan in this process takes longer than that to begin; on a cluster only what is small stays here.
    """
    return _AT_ONCE * small_bytes if _in_process() else small_bytes


def evaluate(nodes: Sequence[Node]) -> list[ArrayRef]:
    """The values of `nodes`, computed together: shared steps run once."""
    assert _evaluate is not None, "spartan_ng.session has not been imported"
    return _evaluate(nodes)
