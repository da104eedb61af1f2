"""How far passes reach: for each operator, those in whose pass it may be computed.

Two operators that fit each other may still not stand in one pass, as its domain is that of the operator it
ends in: a value may be seen along other axes there, or in two ways. So a pass is followed from its end down
over all references, and `legality` is asked what may join. What a plan computes in a pass is among that, so
that what is chosen can be formed; but where a choice leaves a scan open, that may keep another from its pass.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import keep_rows, open_stage
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import one_name, whole_if_joined


class Reach:
    """What a pass may compute that ends in an operator, of those `inside`; followed as far as is asked."""

    def __init__(self, memo: Memo, end: int, inside: Container[int]) -> None:
        self.memo, self.inside = memo, inside
        operator = memo.operators[end]
        self.stage, _ = open_stage(operator.node, operator.fusible)
        self.ways: dict[Node, list[Labels]] = {operator.node: [self.stage.out]}
        """How the pass sees what it computes or reads."""
        self.members: dict[int, Labels] = {}
        """How the pass sees what it computes on its way."""
        self.kept: dict[int, frozenset[int]] = {}
        """Dimensions that stay whole for an operator, where there are any."""
        self.closing: set[int] = set()
        """Operators beside which a pass has no further results: scans, and readers of sparse arrays."""
        self.whole = frozenset(self.stage.whole)
        """Dimensions that stay whole for where it ends."""
        self._asked: dict[int, set[Labels | None]] = {}
        self._waiting: list[int] = []
        self._ask(end, self.stage.out)

    def down_to(self, last: int) -> Iterator[int]:
        """Those not told of yet that come after the operator `last` in the graph, or are it."""
        operators, drivers, stage = self.memo.operators, self.memo.drivers, self.stage
        while self._waiting and -self._waiting[0] >= last:
            number = -heappop(self._waiting)
            node, wanted = operators[number].node, self._asked[number]
            labels = one_name(node, stage, wanted)
            whole = None if labels is None else whole_if_joined(node, stage, labels, node in drivers)
            if labels is None or whole is None:
                continue
            if whole:
                stage.whole |= whole
                self.kept[number] = whole
            if node.op is Op.SCAN:
                stage.scan = node
                self.closing.add(number)
            stage.members.append((node, labels))
            self.members[number] = labels
            # Seen in one way only, dimensions that stay whole keep their names: others may go along them.
            self._ask(number, labels if len(wanted) > 1 else next(filter(None, wanted), labels))
            yield number

    def _keeps_rows(self, source: Node, seen: Labels | None, reader: Node) -> bool:
        """Whether a sparse operand closes the pass."""
        return keep_rows(source, self.stage, None if seen is None else self.stage.canonical(seen), reader)

    def _ask(self, number: int, labels: Labels) -> None:
        """Ask for what an operator reads, where its value has these labels."""
        operator, references, stage = self.memo.operators[number], self.memo.references[number], self.stage
        same = labels == operator.out and (operator.node is stage.root or operator.node.op is Op.MAP)
        place = None if same else dict(zip(operator.out, labels, strict=True))  # what it folds is whole there
        for j, edge in enumerate(operator.edges):
            seen = edge.labels
            if seen is not None and place is not None:
                seen = tuple([place.get(d, WHOLE) for d in seen])
            if seen is not None and seen not in (ways := self.ways.setdefault(edge.source, [])):
                ways.append(seen)
            if edge.source.format != "dense" and self._keeps_rows(edge.source, seen, operator.node):
                self.closing.add(number)
            if edge.producer in self.inside:
                if edge.producer not in self._asked:
                    self._asked[edge.producer] = set()
                    heappush(self._waiting, -edge.producer)
                self._asked[edge.producer].add(seen if j in references else None)


class Reaches:
    """How far all passes reach that may end in the operators of a partition, by their places there."""

    def __init__(self, memo: Memo, operators: Sequence[int], number: Mapping[int, int]) -> None:
        self.memo, self.operators, self.number = memo, operators, number
        self._found: dict[int, Reach] = {}
        self._last: dict[int, int] = {}
        """The places that they were followed to."""

    def of(self, end: int) -> Reach:
        """How far the pass reaches that ends in a place."""
        reach = self._found.get(end)
        if reach is None:
            reach = self._found[end] = Reach(self.memo, self.operators[end], self.number)
            self._last[end] = end
        return reach

    def follow(self, end: int, last: int) -> tuple[int, Iterator[int]]:
        """The place down to which the pass was followed, and what it may compute from there to another."""
        reach = self.of(end)
        before, self._last[end] = self._last[end], last
        return before, reach.down_to(self.operators[last])
