"""Graphs over CSR arrays, compressed columns and random numbers, for the optimizer to cut into stages."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse

from spartan_ng.arrays import ArrayRef
from spartan_ng.compressed import compress_columns
from spartan_ng.graph import build
from spartan_ng.graph.node import Op
from spartan_ng.ops.functions import UserFunction
from tests.stages import users
from tests.stages.forms import Forms
from tests.stages.values import Rejected, Value

_ROWS = (1, 2, 5, 17, 40, 129, 300, 1000)
_COLUMNS = (1, 2, 3, 9, 33, 100)
_RANKS = (1, 2, 3, 7, 8)
_DENSITIES = (0.0, 0.02, 0.1, 0.5)
_DRAWS = (("random", ()), ("standard_normal", ()), ("integers", (-5, 9)), ("uniform", (-1.0, 2.0)))
MATRIX = (0, 1)
"""Both axes of a matrix."""


class Formats(Forms):
    """Stages over operands that are no dense arrays: each form gives the values that are asked for."""

    def csr(self) -> list[Value]:
        """Work at the non-zeros of a sparse matrix, and what becomes of it."""
        m, n = self.size.choice(_ROWS), self.size.choice(_COLUMNS)
        dtype = np.dtype(self.draw.choice(("f8", "f8", "f4", "i8")))
        self.special = False
        x = self._sparse((m, n), dtype)
        if self.draw.random() < 0.25:
            x = self.add(build.transpose(x.node, (1, 0)), MATRIX, False, True)
        start = x
        for _ in range(self.draw.randint(0, 4)):
            x = self.tried(partial(self._at_nonzeros, x, start)) or x
        found = [self._end_of(x)]
        if self.draw.random() < 0.3:
            found.append(self._end_of(x))
        return [self._after(v) for v in found]

    def _sparse(self, shape: tuple[int, int], dtype: np.dtype[np.generic]) -> Value:
        values = self.data.integers(-3, 5, shape) * (self.data.random(shape) < self.size.choice(_DENSITIES))
        matrix = sparse.csr_array(values.astype(dtype))
        ref = ArrayRef(shape, dtype, value=matrix, format="csr", nnz=int(matrix.nnz))
        node = build.data(ref)
        value = Value(node, MATRIX, matrix.toarray(), folded=True)
        self.values.append(value)
        return value

    def _at_nonzeros(self, x: Value, start: Value) -> Value:
        """One more function of a sparse value, mostly one that keeps its zeros."""
        m, n = x.node.shape
        how = self.draw.choice(("alone", "product", "product", "side", "ratio", "compare", "choose", "union"))
        if how == "alone":
            return self.mapped(self.draw.choice(("negative", "absolute", "square", "positive")), [x])
        if how == "product":
            pair = [x, self._outer(m, n, x)]
            return self.mapped("multiply", pair if self.draw.random() < 0.5 else pair[::-1])
        if how == "side":
            axes = self.draw.choice(([(0, m), (1, 1)], [(0, 1), (1, n)], [(1, n)], [(0, m), (1, n)], []))
            return self.mapped("multiply", [x, self.leaf(axes, x.node.dtype.str)])
        if how == "ratio":
            if x.node.dtype.kind != "f" or x.rounded:
                raise Rejected("no ratio")
            below = self.leaf(self.draw.choice(([(0, m), (1, 1)], [(1, n)])), x.node.dtype.str)
            below = self.mapped("add", [self.mapped("absolute", [below]), self.number(2, below)])
            return self.add(build.map_("divide", x.node, below.node), MATRIX, False, True)
        if how == "compare":
            if x.rounded:
                raise Rejected("a jump")
            return self.mapped("multiply", [x, self.mapped("greater", [x, self.number(0, x)])])
        if how == "choose":
            mask = self.add(
                build.map_("not_equal", start.node, self.number(0, start).node, dtype=np.dtype(bool)), MATRIX
            )
            return self.mapped("where", [mask, self._outer(m, n, x), self.number(0, x)])
        return self.mapped("add", [x, start])

    def number(self, value: int, like: Value) -> Value:
        """A scalar."""
        node = build.constant(np.asarray(value, like.node.dtype))
        return Value(node, (), node)

    def _outer(self, m: int, n: int, x: Value) -> Value:
        """A product of two small matrices, perhaps of functions of them."""
        k, kind = self.size.choice(_RANKS), x.node.dtype.str
        u, v = self.leaf([(0, m), (2, k)], kind), self.leaf([(1, n), (2, k)], kind)
        if self.draw.random() < 0.3:
            u = self.mapped("square", [u])
        if self.draw.random() < 0.3:
            v = self.mapped("negative", [v])
        return self.product_of(u, v, (0, 2), (1, 2), (0, 1), MATRIX)

    def _end_of(self, x: Value) -> Value:
        """What becomes of a matrix: it is stored, folded, multiplied, or made dense."""
        how = self.draw.choice(("store", "fold", "fold", "right", "left", "dense"))
        if how == "fold":
            name = self.draw.choice(("add", "add", "add", "maximum", "minimum", None))
            return self.folded_over(x, self.draw.choice(([0], [1], [0, 1])), name)
        if how in ("right", "left"):
            wide = [(2 + k, self.size.choice(_RANKS)) for k in range(self.draw.choice((0, 1, 1, 2)))]
            inner = 1 if how == "right" else 0
            w = self.leaf([(inner, x.node.shape[inner]), *wide], x.node.dtype.str)
            lb = (inner, *(x for x, _ in wide))
            out = (1 - inner, *(x for x, _ in wide))
            return self.product_of(x, w, MATRIX, lb, out, out)
        if how == "dense":
            y = self.mapped("add", [x, self.number(1, x)])
            return self.folded_over(y, [self.draw.choice((0, 1))]) if self.draw.random() < 0.6 else y
        if x.node.op is Op.DATA:
            raise Rejected("nothing to do")
        return x

    def _after(self, v: Value) -> Value:
        """Perhaps work on a result."""
        if v.node.format != "dense" or self.draw.random() < 0.6:
            return v
        return self.tried(lambda: self.mapped("add", [v, self.number(1, v)])) or v

    def compressed(self) -> list[Value]:
        """Work on a matrix in compressed columns."""
        self.special = False
        shape = self.size.choice((5, 17, 300, 2000)), self.draw.choice((1, 2, 4))
        dtype = np.dtype(self.draw.choice(("f8", "f8", "f4", "i4")))
        distinct = [self.size.choice((1, 2, 5, 300)) for _ in range(shape[1])]
        columns = [self.data.integers(-3, n - 3, shape[0]) for n in distinct]
        if self.size.random() < 0.3:
            columns[0] = np.sort(columns[0])
        matrix = compress_columns(np.stack(columns, axis=1).astype(dtype))
        node = build.data(ArrayRef(shape, dtype, value=matrix, format="compressed"))
        x = Value(node, MATRIX, matrix.toarray(), folded=True)
        self.values.append(x)
        for _ in range(self.draw.randint(0, 3)):
            x = self.tried(partial(self._of_words, x)) or x
        found = [self._end_of(x)]
        if self.draw.random() < 0.3:
            found.append(self._end_of(x))
        return [self._after(v) for v in found]

    def _of_words(self, x: Value) -> Value:
        """One more function of compressed columns: of one element alone, or beside a dense one."""
        how = self.draw.choice(("alone", "scalar", "compare", "side"))
        if how == "alone":
            return self.mapped(self.draw.choice(("negative", "absolute", "square")), [x])
        if how == "scalar":
            name = self.draw.choice(("add", "multiply", "maximum", "subtract"))
            return self.mapped(name, [x, self.number(self.draw.choice((0, 1, 2)), x)])
        if how == "compare":
            return self.mapped("greater", [x, self.number(1, x)])
        m, n = x.node.shape
        axes = self.draw.choice(([(0, m), (1, 1)], [(1, n)], [(0, m), (1, n)]))
        return self.mapped("multiply", [x, self.leaf(axes, x.node.dtype.str)])

    def random_numbers(self) -> list[Value]:
        """Random numbers, in logical blocks or of a stream, and what is made of them."""
        self.special = False
        shape = tuple(self.size.choice((1, 3, 40, 300, 700)) for _ in range(self.draw.choice((1, 2, 2))))
        if self.draw.random() < 0.5:
            key: tuple[str, object] = ("blocks", self.size.getrandbits(100))
            name, parameters = self.draw.choice(_DRAWS)
        else:
            key = ("stream", (self.size.getrandbits(120), 2 * self.size.getrandbits(100) + 1, 0))
            name, parameters = self.draw.choice((_DRAWS[0], _DRAWS[3]))
        dtype = np.dtype("i8" if name == "integers" else "f8")
        x = self.add(build.random(name, key, parameters, shape, dtype), tuple(range(len(shape))))
        found = [x] if self.draw.random() < 0.5 else []
        if dtype.kind == "i" or self.draw.random() < 0.5:
            fn: UserFunction = users.PLACED
            x = self.add(build.map_(fn, x.node, dtype=dtype, params=("extent",)), x.labels)
        axes = self.draw.sample(range(len(shape)), self.draw.randint(1, len(shape)))
        folded = self.tried(lambda: self.folded_over(x, axes))
        return [*found, x if folded is None else folded]
