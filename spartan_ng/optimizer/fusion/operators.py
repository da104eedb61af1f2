"""The graph as candidate exploration sees it: operators, and how each follows the ones that it reads.

Views are index maps of an edge, not operators: an edge leads from an operator through its views to the
operator (or array) below. What decides about templates is how the producer's axes follow the
consumer's domain. On a *cell* edge every dimension is followed by one axis, and a block of the consumer needs
the same block of the producer; on a *row* edge the producer misses dimensions, or is needed in whole lines.

Fusion plans (SystemML), section 3: the DAG of high-level operators.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from math import prod
from typing import NamedTuple

from msgspec import Struct, field

from spartan_ng.arrays import WHOLE
from spartan_ng.arrays.sparse import csr_bytes
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import density, of_node, work_of_node
from spartan_ng.graph.formats import is_sparse_product
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.group import Group, open_stage
from spartan_ng.optimizer.fusion.labels import Labels, input_labels, is_fusible, is_transparent, unit_reshape
from spartan_ng.optimizer.fusion.legality import (
    has_room,
    joins_others,
    lines_fit,
    stands_alone,
    unfollowed,
    whole_if_joined,
)
from spartan_ng.optimizer.fusion.placement import Axes, breaks_lines, cut_axes, moves_another
from spartan_ng.optimizer.fusion.sampling import is_sampled_product


class Fit(Enum):
    """How a producer fits into the pass of its consumer."""

    NONE = 0
    """Not at all: its value is stored."""
    CELL = 1
    """Block by block."""
    ROW = 2
    """With whole lines, or repeated along lines that stay whole."""
    SAMPLED = 3
    """Only where it is needed at the non-zeros of a sparse array alone."""


class Estimate(NamedTuple):
    """What is known of a node before anything runs, worked out once for all passes that it may be in."""

    density: float
    """The part of the elements that is stored, as far as the operands' densities tell."""
    nbytes: int
    """Bytes of the value, as it is stored."""
    flops: int
    """Operations, if all operands were dense,"""
    share: float
    """the part of them that is done: what reduces a sparse operand visits its non-zeros only,"""
    work: int
    """and that part as operations of a loop that take as long."""


class Edge(NamedTuple):
    """One operand: `source` is the operator (or array) below the views; `producer` its number or -1."""

    source: Node
    producer: int
    fit: Fit
    labels: Labels | None
    """How a stage that ends in the consumer sees the operand."""


class Operator(Struct, eq=False):
    """One node that computes something, or a view whose value is wanted."""

    node: Node
    number: int
    edges: tuple[Edge, ...]
    fusible: bool
    """Whether the node runs inside fused stages at all."""
    domain: tuple[int, ...]
    out: Labels
    """The dimensions of the domain that the value's axes follow."""
    known: Estimate
    shares: bool
    """Whether the pass that ends here may have further results, and be that of others."""
    required: bool
    """Whether the value is stored in any case: wanted, or read by what cannot fuse it."""
    consumers: list[int] = field(default_factory=list)
    """Operators that read the value, once for each of their edges."""


def stored_bytes(node: Node, part: float) -> int:
    """Bytes of a value in its format; a sparse element has an index, too."""
    if node.format == "dense" or node.data is not None:
        return node.nbytes
    return csr_bytes(round(node.size * part), node.shape[0], node.dtype.itemsize)


def operators(
    order: Sequence[Node],
    roots: Collection[Node],
    profile: Profile,
    apart: Collection[Node] = (),
    known: Mapping[Node, Estimate] | None = None,
) -> list[Operator]:
    """The operators of a topologically ordered graph, inputs before users.

    `roots` are stored in any case; `apart` are nodes that are not to be fused into their readers; `known` is
    what has been estimated of the nodes, if it has.
    """
    found: list[Operator] = []
    number: dict[Node, int] = {}
    known = estimates(order) if known is None else known
    several = profile.workers > 1
    alone = {node for node in order if stands_alone(node, profile)} if profile.limited else set()
    apart = {*apart, *alone} if alone else apart
    cut: dict[Node, Axes] = {}
    for node in order:
        if several:
            cut[node] = cut_axes(node, cut)
        if node.op is Op.DATA or node.op is Op.INDEX:
            continue
        if node not in roots and (is_transparent(node) or node.op is Op.SLICE):
            continue
        fusible = is_fusible(node, profile) or is_transparent(node)
        stage, seen = open_stage(node, fusible, node in alone)
        shares = has_room(stage) and node.op is not Op.RANDOM
        if stage.is_product and lines_fit(node, stage.out):
            stage.is_product = False  # not in the passes of others: in its own, it is better left alone
        edges = tuple(
            [
                _edge(below, stage, labels, found, number, apart)
                for below, labels in zip(node.inputs, seen, strict=True)
            ]
        )
        if several:
            beside = list(zip(node.inputs, seen, strict=True))
            edges = tuple([_where_they_lie(edge, stage, beside, cut, profile) for edge in edges])
        operator = Operator(
            node,
            len(found),
            edges,
            fusible,
            stage.domain,
            stage.out,
            known[node],
            shares,
            node in roots,
        )
        number[node] = operator.number
        found.append(operator)
        for edge in edges:
            if edge.producer >= 0:
                found[edge.producer].consumers.append(operator.number)
                if edge.fit is Fit.NONE:
                    found[edge.producer].required = True
    return found


def _edge(
    below: Node,
    stage: Group,
    labels: Labels | None,
    found: list[Operator],
    number: dict[Node, int],
    apart: Collection[Node],
) -> Edge:
    """The edge from an operand, as a stage sees it, to what is below its views."""
    while below not in number and below.op is not Op.DATA and below.op is not Op.INDEX:
        labels = input_labels(below, labels)[0] if labels is not None and is_transparent(below) else None
        (below,) = below.inputs
    producer = number.get(below, -1)
    if labels is None:
        return Edge(below, producer, Fit.NONE, None)
    alone = producer < 0 or below in apart or is_transparent(below) or not found[producer].fusible
    fit = Fit.NONE if alone else _fit(below, stage, labels)
    return Edge(below, producer, fit, labels)


def _where_they_lie(
    edge: Edge,
    stage: Group,
    beside: Sequence[tuple[Node, Labels | None]],
    cut: Mapping[Node, Axes],
    profile: Profile,
) -> Edge:
    """The edge where workers have parts of large arrays: none for what these would have to move for."""
    node, labels = edge.source, edge.labels
    if edge.fit is Fit.NONE or labels is None:
        return edge
    if (
        breaks_lines(node, cut)
        or moves_another(node, labels, stage, beside, cut)
        or not joins_others(node, profile)
    ):
        return edge._replace(fit=Fit.NONE)
    return edge


def is_aligned(stage: Group, labels: Labels | None) -> bool:
    """Whether a task that has its part of the longest dimension, of those that may be cut, has its part of
    the operand."""
    if labels is None:
        return False
    domain, whole = stage.domain, stage.whole
    if whole:
        domain = tuple([0 if d in whole else n for d, n in enumerate(domain)])
    longest = max(domain, default=1) or 1
    return longest in [domain[d] for d in labels if d != WHOLE]


def _fit(node: Node, stage: Group, labels: Labels) -> Fit:
    """How a producer with `labels` fits into the pass of its consumer."""
    plain = not unfollowed(stage.domain, labels)
    if plain and WHOLE in labels:
        plain = all(label != WHOLE or n == 1 for label, n in zip(labels, node.shape, strict=True))
    if whole_if_joined(node, stage, labels, False) is not None:
        return Fit.CELL if plain and node.op in (Op.MAP, Op.RANDOM) else Fit.ROW
    if plain and is_sampled_product(node) and whole_if_joined(node, stage, labels, True) is not None:
        return Fit.SAMPLED
    return Fit.NONE


def is_view(node: Node) -> bool:
    """Whether the node moves no elements: an affine index map."""
    return (
        node.op is Op.SLICE
        or is_transparent(node)
        or (node.op is Op.RESHAPE and unit_reshape(node) is not None)
    )


def estimates(order: Sequence[Node]) -> dict[Node, Estimate]:
    """What is known of each node in a topologically ordered graph."""
    found: dict[Node, Estimate] = {}
    sparse = {node for node in order if node.format == "csr"}
    for node in order:
        part = share = 1.0 if node.format == "dense" else _density(node, found)
        if node.op is Op.FOLD or node.fn == "contract":
            shares = [found[i].density for i in node.inputs]
            share = prod(shares) if is_sparse_product(node) else min(shares)
        flops = of_node(node)
        work = flops
        if node.fn == "contract" or node in sparse or not sparse.isdisjoint(node.inputs):
            work = work_of_node(node, stored_parts(node, found))
        found[node] = Estimate(part, stored_bytes(node, part), flops, share, work)
    return found


def stored_parts(node: Node, known: Mapping[Node, Estimate]) -> list[float | None]:
    """For each operand of a node the part of its elements that is stored; None of dense ones."""
    return [known[i].density if i.format == "csr" else None for i in node.inputs]


def _density(node: Node, known: Mapping[Node, Estimate]) -> float:
    """The part of a sparse value's elements that is stored."""
    if node.data is not None:
        return min(1.0, (node.data.nnz or 0) / max(node.size, 1))
    if node.format != "csr":
        return max((known[i].density for i in node.inputs), default=1.0)
    shapes = [i.shape for i in node.inputs]
    return density(node.op, node.fn, node.params, node.shape, shapes, stored_parts(node, known))
