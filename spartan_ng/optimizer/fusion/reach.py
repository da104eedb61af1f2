"""How far passes reach: for each operator, those in whose pass it may be computed.

Two operators that fit each other may still not stand in one pass, as its domain is that of the operator it
ends in: a value may be seen along other axes there, or in two ways. So a pass is followed from its end down
over all references, and `legality` is asked what may join. What a plan computes in a pass is among that, so
that what is chosen can be formed; but where a choice leaves a scan open, that may keep another from its pass.
"""

from __future__ import annotations

from collections.abc import Container
from heapq import heappop, heappush

from spartan_ng.graph.node import Op
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import Group, keep_rows, open_stage
from spartan_ng.optimizer.fusion.labels import WHOLE, Labels, whole_dimensions
from spartan_ng.optimizer.fusion.legality import kept_for, may_join


def reach(memo: Memo, end: int, inside: Container[int]) -> list[int]:
    """The operators, by number, that a pass may compute which ends in one; all of a partition, `inside`."""
    operators, drivers = memo.operators, memo.drivers
    stage, _ = open_stage(operators[end].node, operators[end].fusible)
    asked: dict[int, set[Labels | None]] = {}
    waiting: list[int] = []
    _ask(memo, end, stage, stage.out, inside, asked, waiting)
    found = []
    while waiting:
        number = -heappop(waiting)
        node, wanted = operators[number].node, asked[number]
        labels = next(iter(wanted)) if len(wanted) == 1 else _agreed(wanted, stage)
        if labels is None or not may_join(node, stage, labels, node in drivers):
            continue
        found.append(number)
        if node.op is not Op.MAP or len(labels) < len(stage.domain) or WHOLE in labels:
            stage.whole |= whole_dimensions(node, labels) | kept_for(node, stage, labels)
            stage.scan = node if node.op is Op.SCAN else stage.scan
        stage.members.append((node, labels))
        _ask(memo, number, stage, labels, inside, asked, waiting)
    return found


def _agreed(wanted: set[Labels | None], stage: Group) -> Labels | None:
    """The labels that all who read a value in a stage see it under; None where they do not agree."""
    seen = {None if labels is None else stage.canonical(labels) for labels in wanted}
    return seen.pop() if len(seen) == 1 else None


def _ask(
    memo: Memo,
    number: int,
    stage: Group,
    labels: Labels,
    inside: Container[int],
    asked: dict[int, set[Labels | None]],
    waiting: list[int],
) -> None:
    """Ask for what an operator reads in a stage, where the operator's value has these labels."""
    operator, references = memo.operators[number], memo.references[number]
    same = labels == operator.out and (operator.node is stage.root or operator.node.op is Op.MAP)
    place = None if same else dict(zip(operator.out, labels, strict=True))  # what it folds is whole there
    for j, edge in enumerate(operator.edges):
        seen = edge.labels
        if seen is not None and place is not None:
            seen = tuple([place.get(d, WHOLE) for d in seen])
        if edge.source.format != "dense":
            keep_rows(edge.source, stage, seen)
        if edge.producer in inside:
            if edge.producer not in asked:
                asked[edge.producer] = set()
                heappush(waiting, -edge.producer)
            asked[edge.producer].add(seen if j in references else None)
