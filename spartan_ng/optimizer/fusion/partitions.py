"""Plan partitions, their roots, inputs and interesting points: where the plan is a choice at all.

Fusion plans (SystemML), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from spartan_ng.graph.node import Op
from spartan_ng.optimizer.fusion.explore import Memo

MOST_OPERATORS = 128
"""Operators of a partition: costing a plan takes time in proportion to them, and so do the plans to cost."""


class Point(NamedTuple):
    """An interesting point: the dependency of an operator on a fusible operand. True: materialize it."""

    consumer: int
    target: int


@dataclass(frozen=True, slots=True)
class Partition:
    """A connected component of fusion references.

    Parameters
    ----------
    operators : their numbers, inputs first
    roots : those that no other of the partition references, or others than the partition's do
    inputs : operators outside whose values are read inside
    shared : operators with several consumers, but for roots: materialization points
    points : the interesting points, in the order of their consumers
    """

    operators: tuple[int, ...]
    roots: frozenset[int]
    inputs: frozenset[int]
    shared: frozenset[int]
    points: tuple[Point, ...]


def partitions(memo: Memo, most: int = MOST_OPERATORS) -> list[Partition]:
    """The partitions of a memo table; operators without references are in none.

    One of more than `most` operators is parted into runs of them, where the fewest references cross; what
    crosses belongs to no partition.
    """
    references = [
        {memo.operators[n].edges[j].producer for j in memo.references[n]} for n in range(len(memo.operators))
    ]
    found = []
    for component in _components(references):
        pieces = _pieces(component, references, most)
        read = _read_elsewhere(pieces, references) if len(pieces) > 1 else set[int]()
        found += [_partition(memo, references, piece, read) for piece in pieces if len(piece) > 1]
    return found


def _pieces(members: list[int], references: list[set[int]], most: int) -> list[list[int]]:
    """Runs of a component's operators, each of `most` at most and half as many at least but for the last."""
    if len(members) <= most:
        return [members]
    last = {t: n for n in members for t in references[n]}
    place = {n: i for i, n in enumerate(members)}
    crossing = [0] * (len(members) + 1)
    for t, n in last.items():
        crossing[place[t] + 1] += 1
        crossing[place[n] + 1] -= 1
    crossing = list(accumulate(crossing))
    pieces, start = [], 0
    while len(members) - start > most:
        end = min(range(start + most, start + most // 2, -1), key=crossing.__getitem__)
        pieces.append(members[start:end])
        start = end
    return [*pieces, members[start:]]


def _read_elsewhere(pieces: list[list[int]], references: list[set[int]]) -> set[int]:
    """The operators that ones of other pieces reference."""
    piece = {n: i for i, members in enumerate(pieces) for n in members}
    return {t for n, i in piece.items() for t in references[n] if piece[t] != i}


def _components(references: list[set[int]]) -> list[list[int]]:
    """Operators connected by references, each component ascending."""
    parent = list(range(len(references)))

    def find(n: int) -> int:
        while parent[n] != n:
            parent[n] = parent[parent[n]]
            n = parent[n]
        return n

    for n, targets in enumerate(references):
        for t in targets:
            parent[find(n)] = find(t)
    found: dict[int, list[int]] = {}
    for n in range(len(references)):
        found.setdefault(find(n), []).append(n)
    return list(found.values())


def _partition(memo: Memo, references: list[set[int]], members: list[int], elsewhere: set[int]) -> Partition:
    """The partition of some members; those that are referenced from `elsewhere` are roots."""
    inside = set(members)
    referenced = set[int]().union(*(references[n] for n in members))
    roots = frozenset((inside - referenced) | (inside & elsewhere))
    read = {e.producer for n in members for e in memo.operators[n].edges if e.producer >= 0}
    shared = frozenset(n for n in members if n in referenced and _is_shared(memo, n))
    points = [
        Point(n, t)
        for n in members
        for t in sorted(references[n] & inside)
        if t in shared or memo.operators[t].node.op is Op.SCAN or _switches_template(memo, n, t)
    ]
    return Partition(tuple(members), roots, frozenset(read - inside), shared, tuple(points))


def _is_shared(memo: Memo, number: int) -> bool:
    """Whether several operators (or the user) ask for the value."""
    operator = memo.operators[number]
    return len(set(operator.consumers)) + operator.required > 1


def _switches_template(memo: Memo, consumer: int, target: int) -> bool:
    """Whether the target's group has templates that the consumer's lacks."""
    return not memo.groups[target].keys() <= memo.groups[consumer].keys()
