"""Small programs for cluster tests: graphs built and evaluated without the array API."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import ArrayRef, box_of
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.functions import UserFunction
from spartan_ng.session import Session
from tests.waiting import Gate

F8 = np.dtype(np.float64)


def value(session: Session, ref: ArrayRef) -> Any:
    """The array behind a reference, brought to the driver if need be."""
    return ref.value if ref.value is not None else session.backend.gather(ref, box_of(ref.shape))


def evaluate(session: Session, *nodes: Node) -> Any:
    """The values of nodes (one value for one node)."""
    values = [value(session, ref) for ref in session.evaluate(nodes)]
    return values[0] if len(values) == 1 else values


def total(a: Node) -> Node:
    """The sum of all elements."""
    return build.fold("add", a, tuple(range(len(a.shape))))


def leaf(node: Node) -> Any:
    """The value of a leaf that the driver holds."""
    assert node.data is not None
    return node.data.value


def expected(node: Node) -> Any:
    """NumPy's sum of a leaf's value."""
    return leaf(node).sum()


def doubled(a: Node) -> Node:
    """Twice every element."""
    return build.map_("multiply", a, build.constant(2.0))


def user(function: Any, a: Node) -> Node:
    """A user's function of every tile."""
    return build.map_(UserFunction(function), a, dtype=F8)


def held(gate: Gate) -> Any:
    """A tile function that waits at a gate."""

    def wait(tile: Any) -> Any:
        gate.enter()
        return tile

    return wait
