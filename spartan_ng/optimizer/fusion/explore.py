"""Candidate exploration: the memo table of partial fusion plans, filled by open-fuse-merge-close.

One pass over the operators, inputs first; an operator looks at its own edges and the groups of its
operands only, so the pass is linear. A group has at most one alternative a template: the operands that may
be fused. It stands for all the paper's entries of that type, one for each subset of them.

Fusion plans (SystemML), section 3, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from msgspec import Struct

from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.operators import Edge, Estimate, Operator
from spartan_ng.optimizer.fusion.sampling import Drivers, is_sampled_product
from spartan_ng.optimizer.fusion.templates import TEMPLATES, Conditions, Status, Template

MATERIALIZED = -1
"""In place of a group: the operand is read."""


class Entry(Struct, frozen=True):
    """The paper's memo table entry: template, a group or MATERIALIZED for each operand, close status."""

    template: Template
    inputs: tuple[int, ...]
    status: Status

    def __str__(self) -> str:
        return f"{self.template.value[0]}({','.join(map(str, self.inputs))})"


class Alternative(NamedTuple):
    """All entries of one template at one operator.

    Parameters
    ----------
    fusible : the operands, by position, that an entry may reference
    needs : an entry references one of these at least; empty where the template opens here
    status : the close status of every entry
    """

    template: Template
    fusible: frozenset[int]
    needs: frozenset[int]
    status: Status


Group = dict[Template, Alternative]
"""The alternatives of one operator; empty where it is not amenable to fusion."""


class Memo(Struct, frozen=True):
    """W: the groups by the operators' numbers."""

    operators: tuple[Operator, ...]
    groups: tuple[Group, ...]
    drivers: Drivers
    references: tuple[frozenset[int], ...]
    """For each operator the operands, by position, that some entry of it references."""
    known: Mapping[Node, Estimate]
    """What has been estimated of the graph's nodes; where no value is sparse, maybe nothing."""
    crossing: frozenset[Node]
    """The graph's crossing products, see `crossing`."""

    def entries(self, number: int) -> Iterator[Entry]:
        """The entries of W(operator, inputs), one for each valid choice of references."""
        operator = self.operators[number]
        for alternative in self.groups[number].values():
            choices = [
                (e.producer, MATERIALIZED) if j in alternative.fusible else (MATERIALIZED,)
                for j, e in enumerate(operator.edges)
            ]
            for inputs in product(*choices):
                referenced = {j for j, i in enumerate(inputs) if i != MATERIALIZED}
                if alternative.needs and not alternative.needs & referenced:
                    continue
                if referenced or alternative.status.is_open:
                    yield Entry(alternative.template, inputs, alternative.status)


def explore(
    operators: Sequence[Operator],
    drivers: Drivers | None = None,
    known: Mapping[Node, Estimate] | None = None,
    crossing: frozenset[Node] = frozenset(),
) -> Memo:
    """The populated memo table."""
    groups: list[Group] = []
    driven = {n for n in drivers or () if is_sampled_product(n)}  # worth it by its cost, or not
    for operator in operators:
        group: Group = {}
        if operator.fusible:
            for template, conditions in TEMPLATES.items():
                opens = conditions.open(operator) or (template is Template.OUTER and operator.node in driven)
                alternative = _alternative(operator, template, conditions, groups, opens)
                if alternative is not None:
                    group[template] = alternative
        groups.append(group)
    references = [frozenset[int]().union(*[a.fusible for a in g.values()]) for g in groups]
    return Memo(tuple(operators), tuple(groups), drivers or {}, tuple(references), known or {}, crossing)


def _alternative(
    operator: Operator,
    template: Template,
    conditions: Conditions,
    groups: Sequence[Group],
    opens: bool,
) -> Alternative | None:
    """Open, fuse, merge, close; None where no valid entry is left."""
    fused: dict[int, Status] = {}
    rest: list[tuple[int, Edge]] = []
    for j, edge in enumerate(operator.edges):
        if edge.producer < 0:
            continue
        below = groups[edge.producer].get(template)
        if below is not None and below.status.is_open and conditions.fuse(operator, edge, below.status):
            fused[j] = below.status
        else:
            rest.append((j, edge))
    if not opens and not fused:
        return None
    merged: set[int] = set()
    for j, edge in rest:
        cell = groups[edge.producer].get(Template.CELL)
        if cell is not None and cell.status.is_open and conditions.merge(operator, edge):
            merged.add(j)
    status = conditions.close(operator, list(fused.values()))
    if status is Status.CLOSED_INVALID or (status is Status.CLOSED_VALID and not fused and not merged):
        return None
    needs = frozenset[int]() if opens else frozenset(fused)
    return Alternative(template, frozenset(fused) | merged, needs, status)
