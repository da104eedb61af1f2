"""What is drawn: values with what is known of them, and stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from spartan_ng.graph.node import Node, topological
from spartan_ng.ops.functions import UserFunction
from spartan_ng.optimizer.fusion.group import Group
from spartan_ng.optimizer.fusion.labels import Labels


class Rejected(Exception):
    """What was drawn is no stage."""


@dataclass(frozen=True, eq=False)
class Value:
    """A node, the label of each of its axes, and what is known of its elements."""

    node: Node
    labels: Labels
    elements: Any
    rounded: bool = False
    """Whether tiers may round differently: such a value may only meet smooth functions."""
    folded: bool = False
    """Whether it comes from a float fold, which may have either zero."""


Ended = tuple[Value, list[tuple[Value, Value | None]]]
"""The value that a stage ends in, and further ones, with what those fold that are folds over the domain."""


@dataclass
class Stage:
    """A drawn stage, and what its results are compared by."""

    results: list[Value]
    group: Group | None
    """Of a single stage: what it computes; None: the optimizer cuts the graph by `policy`."""
    policy: str
    cache_bytes: int
    forced: str | None
    reproducible: bool = False
    """Whether last bits are kept: then all runs are compared to each other, too."""
    limits: dict[str, int] = field(default_factory=dict)
    """Sizes from which something is worth having, where they are not the library's: see `runner`."""

    @property
    def keeps_bits(self) -> bool:
        """Whether all runs have the same bits: not where matrices are multiplied, or users' functions called,
        or compressed columns folded."""
        order = topological([v.node for v in self.results])
        free = any(n.fn == "contract" or isinstance(n.fn, UserFunction) for n in order)
        return self.reproducible and not free and all(n.format != "compressed" for n in order)

    def __repr__(self) -> str:
        g, nodes = self.group, [v.node for v in self.results]
        how = f"blocks of {self.cache_bytes} bytes, {self.forced}, {self.limits}"
        how += ", reproducible" if self.reproducible else ""
        place = f"stages by {self.policy}" if g is None else f"domain {g.domain}, whole {sorted(g.whole)}"
        lines = [f"{place}, {how}"]
        names = {n: f"a{i}" for i, n in enumerate(topological(nodes))}
        labels = {} if g is None else dict(g.members)
        for n, name in names.items():
            args = ", ".join(names[i] for i in n.inputs)
            mark = " *" if n in nodes else ""
            kind = "" if n.format == "dense" else f" {n.format}"
            lines.append(f"  {name} = {n}{kind}({args}) {n.params} {labels.get(n, '')}{mark}")
        return "\n".join(lines)
