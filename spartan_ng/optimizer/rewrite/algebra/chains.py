"""The order of a chain of products, by what it costs.

A @ B @ v is two products of a matrix and a vector, if B @ v is first. The best order of n factors is found by
dynamic programming over their O(n^2) runs (Godbole, "On efficient computation of matrix chain products", IEEE
Trans. Computers C-22(9), 1973), with bytes among the costs. As for sums, what is infinite or NaN stays so.
"""

from __future__ import annotations

from functools import lru_cache

from spartan_ng.costs.choices import PAYS
from spartan_ng.costs.operations import by_pairs, lookups, pairs
from spartan_ng.graph.formats import is_sparse_product
from spartan_ng.graph.node import Node, topological
from spartan_ng.optimizer.rewrite.algebra.contraction import Contraction, Labels, cost
from spartan_ng.optimizer.rewrite.rule import ReaderCounts
from spartan_ng.optimizer.sizes import expected_nonzeros

_MOST = 20
"""Factors of a chain that are ordered together. A loop may make chains of any length: they are ordered piece
by piece."""

Factor = tuple[Node, bool]
"""A matrix, and whether it is turned. A vector is a column, and a row where it is turned."""


def order_of_products(node: Node, readers: ReaderCounts) -> Node | None:
    """A @ B @ v = A @ (B @ v), where that costs less."""
    c = Contraction.of(node)
    if c is None or node in readers.looked_at or not (_is_matrix_product(c) and c.is_linear and c.is_dense):
        return None
    inner = [i for i in node.inputs if _is_link(i, c, readers)]
    if not inner:
        return None
    chain = _Chain(c, readers)
    readers.looked_at |= {*chain.products}
    best, splits = _best(chain.dims, node.dtype.itemsize)
    if best * PAYS >= sum(p.cost for p in chain.products.values()):
        return None
    return chain.ordered(splits, readers)


def order_of_sparse_products(node: Node, readers: ReaderCounts) -> Node | None:
    """S @ T @ v = S @ (T @ v) of sparse matrices, where that takes less.

    An element of S @ T is stored where a way leads through non-zeros of both, and there alone v is looked at
    either way, unless terms cancel out.
    """
    c = Contraction.of(node)
    if c is None or not (c.is_linear and len({*c.la} & {*c.lb}) == 1 and _is_matrix_product(c)):
        return None
    if is_sparse_product(c.a) and c.b.format == "dense":
        inner, labels, vector, others = Contraction.parts(c.a), c.la, c.b, c.lb
    elif is_sparse_product(c.b) and c.a.format == "dense":
        inner, labels, vector, others = Contraction.parts(c.b), c.lb, c.a, c.la
    else:
        return None
    if not readers.alone(inner.node) or inner.node.dtype != node.dtype or _takes_less(inner, vector):
        return None
    (summed,), between = {*labels} & {*others}, max(*c.la, *c.lb) + 1
    name = dict(zip(inner.lo, labels, strict=True))
    left, right = (tuple(name.get(x, between) for x in seen) for seen in (inner.la, inner.lb))
    first, last = (inner.a, left), (inner.b, right)
    if summed not in left:
        first, last = last, first
    kept = (between, *(x for x in others if x != summed))
    below = c.product(first[0], first[1], vector, others, kept)
    return c.product(*last, below, kept, c.lo)


def _takes_less(product: Contraction, vector: Node) -> bool:
    """Whether a product of sparse matrices, and then one with a vector or a few, takes less than two such."""
    node, columns = product.node, vector.size // max(vector.shape[0], 1) if vector.ndim > 1 else 1
    known = expected_nonzeros(topological([node]), {})
    one, two = (
        sum(2 * columns * int(known[n]) + lookups(int(known[n]), vector.nbytes) for n in sparse)
        for sparse in ((node,), (product.a, product.b))
    )
    return by_pairs(pairs(node, known)) + one < PAYS * two


def _is_matrix_product(c: Contraction) -> bool:
    """Whether matrices or vectors meet in one label."""
    return (
        len(c.la) <= 2 and len(c.lb) <= 2 and len({*c.la} & {*c.lb}) == 1 and not {*c.la} & {*c.lb} & {*c.lo}
    )


def _is_link(node: Node, above: Contraction, readers: ReaderCounts) -> bool:
    """Whether an operand is a product that belongs to the chain of the product above it."""
    c = Contraction.of(node)
    if c is None or not readers.alone(node) or node.dtype != above.node.dtype:
        return False
    is_squared = above.a is above.b  # then it is one value, whose factors would be read twice
    return not is_squared and c.is_dense and _is_matrix_product(c)


class _Chain:
    """The factors of a product, from left to right."""

    def __init__(self, top: Contraction, readers: ReaderCounts) -> None:
        self.top = top
        self.products: dict[Node, Contraction] = {top.node: top}
        self._readers = readers
        self.factors = self._factors(top)
        self.dims = (_shape(self.factors[0])[0], *(_shape(f)[1] for f in self.factors))

    def _factors(self, c: Contraction) -> list[Factor]:
        """The factors of a product as a matrix whose rows are its first label; a vector is a column."""
        (inner,) = {*c.la} & {*c.lb}
        turned_a, turned_b = c.la[0] == inner, c.lb[0] != inner
        found = [*self._below(c.a, turned_a, c), *self._below(c.b, turned_b, c)]
        free = tuple(x for x in c.la if x != inner)
        is_turned = bool(c.lo) and c.lo[:1] != free
        return _turned(found) if is_turned else found

    def _below(self, node: Node, turned: bool, above: Contraction) -> list[Factor]:
        """The factors of an operand."""
        if len(self.products) < _MOST - 1 and _is_link(node, above, self._readers):
            c = self.products[node] = Contraction.parts(node)
            found = self._factors(c)
            return _turned(found) if turned else found
        return [(node, turned)]

    def ordered(self, splits: dict[tuple[int, int], int], readers: ReaderCounts) -> Node:
        """The product with its factors taken together as `splits` says."""

        def run(i: int, j: int) -> tuple[Node, Labels]:
            if i == j:
                node, turned = self.factors[i]
                if node.ndim == 1:
                    return node, ((i + 1,) if turned else (i,))
                return node, ((i + 1, i) if turned else (i, i + 1))
            k = splits[i, j]
            (a, la), (b, lb) = run(i, k), run(k + 1, j)
            lo = tuple(x for x in (i, j + 1) if x in la or x in lb)
            node = self.top.product(a, la, b, lb, lo)
            readers.looked_at.add(node)
            return node, lo

        return run(0, len(self.factors) - 1)[0]


def _turned(factors: list[Factor]) -> list[Factor]:
    """The factors of the transpose."""
    return [(node, not turned) for node, turned in reversed(factors)]


def _shape(factor: Factor) -> tuple[int, int]:
    """Rows and columns of a factor."""
    node, turned = factor
    rows, columns = node.shape if node.ndim == 2 else (node.shape[0], 1)
    return (columns, rows) if turned else (rows, columns)


@lru_cache(maxsize=1024)
def _best(dims: tuple[int, ...], itemsize: int) -> tuple[int, dict[tuple[int, int], int]]:
    """The least cost of a chain of matrices with these rows and columns, and where each run is parted."""
    n = len(dims) - 1
    least = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            found = [
                least[i, k] + least[k + 1, j] + _cost(dims[i], dims[k + 1], dims[j + 1], itemsize)
                for k in range(i, j)
            ]
            least[i, j] = min(found)
            splits[i, j] = i + found.index(least[i, j])
    return least[0, n - 1], splits


def _cost(rows: int, inner: int, columns: int, itemsize: int) -> int:
    return cost((0, 2), (2, 1), (0, 1), {0: rows, 1: columns, 2: inner}, itemsize)
