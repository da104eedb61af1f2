"""What a pass over a graph is, and how passes run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from spartan_ng.config import config
from spartan_ng.graph.node import Node

Pass = Callable[[Sequence[Node]], list[Node]]

REQUIRED = frozenset({"resolve_empty"})
"""Passes that plans rely on."""


def run_passes(
    passes: Sequence[tuple[str, Pass]], roots: Sequence[Node], disabled: Collection[str]
) -> list[Node]:
    """The roots after every pass that is required or not disabled."""
    out, asked = list(roots), set[Node]()
    for name, step in passes:
        if name in REQUIRED or name not in disabled:
            before, out = out, step(out)
            if config.check:
                from spartan_ng.graph.spec import check_pass

                asked.update(check_pass(before, out, name, asked))
    return out
