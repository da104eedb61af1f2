"""Which of a program's lazy arrays need the same steps, and take these again if they are computed alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spartan_ng.api.core.forcing import is_kept
from spartan_ng.graph.node import OPERATORS, Node, topological


def with_same_steps(nodes: Sequence[Node], others: Mapping[str, Node]) -> dict[str, Node]:
    """Those of the `others`, by their names, that need steps or read files of these nodes', and find none of
    those that an evaluation of `nodes` keeps."""
    order = topological(nodes)
    own = set(order)
    steps = {n for n in order if n.op in OPERATORS or (n.data is not None and n.data.chunks is not None)}
    kept = {n for n in order if is_kept(n, set(nodes))}
    found: dict[str, Node] = {}
    for name, other in others.items():
        below = set(topological([other]))
        if other not in own and not below.isdisjoint(steps) and below.isdisjoint(kept):
            found.setdefault(name, other)
    return found
