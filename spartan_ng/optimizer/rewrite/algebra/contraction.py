"""A product of two operands as rules see it: what each label is, and what the product costs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import prod

from msgspec import Struct

from spartan_ng.costs.operations import by_blas
from spartan_ng.costs.traffic import read_bytes, written_bytes
from spartan_ng.graph import build
from spartan_ng.graph.node import Node

Labels = tuple[int, ...]


class Contraction(Struct, frozen=True, dict=True):
    """The parts of a `contract` node."""

    node: Node
    a: Node
    b: Node
    la: Labels
    lb: Labels
    lo: Labels

    @staticmethod
    def of(node: Node) -> Contraction | None:
        """The parts of a node that is a product."""
        return Contraction.parts(node) if node.fn == "contract" else None

    @staticmethod
    def parts(node: Node) -> Contraction:
        """The parts of a node that is known to be one."""
        a, b = node.inputs
        return Contraction(node, a, b, *node.params)

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """How long each label is."""
        both = ((self.la, self.a.shape), (self.lb, self.b.shape))
        return {x: n for labels, shape in both for x, n in zip(labels, shape, strict=True)}

    @property
    def is_dense(self) -> bool:
        """Whether both operands are dense: zeros that are not stored meet no infinity."""
        return self.a.format == self.b.format == "dense"

    @property
    def is_linear(self) -> bool:
        """Whether sums and products may change places: not for logic, nor where halves overflow at 65,504."""
        kind = self.node.dtype
        return kind.kind in "iuc" or (kind.kind == "f" and kind.itemsize > 2)

    @property
    def cost(self) -> int:
        """The product's cost."""
        return cost(self.la, self.lb, self.lo, self.sizes, self.node.dtype.itemsize)

    def product(self, a: Node, la: Labels, b: Node, lb: Labels, lo: Labels) -> Node:
        """Another product of the same dtype, with labels counted anew: those of the result come first."""
        number = {label: i for i, label in enumerate(dict.fromkeys((*lo, *la, *lb)))}
        la, lb, lo = (tuple(number[x] for x in labels) for labels in (la, lb, lo))
        return build.contract(a, b, la, lb, lo, self.node.dtype)


def cost(la: Labels, lb: Labels, lo: Labels, sizes: Mapping[int, int], itemsize: int) -> int:
    """What a product costs, in bytes that memory could bring in that time: it waits for its operands and
    result, or for its arithmetic."""
    volume = prod(sizes[x] for x in {*la, *lb})
    a, b, made = (prod(sizes[x] for x in labels) for labels in (la, lb, lo))
    touched = read_bytes((a + b) * itemsize) + written_bytes(made * itemsize)
    return max(by_blas(2 * volume, made, (a, b)), touched)


def fold_cost(node: Node, result: int) -> int:
    """What it costs to fold a value to so many elements, in the same unit."""
    return read_bytes(node.nbytes) + written_bytes(result * node.dtype.itemsize)
