"""Random numbers that memory has no room for, and that no pass draws as it goes: read as a source is.

Whoever reads them draws them again, some at a time, where that takes less than to write them to disk, and to
read them there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence

from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import of_node
from spartan_ng.costs.tuned import ASIDE
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.fusion.policies import form_stages
from spartan_ng.optimizer.rewrite.rebuild import rebuild
from spartan_ng.sources.drawn import Drawn


def read_as_drawn(
    roots: Sequence[Node],
    rewrite: Callable[[Sequence[Node]], list[Node]],
    room: int,
    policy: str,
    profile: Profile,
) -> list[Node]:
    """`roots` over sources in place of what takes more than so many bytes, and would be drawn to be stored in
    the stages that a policy forms of them, as `rewrite` has them."""
    rewritten = rewrite(roots)
    order = topological(rewritten)
    stored = {r for r in rewritten if r.op is not Op.DATA}
    grouping = form_stages(order, stored, policy, profile)
    apart = {
        _array(n)
        for n, stage in grouping.stored.items()
        if n.op is Op.RANDOM and n not in stored and n.nbytes > room
        if _is_drawn_again(n, len(stage.users), profile)
    }
    apart.difference_update(_array(r) for r in roots if r.op is Op.RANDOM)  # which are to be stored
    leaves: dict[Hashable, Node] = {}
    return rebuild(roots, lambda node: _over(node, apart, leaves)) if apart else list(roots)


def _array(node: Node) -> Hashable:
    """The array that numbers are of, all of them or a part."""
    key, *parameters = node.params
    return node.fn, key[1] if key[0] == "part" else key, *parameters


def _is_drawn_again(node: Node, readers: int, profile: Profile) -> bool:
    """Whether to draw numbers for each of so many readers takes less than to have them on disk."""
    disk = node.nbytes * (ASIDE * profile.memory_ps + readers * profile.outside_ps)
    return (readers - 1) * of_node(node) * profile.flop_ps < disk


def _over(node: Node, apart: Container[Hashable], leaves: dict[Hashable, Node]) -> Node:
    """The node, or what takes its place; two of the same numbers are one leaf."""
    if node.op is Op.RANDOM and _array(node) in apart:
        key, *parameters = node.params
        source = Drawn(str(node.fn), key, tuple(parameters), node.shape, node.dtype)
        return _leaf(source, leaves)
    if node.op is Op.RESHAPE and (below := node.inputs[0].data) is not None:
        other = below.source.reshaped(node.shape) if isinstance(below.source, Drawn) else None
        return node if other is None else _leaf(other, leaves)
    return node


def _leaf(source: Drawn, leaves: dict[Hashable, Node]) -> Node:
    likeness = source.likeness()
    if likeness not in leaves:
        leaves[likeness] = build.data(ArrayRef(source.shape, source.dtype, source=source))
    return leaves[likeness]
