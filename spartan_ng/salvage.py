"""What a job had made when a worker died under it: the program goes on from there.

Each array that the plan stored stands in the program for what it was made of. It remembers that, too: of one
that others have not done or that went with the worker, the tiles that are missing are computed again
(`recovery`), which asks for missing tiles of arrays before it, and so on. So finished stages are not run
again, where their tiles are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.lineage import Recipe, record


def over_what_is_left(roots: Sequence[Node], left: Mapping[Node, ArrayRef]) -> list[Node]:
    """`roots` over the arrays that are `left` of some of their nodes; these come from each other."""
    found: dict[Node, Node] = {}
    for node in topological(roots):
        inputs = tuple(found[i] for i in node.inputs)
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        found[node] = node if same else replace(node, inputs=inputs)
        ref = left.get(node)
        if ref is not None:
            program = [found[node]]
            leaves = list(dict.fromkeys(n.data for n in topological(program) if n.data is not None))
            record(Recipe.of(program, leaves), leaves, [ref])
            found[node] = build.data(ref)
    return [found[root] for root in roots]
