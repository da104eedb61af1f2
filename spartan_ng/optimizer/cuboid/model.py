"""A fused operator of the graph in the model space of its main product.

Every operator ties dimensions of its inputs to its own; starting from the main product's i, j and k, these
ties are followed through all members, up and down. What is tied to none is seen whole.

FuseME (SIGMOD '22), section 3.1, Fig. 6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from spartan_ng.arrays import WHOLE
from spartan_ng.arrays.sparse import INDEX_BYTES
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.cuboid.sizes import (
    count_cells,
    count_nonzeros,
    is_dense_product,
    matrix_bytes,
    operations,
    sub_order,
)
from spartan_ng.optimizer.cuboid.space import BodyOperator, Cut, Dims, Matrix, Space
from spartan_ng.optimizer.fusion.labels import Labels, root

BLOCK = 1000
"""Rows and columns of a block, the unit of cuts."""


class Units(Struct, frozen=True):
    """What sizes are counted in: the side of a block, the bytes of an index beside each non-zero, and the
    most parts that a dimension is cut into."""

    block: int = BLOCK
    index_bytes: int = INDEX_BYTES
    most: int | None = None


class Graph:
    """A graph whose fused operators are put into model spaces, with its non-zeros counted once."""

    def __init__(self, order: Sequence[Node], units: Units | None = None) -> None:
        self.order = order
        self.units = units or Units()
        self.nonzeros = count_nonzeros(order)

    def main_product(self, members: Collection[Node]) -> Node:
        """The product with the most voxels; of equal ones the first."""
        products = [n for n in sub_order(members, self.order) if is_dense_product(n)]
        return max(products, key=lambda n: _voxels(self.blocks(n)))

    def blocks(self, product: Node) -> Cut:
        """The blocks along i, j and k of a product."""
        side, most = self.units.block, self.units.most
        i, j, k = (-(-n // side) for n in _lengths(product))
        return (i, j, k) if most is None else (min(i, most), min(j, most), min(k, most))

    def space(self, members: Collection[Node], top: Node, main: Node | None = None) -> Space:
        """The model space of the operator that fuses `members` and materializes `top`."""
        main = self.main_product(members) if main is None else main
        order = sub_order(members, self.order)
        labels, domains = _Ties(order, main).follow()
        cells = count_cells(order, self.nonzeros, top)
        operators = tuple(
            BodyOperator(str(n.fn or n.op.value), domains[n], operations(n, cells[n], self.nonzeros))
            for n in order
        )
        inputs = tuple(
            Matrix(repr(n), _dims(seen), matrix_bytes(n, self.nonzeros, self.units.index_bytes))
            for n, needs in _inputs(order, labels).items()
            for seen in needs
        )
        size = matrix_bytes(top, self.nonzeros, self.units.index_bytes)
        (seen,) = labels[top]
        output = Matrix(repr(top), _dims(seen), size, output=True)
        name = " > ".join(str(n.fn or n.op.value) for n in order)
        return Space(name, self.blocks(main), (*inputs, output), operators)


class _Ties:
    """Labels of the members and their inputs: for each axis i, j, k (0, 1, 2) or WHOLE."""

    def __init__(self, order: Sequence[Node], main: Node) -> None:
        self.members = set(order)
        self.main = main
        self.labels: dict[Node, dict[Labels, None]] = {}
        self.domains: dict[Node, Dims] = {}
        self.readers: dict[Node, list[Node]] = {n: [] for n in order}
        for node in order:
            for i in node.inputs:
                if i in self.members:
                    self.readers[i].append(node)

    def follow(self) -> tuple[dict[Node, tuple[Labels, ...]], dict[Node, Dims]]:
        """The labels under which each node is seen, and the dimensions each operator spans."""
        self._bind_main()
        pending = [self.main]
        while pending:
            node = pending.pop()
            pending += [r for r in self.readers[node] if self._up(r, node)]
            pending += [i for i in node.inputs if i in self.members and self._down(i)]
        return {n: tuple(seen) for n, seen in self.labels.items()}, self.domains

    def _bind_main(self) -> None:
        la, lb, lo = self.main.params
        (summed,) = (x for x in la if x not in lo)
        rows, columns = lo if lo[0] in la else lo[::-1]
        letters = sorted({*la, *lb})
        self._spread(self.main, {letters.index(x): d for x, d in ((rows, 0), (columns, 1), (summed, 2))})

    def _spread(self, node: Node, bound: dict[int, int]) -> None:
        """Label a node and its inputs, with dimensions of the node's own domain bound to i, j, k."""
        own = root(node)
        self.domains[node] = frozenset(bound.values())
        self._see(node, own.out, bound)
        for i, seen in zip(node.inputs, own.inputs, strict=True):
            self._see(i, seen, bound)

    def _see(self, node: Node, axes: Labels, bound: dict[int, int]) -> None:
        self.labels.setdefault(node, {})[tuple(bound.get(a, WHOLE) for a in axes)] = None

    def _up(self, reader: Node, node: Node) -> bool:
        """Bind what reads a node whose labels are known; whether it is new."""
        if reader in self.domains:
            return False
        own = root(reader)
        (seen,) = self.labels[node]
        where = reader.inputs.index(node)
        bound = {a: d for a, d in zip(own.inputs[where], seen, strict=True) if a != WHOLE and d != WHOLE}
        self._spread(reader, bound)
        return True

    def _down(self, node: Node) -> bool:
        """Bind a node that a bound reader sees; whether it is new."""
        if node in self.domains:
            return False
        own = root(node)
        (seen,) = self.labels[node]
        self._spread(node, {a: d for a, d in zip(own.out, seen, strict=True) if d != WHOLE})
        return True


def _inputs(order: Sequence[Node], labels: dict[Node, tuple[Labels, ...]]) -> dict[Node, list[Labels]]:
    """The matrices that tasks pull, and the parts they need: a part within another is pulled with it."""
    members = set(order)
    out: dict[Node, list[Labels]] = {}
    for node in dict.fromkeys(i for n in order for i in n.inputs if i not in members):
        seen = labels[node]
        out[node] = [a for a in seen if not any(b != a and _covers(b, a) for b in seen)]
    return out


def _covers(wider: Labels, narrower: Labels) -> bool:
    return all(w in (WHOLE, n) for w, n in zip(wider, narrower, strict=True))


def _dims(labels: Labels) -> Dims:
    return frozenset(d for d in labels if d != WHOLE)


def _lengths(product: Node) -> Cut:
    la, lb, lo = product.params
    size = dict(zip((*la, *lb), (*product.inputs[0].shape, *product.inputs[1].shape), strict=True))
    (summed,) = (x for x in la if x not in lo)
    rows, columns = lo if lo[0] in la else lo[::-1]
    return size[rows], size[columns], size[summed]


def _voxels(blocks: Cut) -> int:
    i, j, k = blocks
    return i * j * k
