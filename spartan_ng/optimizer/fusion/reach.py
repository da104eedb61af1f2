"""How far passes reach: for each operator, those in whose pass it may be computed.

Two operators that fit each other may still not stand in one pass, as its domain is that of the operator it
ends in: a value may be seen along other axes there, or in two ways. So a pass is followed from its end down
over all references, and `legality` is asked what may join. What a plan computes in a pass is among that, so
that what is chosen can be formed; but where a choice leaves a scan open, that may keep another from its pass.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from heapq import heappop, heappush

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Op
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import Group, keep_rows, open_stage
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import whole_if_joined


class Reach:
    """What a pass may compute that ends in an operator, of those `inside`; followed as far as is asked."""

    def __init__(self, memo: Memo, end: int, inside: Container[int]) -> None:
        self.memo, self.inside = memo, inside
        operator = memo.operators[end]
        self.stage, _ = open_stage(operator.node, operator.fusible)
        self._asked: dict[int, set[Labels | None]] = {}
        self._waiting: list[int] = []
        self._ask(end, self.stage.out)

    def down_to(self, last: int) -> Iterator[int]:
        """Those not told of yet that come after the operator `last` in the graph, or are it."""
        operators, drivers, stage = self.memo.operators, self.memo.drivers, self.stage
        while self._waiting and -self._waiting[0] >= last:
            number = -heappop(self._waiting)
            node, wanted = operators[number].node, self._asked[number]
            labels = next(iter(wanted)) if len(wanted) == 1 else _agreed(wanted, stage)
            whole = None if labels is None else whole_if_joined(node, stage, labels, node in drivers)
            if labels is None or whole is None:
                continue
            stage.whole |= whole
            stage.scan = node if node.op is Op.SCAN else stage.scan
            stage.members.append((node, labels))
            self._ask(number, labels)
            yield number

    def _ask(self, number: int, labels: Labels) -> None:
        """Ask for what an operator reads, where its value has these labels."""
        operator, references, stage = self.memo.operators[number], self.memo.references[number], self.stage
        same = labels == operator.out and (operator.node is stage.root or operator.node.op is Op.MAP)
        place = None if same else dict(zip(operator.out, labels, strict=True))  # what it folds is whole there
        for j, edge in enumerate(operator.edges):
            seen = edge.labels
            if seen is not None and place is not None:
                seen = tuple([place.get(d, WHOLE) for d in seen])
            if edge.source.format != "dense":
                keep_rows(edge.source, stage, seen)
            if edge.producer in self.inside:
                if edge.producer not in self._asked:
                    self._asked[edge.producer] = set()
                    heappush(self._waiting, -edge.producer)
                self._asked[edge.producer].add(seen if j in references else None)


def _agreed(wanted: set[Labels | None], stage: Group) -> Labels | None:
    """The labels that all who read a value in a stage see it under; None where they do not agree."""
    seen = {None if labels is None else stage.canonical(labels) for labels in wanted}
    return seen.pop() if len(seen) == 1 else None
