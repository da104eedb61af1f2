"""What a rule is, and how a table of them is applied: from the results down, until none fits.

After the static and dynamic rewrites of SystemML (Boehm et al., "SystemML's Optimizer: Plan Generation for
Large-Scale Machine Learning Programs", IEEE Data Eng. Bull. 37(3), 2014).

A rule looks at a node and at what it reads. It may take apart only values that nobody else reads: what is
needed anyway is not computed a second time in another way. Rules see the graph alone, never workers or
layouts, so that a program is rewritten in one way wherever it runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.trail import tell

_PARTS = 8
"""Slices of a value that are made of as many slices of what it is made of, at most."""


class ReaderCounts:
    """How many nodes read every value, kept true while rules replace nodes."""

    def __init__(self, roots: Sequence[Node], order: Collection[Node]) -> None:
        self._count = Counter(i for n in order for i in {*n.inputs})
        # Who asks for a value reads it, too.
        self._count.update(roots)
        self._in_parts = self._read_in_parts(order)
        self._views: dict[Hashable, Node] = {}
        self.looked_at: set[Node] = set()
        """Products that stand in a chain whose order has been found."""

    def alone(self, node: Node) -> bool:
        """Whether a value has one reader, or none."""
        return self._count[node] <= 1

    def in_parts(self, node: Node) -> bool:
        """Whether all that is read of a value are a few slices, together no more than half of it."""
        return node in self._in_parts

    def _read_in_parts(self, order: Collection[Node]) -> set[Node]:
        parts: defaultdict[Node, list[int]] = defaultdict(list)
        for node in order:
            if node.op is Op.SLICE:
                parts[node.inputs[0]].append(node.size)
        return {
            a
            for a, sizes in parts.items()
            if len(sizes) == self._count[a] and len(sizes) <= _PARTS and 2 * sum(sizes) <= a.size
        }

    def read_again(self, node: Node) -> None:
        """A rule has given the value one more reader."""
        self._count[node] += 1

    def replaced(self, old: Node, new: Node) -> None:
        """Those who read `old` now read `new`."""
        if new is not old:
            self._count[new] += self._count[old]

    def cut(self, a: Node, starts: Sequence[int], steps: Sequence[int], shape: tuple[int, ...]) -> Node:
        """A slice of a value whose only reader it becomes; a slice of a slice is one of what that reads."""
        key = (a, *zip(starts, steps, shape, strict=True))
        if key not in self._views:
            self._views[key] = self._instead_of(a, build.slice_(a, starts, steps, shape))
        return self._views[key]

    def turned(self, a: Node, axes: Sequence[int]) -> Node:
        """A transpose of a value, in the same way."""
        return self._instead_of(a, build.transpose(a, axes))

    def _instead_of(self, a: Node, view: Node) -> Node:
        if view is not a and a not in view.inputs and not self.alone(a):
            for below in view.inputs or (view,):
                self.read_again(below)
        return view


Rewrite = Callable[[Node, ReaderCounts], Node | None]


class Rule(Struct, frozen=True):
    """One law, as a row of the table in `docs/optimizer.md`.

    Parameters
    ----------
    name : what it is called
    pattern, replacement : what it looks for, and what it puts there, as NumPy's expressions
    condition : of which values it holds, and when it pays
    op : the operator of the nodes that it looks at
    rewrite : the node that replaces a node, or None where the rule does not fit
    """

    name: str
    pattern: str
    replacement: str
    condition: str
    op: Op
    rewrite: Rewrite


def rewritten(rules: Iterable[Rule], roots: Sequence[Node]) -> list[Node]:
    """The roots after the rules; what no rule changes keeps its identity.

    A node is looked at before what it reads, and again where that has changed. Chains are long: the walk
    has a stack of its own.
    """
    by_op: defaultdict[Op, list[Rewrite]] = defaultdict(list)
    for rule in rules:
        by_op[rule.op].append(rule.rewrite)
    readers = ReaderCounts(roots, topological(roots))
    done: dict[Node, Node] = {}
    shaped: dict[Node, Node] = {}
    waiting: list[Node] = list(reversed(roots))
    while waiting:
        node = waiting[-1]
        if node in done:
            waiting.pop()
            continue
        if node not in shaped:
            shaped[node] = _shaped(node, by_op, readers)
        best = shaped[node]
        below = [i for i in best.inputs if i not in done]
        if below:
            waiting.extend(reversed(below))
            continue
        inputs = tuple([done[i] for i in best.inputs])
        if inputs != best.inputs:
            best = replace(best, inputs=inputs)
            again = _shaped(best, by_op, readers)
            # A rule fits now that its operands are new: what it gives may have others, which come first.
            if again is not best:
                shaped[node] = again
                continue
        waiting.pop()
        # A rule may lead to a node that another way has led to: it is looked at once.
        done[node] = done[best] = best
        readers.replaced(node, best)
    tell(done)
    return [done[r] for r in roots]


def _shaped(node: Node, by_op: defaultdict[Op, list[Rewrite]], readers: ReaderCounts) -> Node:
    """The node after all rules that fit it."""
    changed = True
    while changed:
        changed = False
        for rewrite in by_op.get(node.op, ()):
            found = rewrite(node, readers)
            if found is not None:
                node, changed = found, True
                # From the first rule on: what was found may have another operator.
                break
    return node
