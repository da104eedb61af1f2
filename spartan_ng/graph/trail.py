"""What becomes of a program's nodes while passes rewrite them: people are told in their own names and lines.

Each pass says which nodes it has put in the place of which, to whoever follows.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from spartan_ng.graph.node import VIEWS, Node, topological

T = TypeVar("T")


class Trail:
    """The nodes that `roots` depend on, and what stands for each by now."""

    def __init__(self, roots: Sequence[Node]) -> None:
        self._roots = roots
        self.order = topological(roots)
        self._now: dict[Node, Node | None] = {node: node for node in self.order}

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Heed the passes that run inside of the block."""
        token = _following.set(self)
        try:
            yield
        finally:
            _following.reset(token)

    def note(self, new: Mapping[Node, Node]) -> None:
        """A pass has put these nodes in the place of those; the ones that it does not name are gone."""
        self._now = {node: None if now is None else new.get(now) for node, now in self._now.items()}

    def now(self) -> dict[Node, Node]:
        """By the nodes that there were, those that have their values by now, as far as any have."""
        there = set(self._there())
        return {node: now for node, now in self._now.items() if now in there}

    def marks(self, own: Mapping[Node, T]) -> dict[Node, list[T]]:
        """By the nodes that there are by now, what was known of those that they were made of.

        A node that nobody knows anything of counts to what reads it. A view of which nothing is known does
        not: it may be older than who reads it.
        """
        known = passed_down(self.order, own)
        standing = passed_down(self.order, self._successors())
        found: dict[Node, list[T]] = {}
        for node in self.order:
            if node in known and node in standing and (node in own or node.op not in VIEWS):
                found.setdefault(standing[node], []).append(known[node])
        return found

    def _there(self) -> list[Node]:
        return topological([now for root in self._roots if (now := self._now[root]) is not None])

    def _successors(self) -> dict[Node, Node]:
        """What has a node's value by now, or else does what the node did to other operands: a slice of a
        function is now that function of a slice."""
        found = self.now()
        taken = {now for node, now in found.items() if node.op not in VIEWS}
        alike: defaultdict[Hashable, deque[Node]] = defaultdict(deque)
        for node in self._there():
            # What has a node's own value is that node's, and stands for no other.
            if node not in taken:
                # Of several alike, in the graph's order, which passes keep.
                alike[node.op, node.fn].append(node)
        for node in self.order:
            if node not in found and alike[node.op, node.fn]:
                found[node] = alike[node.op, node.fn].popleft()
        return found


def passed_down(order: Sequence[Node], own: Mapping[Node, T]) -> dict[Node, T]:
    """What is known of nodes, and of those below them of which nothing else is."""
    known = dict(own)
    for node in reversed(order):
        if node in known:
            for below in node.inputs:
                known.setdefault(below, known[node])
    return known


_following: ContextVar[Trail | None] = ContextVar("following", default=None)


def tell(new: Mapping[Node, Node]) -> None:
    """Say which nodes a pass has put in the place of which."""
    trail = _following.get()
    if trail is not None:
        trail.note(new)
