"""Plan partitions, their roots, inputs and interesting points: where the plan is a choice at all.

Fusion plans (SystemML), section 4.2.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import NamedTuple

from msgspec import Struct

from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.legality import SMALL_REPEAT

MOST_OPERATORS = 128
"""Operators of a partition: costing a plan takes time in proportion to them, and so do the plans to cost."""
JOINED_POINTS = 5
"""Points of partitions that are searched together: so many that few plans are not costed."""


class Point(NamedTuple):
    """An interesting point: the dependency of an operator on a fusible operand. True: materialize it."""

    consumer: int
    target: int


class Partition(Struct, frozen=True):
    """A connected component of fusion references, or several that read an array in common.

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
    """The partitions of a memo table; operators without references are in none, but beside those that read an
    array of theirs, too.

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
        found += [_partition(memo, references, piece, read) for piece in pieces]
    return [p for p in _side_by_side(memo, found, most) if len(p.operators) > 1]


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
    for n, targets in enumerate(references):
        for t in targets:
            parent[_find(parent, n)] = _find(parent, t)
    found: dict[int, list[int]] = {}
    for n in range(len(references)):
        found.setdefault(_find(parent, n), []).append(n)
    return list(found.values())


def _find(parent: list[int], n: int) -> int:
    """Who stands for all that are joined with one."""
    while parent[n] != n:
        parent[n] = parent[parent[n]]
        n = parent[n]
    return n


def _side_by_side(memo: Memo, found: list[Partition], most: int) -> list[Partition]:
    """Partitions that read one array as one, as their passes may share that read.

    Not such as wait for each other, but for single operators; nor such as leave so much to choose that their
    assignments are better tried for each alone.
    """
    if len(found) == 1:
        return found
    groups, parent, waits = [[p] for p in found], list(range(len(found))), _waits(memo, found)
    bits = [(len(p.operators) > 1) << k for k, p in enumerate(found)]
    first: dict[Node, int] = {}
    for k, partition in enumerate(found):
        for source in _sources(memo, partition):
            one, other = _find(parent, k), _find(parent, first.setdefault(source, k))
            if one == other or waits[one] & bits[other] or waits[other] & bits[one]:
                continue
            both = [*groups[other], *groups[one]]
            points = sum([len(p.points) for p in both])
            if points <= JOINED_POINTS and sum([len(p.operators) for p in both]) <= most:
                parent[one], groups[other] = other, both
                waits[other] |= waits[one]
                bits[other] |= bits[one]
    return [_as_one(group) for k, group in enumerate(groups) if parent[k] == k]


def _waits(memo: Memo, found: list[Partition]) -> list[int]:
    """For each partition of several operators those that it waits for, through others, too: masks."""
    partition = {n: k for k, p in enumerate(found) for n in p.operators}
    behind, waits = [0] * len(memo.operators), [0] * len(found)
    for n, operator in enumerate(memo.operators):
        k = partition[n]
        for edge in operator.edges:
            if edge.producer >= 0:
                behind[n] |= behind[edge.producer] | 1 << partition[edge.producer]
        if len(found[k].operators) > 1:
            waits[k] |= behind[n] & ~(1 << k)
    return waits


def _sources(memo: Memo, partition: Partition) -> list[Node]:
    """The arrays that a partition reads, but for small ones."""
    edges = [e for n in partition.operators for e in memo.operators[n].edges if e.labels is not None]
    return [n for n in dict.fromkeys([e.source for e in edges]) if prod(n.shape) > SMALL_REPEAT]


def _as_one(parts: list[Partition]) -> Partition:
    """Partitions that are searched together."""
    if len(parts) == 1:
        return parts[0]
    operators = sorted([n for p in parts for n in p.operators])
    return Partition(
        tuple(operators),
        frozenset().union(*[p.roots for p in parts]),
        frozenset().union(*[p.inputs for p in parts]) - {*operators},
        frozenset().union(*[p.shared for p in parts]),
        tuple(sorted([point for p in parts for point in p.points])),
    )


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
