"""A stage as the optimizer would form it, without asking whether the optimizer ever would.

A group has its members under the labels that their readers see them by. What these would have to be computed
for twice, or see in two ways, is refused.
"""

from __future__ import annotations

from collections.abc import Collection

from spartan_ng.graph.node import VIEWS, Node, Op, topological
from spartan_ng.optimizer.fusion.group import Group, Result
from spartan_ng.optimizer.fusion.labels import Labels, input_labels, root
from spartan_ng.optimizer.fusion.legality import BLOCK_REPEAT
from tests.stages.values import Ended, Rejected


class _Demands:
    """Which nodes a group computes, and under which labels."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.labels: dict[Node, Labels] = {}

    def of(self, node: Node, seen: tuple[Labels, ...]) -> None:
        """A node sees its inputs so."""
        for source, labels in zip(node.inputs, seen, strict=True):
            known = self.labels.setdefault(source, labels)
            same = self.group.canonical(known) == self.group.canonical(labels)
            if not same and source.op is not Op.DATA:
                raise Rejected("seen in two ways")


def grouped(domain: tuple[int, ...], whole: Collection[int], ended: Ended) -> Group:
    """The group that ends in a value, and stores further ones; `Rejected` where there is none."""
    top, more = ended
    shape = root(top.node)
    if shape.domain != domain:
        raise Rejected("another domain")
    group = Group(top.node, domain, shape.out, set(whole) | set(shape.whole))
    demands = _Demands(group)
    demands.of(top.node, shape.inputs)
    for v, folded in more:
        if group.holds(v.node):
            continue
        if folded is not None:
            seen = (folded.labels,) * len(v.node.inputs)
            group.more.append(Result(v.node, v.labels, seen))
            demands.of(v.node, seen)
        else:
            group.more.append(Result(v.node, v.labels))
            demands.labels.setdefault(v.node, v.labels)
    for node in reversed(topological(group.stored)):
        if node.op not in (Op.DATA, Op.SLICE) and node in demands.labels:
            _add_member(group, node, demands)
    if group.scan is None and top.node.op is Op.SCAN:
        group.scan = top.node
    return group


def _add_member(group: Group, node: Node, demands: _Demands) -> None:
    if node is group.root or any(r.node is node and r.inputs is not None for r in group.more):
        raise Rejected("a fold over the domain is used inside")
    labels = demands.labels[node]
    missing = {d for d, n in enumerate(group.domain) if n > 1 and d not in labels} - group.whole
    free = node.op in (Op.INDEX, *VIEWS) or (node.op is Op.MAP and node.size <= BLOCK_REPEAT)
    if missing and not free:
        raise Rejected("computed again for each block")
    if node.op is Op.SCAN:
        group.scan = node
    group.members.append((node, labels))
    demands.of(node, input_labels(node, labels))
