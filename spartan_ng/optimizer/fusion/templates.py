"""The four templates of fused operators, each as its conditions: open, fuse, merge, close.

Row, Cell, MAgg and Outer differ in what a block of the pass holds: cells; whole rows; the cells below several
full aggregates; the non-zero cells of a sparse array beside rows of two factors. The conditions look at
one operator and its edges only; labels say how edges follow their consumer.

Fusion plans (SystemML), section 3.2 and Table 1. Inner products are contractions whose operands share all
axes. That several aggregates share a pass (MAgg) is decided when stages are formed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from math import prod

from msgspec import Struct

from spartan_ng.graph.node import Node, Op
from spartan_ng.ops.joins import REDUCING
from spartan_ng.optimizer.fusion.legality import lines_fit
from spartan_ng.optimizer.fusion.operators import Edge, Fit, Operator
from spartan_ng.optimizer.fusion.sampling import is_sampled_product


class Template(StrEnum):
    """The kinds of fused operators, dearest to lose first."""

    OUTER = "Outer"
    ROW = "Row"
    MAGG = "MAgg"
    CELL = "Cell"


class Status(Enum):
    """Whether a fused operator may still grow, and whether it may end here."""

    OPEN_VALID = "open"
    OPEN_INVALID = "open, invalid"
    CLOSED_VALID = "closed"
    CLOSED_INVALID = "closed, invalid"

    @property
    def is_open(self) -> bool:
        """Whether consumers may fuse it."""
        return self in (Status.OPEN_VALID, Status.OPEN_INVALID)

    @property
    def is_valid(self) -> bool:
        """Whether a stage may end here."""
        return self in (Status.OPEN_VALID, Status.CLOSED_VALID)


class Conditions(Struct, frozen=True):
    """A template.

    Parameters
    ----------
    open : whether a fused operator may start at an operator, reading stored operands
    fuse : whether one that ends at an operand, with its status, may grow over the edge to its consumer
    merge : whether a Cell operator at an operand may be merged over the edge
    close : the status after an operator, from the statuses of the fused operands
    """

    open: Callable[[Operator], bool]
    fuse: Callable[[Operator, Edge, Status], bool]
    merge: Callable[[Operator, Edge], bool]
    close: Callable[[Operator, Sequence[Status]], Status]


def _is_cellwise(node: Node) -> bool:
    """Maps, random numbers, and wanted views."""
    return node.op not in (Op.FOLD, Op.JOIN_UPDATE, Op.SCAN)


def _is_inner(node: Node) -> bool:
    """Whether the node is a contraction whose operands have all their axes in common."""
    return node.fn == "contract" and set(node.params[0]) == set(node.params[1])


def _same_cells(operator: Operator, edge: Edge) -> bool:
    return edge.fit is Fit.CELL


def _any_rows(operator: Operator, edge: Edge) -> bool:
    return edge.fit in (Fit.CELL, Fit.ROW)


# --- Cell ------------------------------------------------------------------------------------------


def _open_cell(h: Operator) -> bool:
    return _is_cellwise(h.node) or h.node.op is Op.FOLD or h.node.fn in REDUCING or _is_inner(h.node)


def _fuse_cell(h: Operator, edge: Edge, below: Status) -> bool:
    return _open_cell(h) and edge.fit is Fit.CELL


def _close_cell(h: Operator, below: Sequence[Status]) -> Status:
    """Any aggregation closes."""
    return Status.OPEN_VALID if _is_cellwise(h.node) else Status.CLOSED_VALID


# --- Row -------------------------------------------------------------------------------------------


def _open_row(h: Operator) -> bool:
    return not _is_cellwise(h.node) or any(e.fit is Fit.ROW for e in h.edges)


def _fuse_row(h: Operator, edge: Edge, below: Status) -> bool:
    return _any_rows(h, edge)


def _close_row(h: Operator, below: Sequence[Status]) -> Status:
    """Aggregates over columns or over everything close; those within a row do not."""
    if _is_cellwise(h.node) or h.node.op is Op.SCAN:
        return Status.OPEN_VALID
    if h.node.fn not in REDUCING and lines_fit(h.node, tuple(range(h.node.ndim))):
        return Status.OPEN_VALID
    return Status.CLOSED_VALID


# --- MAgg ------------------------------------------------------------------------------------------


def _open_magg(h: Operator) -> bool:
    return h.node.op is Op.FOLD and h.node.size == 1


def _fuse_magg(h: Operator, edge: Edge, below: Status) -> bool:
    return False


def _close_magg(h: Operator, below: Sequence[Status]) -> Status:
    return Status.CLOSED_VALID


# --- Outer -----------------------------------------------------------------------------------------


def _open_outer(h: Operator) -> bool:
    """A product of factors with few columns; worth it only under a sparse operand, which `close` checks."""
    return is_sampled_product(h.node) and prod(h.domain) < h.node.size * min(h.node.shape)


def _fuse_outer(h: Operator, edge: Edge, below: Status) -> bool:
    """Over dense maps until a sparse operand makes it valid, then over what keeps its zeros, or ends it."""
    if edge.fit is Fit.NONE:
        return False
    if h.node.op is Op.MAP:
        same = edge.source.shape == h.node.shape and (
            edge.fit in (Fit.CELL, Fit.SAMPLED) or _is_product_of_cells(h, edge)
        )
        return same and (below is Status.OPEN_INVALID or h.node.format == "csr")
    return below is Status.OPEN_VALID and (h.node.op is Op.FOLD or h.node.fn == "contract")


def _is_product_of_cells(h: Operator, edge: Edge) -> bool:
    """Whether the operand is a product, seen cell by cell, whose factors are so small that rows fit, too."""
    return edge.source in h.node.inputs and is_sampled_product(edge.source)


def _merge_outer(h: Operator, edge: Edge) -> bool:
    if h.node.fn == "contract":
        return _any_rows(h, edge)  # factors, which are made with every block
    return edge.fit is Fit.CELL and edge.source.shape == h.node.shape


def _close_outer(h: Operator, below: Sequence[Status]) -> Status:
    """Products and aggregates close; it is valid behind an operation that a sparse operand drives."""
    if not below:
        return Status.OPEN_INVALID
    if h.node.op is not Op.MAP:
        return Status.CLOSED_VALID
    return Status.OPEN_VALID if h.node.format == "csr" else Status.OPEN_INVALID


TEMPLATES: dict[Template, Conditions] = {
    Template.OUTER: Conditions(_open_outer, _fuse_outer, _merge_outer, _close_outer),
    Template.ROW: Conditions(_open_row, _fuse_row, _any_rows, _close_row),
    Template.MAGG: Conditions(_open_magg, _fuse_magg, _same_cells, _close_magg),
    Template.CELL: Conditions(_open_cell, _fuse_cell, _same_cells, _close_cell),
}
