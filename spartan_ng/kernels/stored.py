"""Steps of programs over CSR arrays, by NumPy and SciPy on whole values, at what the arrays store.

Functions that keep zeros, and all that they alone read and that has the array's shape, are vectors with an
element for each non-zero: `sum(X * log(U @ V.T))` takes a dot product for each of X's. What lies otherwise (a
slice, a transpose) is a matrix of its own. A step that needs all elements of a sparse array makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spartan_ng.arrays.sparse import csr_array, is_csr
from spartan_ng.costs.operations import by_pairs, flops, lookups, met, of_node, pairs, work_of_node
from spartan_ng.costs.tuned import FRESH, NEAR_LOOKUP_FLOPS
from spartan_ng.graph.formats import is_sparse_product
from spartan_ng.graph.node import VIEWS, Node, Op, sliced
from spartan_ng.kernels.contract import contract, is_matrix_product
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.patterns import DOT_FLOPS, Pattern, dots, is_whole, mapped
from spartan_ng.kernels.sparse_folds import sparse_fold
from spartan_ng.ops.elementwise import ELEMENTWISE

_EXTREMES = frozenset({"maximum", "minimum"})


def is_sparse_graph(order: Sequence[Node]) -> bool:
    """Whether there are CSR arrays in a graph."""
    return "csr" in [node.format for node in order]


class StoredSteps:
    """The steps of a graph that meet CSR arrays.

    Parameters
    ----------
    roots, order : what is wanted, and the graph of it

    Attributes
    ----------
    places : by the nodes that are computed at non-zeros, the node that has these; itself of an array that
        lies as nothing before it does
    is_whole : whether there is a step for each node that is CSR
    """

    def __init__(self, roots: Sequence[Node], order: Sequence[Node]) -> None:
        self.places: dict[Node, Node] = {}
        self.is_whole = True
        self._patterns: dict[Node, Pattern] = {}
        self._views: dict[tuple[Any, ...], Node] = {}
        for node in order:
            if node.format == "csr":
                place = self._place(node)
                if place is None:
                    self.is_whole = False
                    return
                self.places[node] = place
        self._sample({*roots}, order)

    def meets(self, node: Node) -> bool:
        """Whether a step is done here, and not on dense arrays alone."""
        return node in self.places or any(i.format == "csr" for i in node.inputs)

    def has_step(self, node: Node) -> bool:
        """Whether a step that meets CSR arrays can be done."""
        if node in self.places:
            return True
        inputs = node.inputs
        if node.op is Op.MAP:
            return isinstance(node.fn, str)
        if node.op is Op.RESHAPE:
            return True
        if node.op is Op.FOLD and len(inputs) == 1:
            (axes,), (x,) = node.params, inputs
            extreme = node.fn in _EXTREMES and x.dtype == node.dtype and x.dtype.kind != "c"
            return bool(axes) and (node.fn == "add" or extreme)
        formats = sorted(i.format for i in inputs)
        flat = node.fn == "contract" and all(i.ndim <= 2 for i in inputs)
        return flat and formats == ["csr", "dense"] and is_matrix_product(*node.params)

    def work(self, node: Node) -> tuple[int, int]:
        """Operations that a step that meets CSR arrays takes the time of, and bytes that it touches."""
        place = self.places.get(node)
        if place is not None:
            return self._at_nonzeros(node, self._nnz(place), place.shape)
        stored = sum(self._nnz(self.places[i]) for i in node.inputs if i.format == "csr")
        made = FRESH * node.nbytes
        if node.fn == "contract":
            columns = min(node.shape, default=1) if node.ndim == 2 else 1
            looked_at = sum(i.nbytes for i in node.inputs if i.format != "csr")
            return 2 * stored * columns + lookups(stored, looked_at), made
        if node.op is Op.FOLD:
            return flops("fold", node.fn, node.params, node.shape, stored, node.dtype), made
        return of_node(node), made + FRESH * sum(i.size * i.dtype.itemsize for i in node.inputs)

    def step(self, node: Node, *inputs: Any) -> Any:
        """The value of a step of the graph, whose inputs have theirs: at non-zeros a vector."""
        place = self.places.get(node)
        if place is node:
            return self._pattern(node, *inputs).data
        if place is not None:
            pattern = self._pattern(place)
            if node.op in VIEWS:
                return pattern.data
            if node.fn == "contract":
                a, b = inputs
                return dots(node, a, b, pattern)
            at = [x if i in self.places else pattern.at(x) for i, x in zip(node.inputs, inputs, strict=True)]
            return mapped(node, at)
        operands = [self.value(i, x) for i, x in zip(node.inputs, inputs, strict=True)]
        if node.op is Op.FOLD:
            return sparse_fold(str(node.fn), operands[0], node.params[0], node.dtype)
        if node.op is Op.RESHAPE:
            return dense(operands[0]).reshape(node.shape)
        if node.fn == "contract":
            return dense(contract(*operands, *node.params)).astype(node.dtype, copy=False)
        return mapped(node, [dense(x) for x in operands])

    def value(self, node: Node, known: Any) -> Any:
        """The matrix that is known by its non-zeros; of a dense node, what is known."""
        place = self.places.get(node) if node.format == "csr" else None
        return known if place is None else self._pattern(place).matrix(known)

    def owned(self, node: Node, known: Any) -> Any:
        """The same, with memory of its own."""
        matrix = self.value(node, known)
        return csr_array(matrix.astype(node.dtype, copy=False), copy=True)

    def _pattern(self, place: Node, *inputs: Any) -> Pattern:
        """Where an array has its non-zeros, which is found once; a leaf may be asked before its turn."""
        if place not in self._patterns:
            self._patterns[place] = Pattern(self._matrix_of(place, *inputs))
        return self._patterns[place]

    def _place(self, node: Node) -> Node | None:
        """Whose non-zeros a CSR node has; None where it has no step."""
        if node.op is Op.DATA:
            return node if node.data is not None and is_csr(node.data.value) else None
        if node.fn == "contract":
            return node
        if node.op in (Op.SLICE, Op.TRANSPOSE):
            return self._views.setdefault((node.op, *node.inputs, *node.params, node.shape), node)
        if node.op is not Op.MAP or not isinstance(node.fn, str) or ELEMENTWISE[node.fn].nout > 1:
            return None
        found = {self.places[i] for i in node.inputs if i.format == "csr"}
        return found.pop() if len(found) == 1 and all(p.shape == node.shape for p in found) else None

    def _sample(self, roots: set[Node], order: Sequence[Node]) -> None:
        """Note the dense nodes that are read at non-zeros alone, and are made there."""
        readers: dict[Node, list[Node]] = {}
        for node in order:
            for i in node.inputs:
                readers.setdefault(i, []).append(node)
        later: set[Node] = set()
        for node in reversed(order):
            later.add(node)
            if node.format != "dense" or node in roots or not isinstance(node.fn, str):
                continue
            read = readers.get(node, [])
            found = {self.places.get(r) if r.op is Op.MAP else None for r in read}
            if len(found) != 1 or (place := found.pop()) is None or place.shape != node.shape:
                continue
            if place in later and place.op is not Op.DATA:  # nobody knows yet where its non-zeros are
                continue
            others = {self.places[i] for i in node.inputs if i.format == "csr"} - {place}
            if not others and (node.op is Op.MAP or _is_plain_product(node)):
                self.places[node] = place

    def _nnz(self, place: Node) -> int:
        """Non-zeros of an array, at most where it is a slice, and as expected of a product."""
        while place.op in VIEWS:
            place = self.places[place.inputs[0]]
        if place.fn == "contract":
            return int(met(place.size, self._pairs(place)))
        return int(place.data.value.nnz) if place.data is not None else 0

    def _pairs(self, product: Node) -> float:
        """Pairs of non-zeros that a product of two CSR arrays multiplies."""
        return pairs(product, {i: self._nnz(self.places[i]) for i in product.inputs})

    def _at_nonzeros(self, node: Node, nnz: int, shape: tuple[int, ...]) -> tuple[int, int]:
        if node.op is Op.DATA:
            return 0, 0
        made = FRESH * nnz * node.dtype.itemsize
        if is_sparse_product(node):
            return by_pairs(self._pairs(node)), 2 * made
        if node.fn == "contract":
            count = of_node(node)
            if is_whole(nnz, shape):
                return work_of_node(node), made
            return nnz * (count // (2 * node.size)) * DOT_FLOPS, made
        if node.op is not Op.MAP:
            return NEAR_LOOKUP_FLOPS * nnz, 2 * made
        read = sum(i not in self.places and i.size > 1 for i in node.inputs)
        own = flops("map", node.fn, node.params, (nnz,), nnz, node.dtype)
        return own + NEAR_LOOKUP_FLOPS * nnz * read, made

    def _matrix_of(self, node: Node, *inputs: Any) -> Any:
        """An array that lies as nothing before it does."""
        if node.op is Op.DATA:
            assert node.data is not None, "a leaf"
            return node.data.value
        if node.fn == "contract":
            return contract(*map(self.value, node.inputs, inputs), *node.params)
        matrix = self.value(node.inputs[0], *inputs)
        if node.op is Op.TRANSPOSE:
            return matrix.T.tocsr() if node.params[0] == (1, 0) else matrix
        return matrix[sliced(node)].tocsr()


def _is_plain_product(node: Node) -> bool:
    """Whether an element of a node is the product of a line of each of two dense matrices."""
    flat = node.fn == "contract" and node.ndim == 2 and all(i.ndim == 2 for i in node.inputs)
    return flat and all(i.format == "dense" for i in node.inputs) and is_matrix_product(*node.params)
