"""Find candidate fused operators: grow each matrix product by its neighbours up to what must be stored.

A value that several operators read (or that is asked for) and an aggregation that needs a shuffle end a
fused operator: only its top may be one. A value of that kind met below a candidate stays out of this
candidate alone, so that it can seed or top another.

FuseME (SIGMOD '22), section 4.1 and Alg. 2, corrected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.cuboid.sizes import is_dense_product
from spartan_ng.optimizer.fusion.labels import is_fusible, is_transparent


class Candidate(Struct, frozen=True, eq=False):
    """A fused operator to be: its members, and the one whose value is materialized."""

    members: frozenset[Node]
    top: Node


def explore_products(order: Sequence[Node], roots: Collection[Node]) -> list[Candidate]:
    """The candidates of a graph in topological order, one for each region with a product."""
    return _Exploration(order, roots).run()


class _Exploration:
    """One walk over the products that no candidate has yet."""

    def __init__(self, order: Sequence[Node], roots: Collection[Node]) -> None:
        self.order = order
        self.roots = set(roots)
        self.readers: dict[Node, list[Node]] = {n: [] for n in order}
        for node in order:
            for i in node.inputs:
                self.readers[i].append(node)
        one = Profile()
        self.workload = {
            n for n in order if n.op is not Op.DATA and (is_fusible(n, one) or is_transparent(n))
        }

    def run(self) -> list[Candidate]:
        """Seed by seed, in the graph's order."""
        return [self._grow(n) for n in self.order if is_dense_product(n) and n in self.workload]

    def _grow(self, seed: Node) -> Candidate:
        members, skipped = {seed}, set[Node]()
        top, ended = seed, self._is_termination(seed)
        self.workload.discard(seed)  # each operator is in one candidate
        new = [seed]
        while new:
            above = [] if ended else [r for r in self.readers[top] if r in self.workload]
            below = [i for n in new for i in n.inputs if i in self.workload]
            adjacent = dict.fromkeys((*above, *below))
            new = []
            for node in adjacent:
                if node in members or node in skipped:
                    continue
                # Above the top it becomes the new top, though it ends the operator; below a candidate such a
                # value is read, not made again.
                if node in above:
                    top, ended = node, self._is_termination(node)
                elif self._is_termination(node):
                    skipped.add(node)
                    continue
                members.add(node)
                new.append(node)
                self.workload.discard(node)
        return Candidate(frozenset(members), top)

    def _is_termination(self, node: Node) -> bool:
        """Whether the value has to be stored: it has several readers, is asked for, or is shuffled."""
        return len(self.readers[node]) != 1 or node in self.roots or node.op is Op.FOLD
