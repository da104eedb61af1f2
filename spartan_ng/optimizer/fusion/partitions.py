"""Plan partitions, their roots, inputs and interesting points: where the plan is a choice at all.

Fusion plans (SystemML), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from spartan_ng.optimizer.fusion.explore import Memo


@dataclass(frozen=True, slots=True)
class Point:
    """An interesting point: the dependency of an operator on a fusible operand. True: materialize it."""

    consumer: int
    target: int


@dataclass(frozen=True, slots=True)
class Partition:
    """A connected component of fusion references.

    Parameters
    ----------
    operators : their numbers, inputs first
    roots : those that no other of the partition references
    inputs : operators outside whose values are read inside
    shared : operators with several consumers, but for roots: materialization points
    points : the interesting points, in the order of their consumers
    """

    operators: tuple[int, ...]
    roots: frozenset[int]
    inputs: frozenset[int]
    shared: frozenset[int]
    points: tuple[Point, ...]


def partitions(memo: Memo) -> list[Partition]:
    """The partitions of a memo table; operators without references are in none."""
    references = [
        {memo.operators[n].edges[j].producer for j in memo.references(n)} for n in range(len(memo.operators))
    ]
    return [_partition(memo, references, members) for members in _components(references)]


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
    return [members for members in found.values() if len(members) > 1]


def _partition(memo: Memo, references: list[set[int]], members: list[int]) -> Partition:
    referenced = set[int]().union(*(references[n] for n in members))
    roots = frozenset(members) - referenced
    read = {e.producer for n in members for e in memo.operators[n].edges if e.producer >= 0}
    shared = frozenset(n for n in members if n not in roots and _is_shared(memo, n))
    points = [
        Point(n, t)
        for n in members
        for t in sorted(references[n])
        if t in shared or _switches_template(memo, n, t)
    ]
    return Partition(tuple(members), roots, frozenset(read - set(members)), shared, tuple(points))


def _is_shared(memo: Memo, number: int) -> bool:
    """Whether several operators (or the user) ask for the value."""
    operator = memo.operators[number]
    return len(set(operator.consumers)) + operator.required > 1


def _switches_template(memo: Memo, consumer: int, target: int) -> bool:
    """Whether the target's group has templates that the consumer's lacks."""
    return not memo.groups[target].keys() <= memo.groups[consumer].keys()
