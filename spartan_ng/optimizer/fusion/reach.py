"""How far passes reach: for each operator, those in whose pass it may be computed.

Two operators that fit each other may still not stand in one pass, as its domain is that of the operator it
ends in: a value may be seen along other axes there, or in two ways. So a pass is followed from its end down
over all references, and `legality` is asked what may join. What a plan computes in a pass is among that, so
that what is chosen can be formed; but where a choice leaves a scan open, that may keep another from its pass.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.crossing import goes_alone
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import keep_rows, open_stage
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import one_name, whole_if_joined


class _Asks(dict[int, tuple[tuple[Node, int, Labels | None, bool], ...]]):
    """What operators ask for, found out once each: of each operand the value, who makes it inside the
    partition or -1, how it is seen, and whether it is fused at all."""

    def __init__(self, memo: Memo, inside: Container[int]) -> None:
        self.memo, self.inside = memo, inside

    def __missing__(self, number: int) -> tuple[tuple[Node, int, Labels | None, bool], ...]:
        references = self.memo.references[number]
        found = self[number] = tuple(
            [
                (e.source, e.producer if e.producer in self.inside else -1, e.labels, j in references)
                for j, e in enumerate(self.memo.operators[number].edges)
            ]
        )
        return found


class Reach:
    """What a pass may compute that ends in an operator; followed as far as is asked."""

    def __init__(self, memo: Memo, end: int, asks: _Asks) -> None:
        self.memo, self._asks = memo, asks
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
        self._wanted: dict[int, set[Labels | None]] = {}
        self._waiting: list[int] = []
        self._maps: dict[tuple[Labels, tuple[int, ...]] | None, frozenset[int]] = {}
        """What stays whole for maps that have joined: others that are seen like these may, too."""
        self._ask(end, self.stage.out)

    def down_to(self, last: int) -> list[int]:
        """Those not told of yet that come after the operator `last` in the graph, or are it."""
        operators, drivers, stage, waiting = self.memo.operators, self.memo.drivers, self.stage, self._waiting
        found: list[int] = []
        crossing = self.memo.crossing
        while waiting and -waiting[0] >= last:
            number = -heappop(waiting)
            node, wanted = operators[number].node, self._wanted[number]
            # Seen in one way only, dimensions that stay whole keep their names: others may go along them.
            (seen,) = wanted if len(wanted) == 1 else (one_name(node, stage, wanted),)
            if seen is None or (node in crossing and goes_alone(node, stage)):
                continue
            labels = stage.canonical(seen) if stage.whole else seen
            alike = (labels, node.shape) if _is_plain(node) and node not in drivers else None
            whole = self._maps.get(alike) if stage.scan is None else None
            if whole is None:
                whole = whole_if_joined(node, stage, labels, node in drivers)
                if whole is None:
                    continue
                if alike is not None:
                    self._maps[alike] = whole
            if whole:
                stage.whole |= whole
                self.kept[number] = whole
            if node.op is Op.SCAN:
                stage.scan = node
                self.closing.add(number)
            stage.members.append((node, labels))
            self.members[number] = labels
            self._ask(number, seen)
            found.append(number)
        return found

    def _keeps_rows(self, source: Node, seen: Labels | None, reader: Node) -> bool:
        """Whether a sparse operand closes the pass."""
        return keep_rows(source, self.stage, None if seen is None else self.stage.canonical(seen), reader)

    def _ask(self, number: int, labels: Labels) -> None:
        """Ask for what an operator reads, where its value has these labels."""
        operator, stage = self.memo.operators[number], self.stage
        same = labels == operator.out and (operator.node is stage.root or operator.node.op is Op.MAP)
        every, wanted = self.ways, self._wanted
        for source, producer, seen, fuses in self._asks[number]:
            if seen is not None:
                if not same:
                    seen = _moved(seen, operator.out, labels)
                ways = every.get(source)
                if ways is None:
                    every[source] = [seen]
                elif seen not in ways:
                    ways.append(seen)
            if source.format != "dense" and self._keeps_rows(source, seen, operator.node):
                self.closing.add(number)
            if producer >= 0:
                if producer not in wanted:
                    wanted[producer] = set()
                    heappush(self._waiting, -producer)
                wanted[producer].add(seen if fuses else None)


def _is_plain(node: Node) -> bool:
    return node.op is Op.MAP and node.format == "dense"


@lru_cache(maxsize=4096)
def _moved(seen: Labels, out: Labels, labels: Labels) -> Labels:
    """How a pass sees an operand of a node that has these labels there, and these in its own pass; what the
    node folds is whole."""
    place = dict(zip(out, labels, strict=True))
    return tuple([place.get(d, WHOLE) for d in seen])


class Reaches:
    """How far all passes reach that may end in the operators of a partition, by their places there."""

    def __init__(self, memo: Memo, operators: Sequence[int], number: Mapping[int, int]) -> None:
        self.memo, self.operators, self.number = memo, operators, number
        self._found: dict[int, Reach] = {}
        self._asks = _Asks(memo, number)
        self._last: dict[int, int] = {}
        """The places that they were followed to."""

    def of(self, end: int) -> Reach:
        """How far the pass reaches that ends in a place."""
        reach = self._found.get(end)
        if reach is None:
            reach = self._found[end] = Reach(self.memo, self.operators[end], self._asks)
            self._last[end] = end
        return reach

    def follow(self, end: int, last: int) -> tuple[int, list[int]]:
        """The place down to which the pass was followed, and what it may compute from there to another."""
        reach = self.of(end)
        before, self._last[end] = self._last[end], last
        return before, reach.down_to(self.operators[last])
