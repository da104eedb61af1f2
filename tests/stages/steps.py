"""The steps of a stage's body: maps, folds, views, lookups, sorts, products with a few columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.arrays import WHOLE
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.by_ufunc import Fold
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS
from spartan_ng.optimizer.fusion.labels import Labels
from tests.stages import users
from tests.stages.drawing import LINES, Drawing
from tests.stages.values import Rejected, Value

_EXACT = frozenset({"minimum", "maximum", "logical_and", "logical_or", "logical_xor"})
_EXACT |= {"bitwise_and", "bitwise_or", "bitwise_xor", "argmin", "argmax", "fmin", "fmax"}
_SMOOTH = ("add", "subtract", "multiply", "negative", "absolute", "maximum", "minimum", "where", "positive")
"""Functions that a rounding error passes through without growing much."""
VECTOR_MATH = frozenset({"exp", "log", "expit", "erf"})
"""Functions that compiled loops round in their own way."""
_ROUNDED_ONCE = frozenset(
    {*_SMOOTH, "divide", "square", "sqrt", "floor", "ceil", "trunc", "rint", "fmax", "fmin"}
)
"""Functions of real numbers that have one right answer; of others NumPy has several loops."""
_LARGEST_PRODUCT = 1e30
"""What some of the factors of a float product may come to at most, for none of its orders to overflow."""
_OFTEN = [*_SMOOTH, "less", "divide", "square", "sqrt", "isnan", "exp"]
_NEVER = frozenset({"cast", "power", "float_power", "real", "imag", "isnat", "spacing", "nextafter", "lcm"})
_MAPS = [n for n, f in ELEMENTWISE.items() if f.nout == 1 and n not in _NEVER]
_FOLDS = [n for n, f in FOLDS.items() if isinstance(f, Fold) and n not in ("gcd", "hypot")]
_FOLDS += ["add", "add", "maximum", "multiply", "argmin", "argmax"]


def _lies_backwards(node: Node) -> bool:
    """Whether it may be a view of elements that lie backwards, for which NumPy has loops of their own."""
    return any(n.op is Op.SLICE and any(step < 0 for _, step in n.params) for n in topological([node]))


class Steps(Drawing):
    """A stage whose body grows step by step."""

    def tried(self, step: Callable[[], Value | None]) -> Value | None:
        """What a step makes; nothing where it is rejected."""
        before = len(self.values)
        try:
            return step()
        except Rejected:
            del self.values[before:]
            return None

    def map_(self) -> None:
        """An elementwise function, its operands in the dtypes of NumPy's loop."""
        first = self.pick()
        if self.calls_users and first.node.ndim and self.draw.random() < 0.5:
            self.users_map(first)
            return
        name = self.draw.choice(_OFTEN if self.draw.random() < 0.6 else _MAPS)
        if first.rounded:
            name = self.draw.choice(_SMOOTH)
        operands = [first, *(self.beside(first) for _ in range(ELEMENTWISE[name].nin - 1))]
        if self.draw.random() < 0.5:
            operands.reverse()
        if name == "where":
            zero = build.constant(np.zeros((), operands[0].node.dtype))
            operands[0] = self.mapped("greater", [operands[0], Value(zero, (), zero)])
        self.mapped(name, operands)

    def mapped(self, name: str, operands: list[Value]) -> Value:
        if any(v.folded for v in operands) and name not in (
            *_SMOOTH,
            "square",
            "less",
            "less_equal",
            "greater",
        ):
            raise Rejected("either zero")
        if any(v.rounded for v in operands) and name not in _SMOOTH:
            raise Rejected("a jump")
        try:
            kinds = build.elementwise_dtypes(name, *(v.node.dtype for v in operands))
        except TypeError as error:
            raise Rejected(str(error)) from None
        if name in ("left_shift", "right_shift", "ldexp", "heaviside") or kinds[-1].kind == "O":
            raise Rejected(name)
        cast = [self._cast(v, k) for v, k in zip(operands, kinds, strict=False)]
        dtype = kinds[-1] if name != "clip" else kinds[0]
        node = build.map_(name, *(v.node for v in cast), dtype=dtype)
        labels = [WHOLE] * node.ndim
        for v in cast:
            for k, (d, n) in enumerate(zip(v.labels, v.node.shape, strict=True), node.ndim - v.node.ndim):
                if n == node.shape[k]:
                    labels[k] = d if labels[k] == WHOLE else labels[k]
        rounded = any(v.rounded for v in cast) or name in VECTOR_MATH
        real = all(v.node.dtype.kind != "c" for v in cast)
        rounds = dtype.kind in "fc" and not (real and name in _ROUNDED_ONCE)
        rounded = rounded or (rounds and (self.thirds or any(_lies_backwards(v.node) for v in cast)))
        return self.add(node, tuple(labels), rounded, any(v.folded for v in cast))

    def _cast(self, v: Value, dtype: np.dtype[Any]) -> Value:
        if v.node.dtype == dtype:
            return v
        if v.rounded and (dtype.kind in "iub" or dtype.itemsize > v.node.dtype.itemsize):
            raise Rejected("a jump, or digits that were never there")
        return self.add(build.cast(v.node, dtype), v.labels, v.rounded, v.folded)

    def fold(self) -> None:
        """A fold over axes that blocks see whole."""
        v = self.pick()
        inner = [k for k, d in enumerate(v.labels) if d == WHOLE or d in self.whole]
        if not inner:
            raise Rejected("nothing to fold")
        self.folded_over(v, self.draw.sample(inner, self.draw.randint(1, len(inner))))

    def folded_over(self, v: Value, axes: list[int], name: str | None = None) -> Value:
        """A fold of a value; by any function, if none is given."""
        if self.calls_users and self.draw.random() < 0.5:
            return self.users_fold(v, axes)
        name = name or self.draw.choice(_FOLDS)
        try:
            floats = FOLDS[name].dtype(v.node.dtype).kind in "fc"
        except TypeError as error:
            raise Rejected(str(error)) from None
        lossy = floats and name not in _EXACT
        if lossy and v.node.dtype.itemsize <= 2:
            raise Rejected("halves round too much")
        if (lossy and self.special) or (v.rounded and name not in ("add", "maximum", "minimum")):
            raise Rejected("an order that shows")
        if name.startswith("arg"):
            axes = axes[:1]
        if lossy and name == "multiply":
            most = np.prod(np.maximum(np.abs(v.elements), 1), axis=tuple(axes), dtype=np.float64)
            if not np.max(most, initial=1) < _LARGEST_PRODUCT:
                raise Rejected("an order that overflows")
        where = None
        masked = self.masks and name in ("add", "maximum", "fmin") and v.node.dtype.kind in "iuf"
        if masked and self.draw.random() < 0.15:
            mask = self.leaf(list(zip(v.labels, v.node.shape, strict=True)), "?")
            where = mask.node
        try:
            node = build.fold(name, v.node, axes, where=where)
            exact = not lossy or self.adds_exactly(v, name, tuple(sorted(axes)))
            labels = tuple(d for k, d in enumerate(v.labels) if k not in axes)
            return self.add(node, labels, v.rounded or not exact, floats or v.folded)
        except TypeError as error:
            raise Rejected(str(error)) from None

    @staticmethod
    def adds_exactly(v: Value, name: str, axes: tuple[int, ...]) -> bool:
        """Whether sums (products) of the value's elements are exact in any order."""
        x = v.elements
        if name not in ("add", "multiply") or x.dtype.kind == "c":
            return False
        if not np.array_equal(x, np.rint(x)):
            return False
        wide = np.abs(x).astype(np.float64)
        total = wide.sum(axes) if name == "add" else np.maximum(wide, 1).prod(axes)
        return bool(np.max(total, initial=0) < 2 ** np.finfo(x.dtype).nmant)

    def view(self) -> None:
        """A transpose, new or dropped axes of length 1, or a broadcast."""
        v = self.pick()
        how = self.draw.choice(("transpose", "new", "broadcast"))
        if how == "transpose":
            order = list(range(v.node.ndim))
            self.draw.shuffle(order)
            if order == sorted(order):
                raise Rejected("no view")
            self.add(build.transpose(v.node, order), tuple(v.labels[k] for k in order), v.rounded, v.folded)
            return
        if how == "new":
            at = self.draw.randint(0, v.node.ndim)
            shape = (*v.node.shape[:at], 1, *v.node.shape[at:])
            labels = (*v.labels[:at], WHOLE, *v.labels[at:])
            self.add(build.reshape(v.node, shape), labels, v.rounded, v.folded)
            return
        free = [a for a in self.axes if a[0] == WHOLE or a[0] not in v.labels]
        ones = [k for k, n in enumerate(v.node.shape) if n == 1]
        if not free:
            raise Rejected("nothing to stretch")
        d, n = self.draw.choice(free)
        if ones and self.draw.random() < 0.5:
            k = self.draw.choice(ones)
            shape = (*v.node.shape[:k], n, *v.node.shape[k + 1 :])
            labels = (*v.labels[:k], d, *v.labels[k + 1 :])
            self.add(build.broadcast(v.node, shape), labels, v.rounded, v.folded)
        else:
            self.add(build.broadcast(v.node, (n, *v.node.shape)), (d, *v.labels), v.rounded, v.folded)

    def other(self) -> None:
        """An index, a lookup, a sort of lines, a product with a few columns."""
        how = self.draw.choice(("iota", "take", "search", "sort", "contract"))
        if how == "iota":
            d, n = self.draw.choice(self.axes)
            self.add(build.iota(n, *self.draw.choice(((), (7, 1), (n, -1), (-5, 3)))), (d,))
            return
        v = self.pick()
        if how == "take":
            lines = [(WHOLE, self.size.choice(LINES)), *(a for a in self.axes if a[0] == WHOLE)]
            table = self.leaf(lines[:2])
            axes = [a for a in self.axes[: len(self.domain)] if self.draw.random() < 0.7]
            indices = build.constant(self.data.integers(0, table.node.shape[0], tuple(n for _, n in axes)))
            self.values.append(Value(indices, tuple(d for d, _ in axes), self._elements(indices)))
            self.add(build.take(table.node, indices, 0), (*(d for d, _ in axes), *table.labels[1:]))
        elif how == "search":
            if v.rounded or v.folded:
                raise Rejected("an element that is off belongs elsewhere")
            some = self.data.permutation(v.elements.reshape(-1))[: self.size.choice(LINES)]
            side = self.draw.choice(("left", "right"))
            self.add(build.search(build.constant(np.sort(some)), v.node, side), v.labels)
        elif how == "sort":
            if not v.labels or v.labels[-1] != WHOLE or v.rounded or v.folded or v.node.dtype.kind == "c":
                raise Rejected("no line")
            self.add(build.along_axis("sort", [v.node], v.node.ndim - 1, dtype=v.node.dtype), v.labels)
        else:
            if len(v.labels) < 2 or v.labels[-1] != WHOLE or v.node.dtype.kind != "f" or self.special:
                raise Rejected("no rows")
            wide = [(WHOLE, 3)] * self.draw.randint(0, 1)
            few = self.leaf([(WHOLE, v.node.shape[-1]), *wide], v.node.dtype.str)
            letters = tuple(range(v.node.ndim))
            inner, columns = letters[-1], tuple(letters[-1] + 1 + k for k in range(few.node.ndim - 1))
            out = (*letters[:-1], *columns)
            self.product_of(v, few, letters, (inner, *columns), out, (*v.labels[:-1], *few.labels[1:]))

    def product_of(self, a: Value, b: Value, la: Labels, lb: Labels, lo: Labels, labels: Labels) -> Value:
        """A sum of products over the letters that `lo` lacks."""
        dtype = np.result_type(a.node.dtype, b.node.dtype)
        if dtype.kind not in "iuf" or dtype.char == "e" or (self.special and dtype.kind == "f"):
            raise Rejected("no sums of these")
        a, b = self._cast(a, dtype), self._cast(b, dtype)
        node = build.contract(a.node, b.node, la, lb, lo, dtype)
        wide = [np.abs(v.elements).astype(np.float64) for v in (a, b)]
        whole = all(np.array_equal(v.elements, np.rint(v.elements)) for v in (a, b))
        most = np.max(np.einsum(wide[0], list(la), wide[1], list(lb), list(lo)), initial=0)
        exact = dtype.kind != "f" or (whole and most < 2 ** np.finfo(dtype).nmant)
        return self.add(node, labels, a.rounded or b.rounded or not exact, True)

    # --- users' functions --------------------------------------------------------------------------

    def users_map(self, v: Value) -> Value:
        """A user's function of blocks, which may ask for their place."""
        if v.node.dtype.kind not in "iuf" or v.folded or self.special:
            raise Rejected("nothing that users compute")
        fn, params = self.draw.choice(((users.AFFINE, ()), (users.PLACED, ("extent",))))
        return self.add(build.map_(fn, v.node, dtype=v.node.dtype, params=params), v.labels, v.rounded)

    def users_fold(self, v: Value, axes: list[int]) -> Value:
        """A fold by a user's function of two arrays."""
        fn = self.draw.choice((users.SUM, users.LEAST))
        floats = v.node.dtype.kind in "fc"
        if v.node.dtype.kind not in "iuf" or self.special or not axes:
            raise Rejected("nothing that users fold")
        exact = fn is users.LEAST or not floats or self.adds_exactly(v, "add", tuple(sorted(axes)))
        labels = tuple(d for k, d in enumerate(v.labels) if k not in axes)
        node = build.fold(fn, v.node, axes)
        return self.add(node, labels, v.rounded or not exact, floats or v.folded)
