"""Random stages: one fused pass each, run by every tier, whole and cut, against the reference.

A stage is drawn as the optimizer would form it (a `Group`: members with their labels, a root, further
results), without asking whether the optimizer ever would: kept and folded axes, lines that blocks see whole,
views and broadcasts of operands, results that are stored and used inside as well, scans. Then the library's
own lowering makes the plan. What a stage computes is known from its nodes, which `tests.reference` evaluates
over the whole domain.

Sizes, cuts and data are drawn apart from the structure, so that several stages share one compiled kernel.
Data are small whole numbers (sums of them are exact in any order), or have everything special in them.

`python -m tests.stages --count N --seed K` runs more of them than the tests do.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any
from unittest import mock

import numpy as np

from spartan_ng.arrays import ArrayRef
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import config
from spartan_ng.errors import KernelWarning
from spartan_ng.graph import build
from spartan_ng.graph.node import VIEWS, Node, Op, topological
from spartan_ng.kernels import blocks
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS, Fold
from spartan_ng.ops.scans import SCANS
from spartan_ng.optimizer.fusion.group import SMALL_REPEAT, Group, Grouping
from spartan_ng.optimizer.fusion.labels import WHOLE, Labels, input_labels, root
from spartan_ng.optimizer.fusion.merge import LARGEST_BLOCK, Result
from spartan_ng.optimizer.tiling.profile import ClusterProfile
from spartan_ng.plan import lower
from spartan_ng.plan.plan import Plan
from tests import reference
from tests.kernels.samples import sample

TIERS = ("interpret", "numexpr", "compile")
SIZES_A_BODY = 10
"""Stages of one structure that differ in sizes, cuts and data."""
_SIZES = (2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 100, 129, 257, 1025)
_LINES = (2, 3, 5, 7, 8, 9, 17, 40, 300)
_ELEMENTS = 20_000
_LARGEST = 1e4
_CACHES = (1 << 9, 1 << 11, 1 << 13, 1 << 15, blocks.CACHE_BYTES)
_DTYPES = ("f8",) * 6 + ("f4", "f4", "i4", "i8", "i8", "i1", "i2", "u1", "u4", "u8", "?", "f2", "c8", "c16")
_EXACT = frozenset({"minimum", "maximum", "logical_and", "logical_or", "logical_xor"})
_EXACT |= {"bitwise_and", "bitwise_or", "bitwise_xor", "argmin", "argmax", "fmin", "fmax"}
_SMOOTH = ("add", "subtract", "multiply", "negative", "absolute", "maximum", "minimum", "where", "positive")
"""Functions that a rounding error passes through without growing much."""
VECTOR_MATH = frozenset({"exp", "log", "expit", "erf"})
"""Functions that compiled loops round in their own way."""
_OFTEN = [*_SMOOTH, "less", "divide", "square", "sqrt", "isnan", "exp"]
_NEVER = frozenset({"cast", "power", "float_power", "real", "imag", "isnat", "spacing", "nextafter", "lcm"})
_MAPS = [n for n, f in ELEMENTWISE.items() if f.nout == 1 and n not in _NEVER]
_FOLDS = [n for n, f in FOLDS.items() if isinstance(f, Fold) and n not in ("gcd", "hypot")]
_SCANS = ("add", "add", "multiply", "maximum", "minimum", "fmax", "logical_or", "bitwise_xor")
_FOLDS += ["add", "add", "maximum", "multiply", "argmin", "argmax"]


@dataclass(frozen=True, eq=False)
class Value:
    """A node, the label of each of its axes, and what is known of its elements."""

    node: Node
    labels: Labels
    elements: Any
    rounded: bool = False
    """Whether tiers may round differently: such a value may only meet smooth functions."""
    folded: bool = False
    """Whether it comes from a float fold, which may have either zero."""


@dataclass
class Stage:
    """A drawn stage: its plan's group, and what its results are compared by."""

    group: Group
    results: list[Value]
    cache_bytes: int
    forced: str | None
    log: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        g = self.group
        how = f"blocks of {self.cache_bytes} bytes, {self.forced}"
        lines = [f"domain {g.domain}, whole {sorted(g.whole)}, {how}"]
        names = {n: f"a{i}" for i, n in enumerate(topological(g.stored))}
        labels = dict(g.members)
        for n, name in names.items():
            args = ", ".join(names[i] for i in n.inputs)
            mark = " *" if n in g.stored else ""
            lines.append(f"  {name} = {n}({args}) {n.params} {labels.get(n, '')}{mark}")
        return "\n".join(lines)


class Rejected(Exception):
    """What was drawn is no stage."""


class Drawing:
    """One stage on its way: `draw` decides its structure, `size` its sizes, cuts and data."""

    def __init__(self, structure: int, sizes: int) -> None:
        self.draw, self.size = random.Random(structure), random.Random(sizes)
        self.data = np.random.default_rng(sizes)
        self.special = self.draw.random() < 0.2
        self.values: list[Value] = []
        kinds = [self.draw.random() < 0.12 for _ in range(self.draw.choice((1, 2, 2, 2, 3, 3, 4)))]
        whole = [self.draw.random() < 0.25 for _ in kinds]
        self.lines = self.draw.choice((0, 0, 1, 1, 2))
        self.domain = self._domain(kinds, whole)
        self.whole = {d for d, w in enumerate(whole) if w}
        self.line_sizes = [self.size.choice(_LINES) for _ in range(self.lines)]
        most = 4 * _ELEMENTS // prod(self.domain)
        while prod(self.line_sizes) > most and max(self.line_sizes) > 2:
            self.line_sizes = [-(-n // 2) for n in self.line_sizes]
        self.axes = [(d, n) for d, n in enumerate(self.domain)] + [(WHOLE, n) for n in self.line_sizes]

    def _domain(self, ones: list[bool], whole: list[bool]) -> tuple[int, ...]:
        sizes = [1 if one else self.size.choice(_SIZES) for one in ones]
        while (
            prod(sizes) > _ELEMENTS or prod(n for n, w in zip(sizes, whole, strict=True) if w) > LARGEST_BLOCK
        ):
            at = sizes.index(max(sizes))
            sizes[at] = -(-sizes[at] // 2)
        return tuple(sizes)

    # --- values ---------------------------------------------------------------------------------------

    def add(self, node: Node, labels: Labels, rounded: bool = False, folded: bool = False) -> Value:
        """One more value; `Rejected` where its elements are too large."""
        inputs = [self._elements(i) for i in node.inputs]
        with np.errstate(all="ignore"):
            elements = np.asarray(reference._STEPS[node.op](node, *inputs))
        if elements.dtype != node.dtype or elements.shape != node.shape:
            raise Rejected(f"{node}: the reference makes {elements.dtype} {elements.shape}")
        tame = self.special or elements.dtype.kind not in "fc" or elements.size == 0
        if not tame and not np.abs(elements).max() <= _LARGEST:
            raise Rejected(f"{node} is too large")
        value = Value(node, labels, elements, rounded, folded)
        self.values.append(value)
        return value

    def _elements(self, node: Node) -> Any:
        for v in self.values:
            if v.node is node:
                return v.elements
        value = np.asarray(reference._STEPS[node.op](node, *(self._elements(i) for i in node.inputs)))
        self.values.append(Value(node, (), value))
        return value

    @property
    def usable(self) -> list[Value]:
        """Values that may be operands: those with labels."""
        return [v for v in self.values if v.labels or (v.node.ndim == 0 and v.node.op is not Op.DATA)]

    def leaf(self, axes: list[tuple[int, int]], kind: str | None = None) -> Value:
        """A view of a new array with these axes: turned, sliced, stretched."""
        dtype = np.dtype(kind or self.draw.choice(_DTYPES))
        stretched = [self.draw.random() < 0.1 for _ in axes]
        sizes = [1 if s else n for (_, n), s in zip(axes, stretched, strict=True)]
        order = list(range(len(axes)))
        if self.draw.random() < 0.4:
            self.draw.shuffle(order)
        cut = self.draw.choice(("none", "none", "none", "step", "back"))
        step = {"none": 1, "step": 2, "back": -1}[cut]
        shape = [sizes[k] * abs(step) + (3 if cut == "step" else 0) for k in order]
        node = build.constant(self._numbers(dtype, tuple(shape)))
        if cut != "none":
            starts = [sizes[k] - 1 if step < 0 else 1 for k in order]
            node = build.slice_(node, starts, [step] * len(order), tuple(sizes[k] for k in order))
        node = build.transpose(node, tuple(order.index(k) for k in range(len(order))))
        node = build.broadcast(node, tuple(n for _, n in axes))
        labels = tuple(d for d, _ in axes)
        value = Value(node, labels, self._elements(node))
        self.values.append(value)
        return value

    def _numbers(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        n = prod(shape)
        if self.special and dtype.kind in "fiub":
            values = sample(dtype, self.size.randrange(1 << 30), max(n, 64))[:n]
            return np.resize(values, n).reshape(shape).astype(dtype)
        low = 0 if dtype.kind in "ub" else -3
        return self.data.integers(low, 5, shape).astype(dtype)

    def some_axes(self) -> list[tuple[int, int]]:
        """All of the domain, or some of it, and perhaps lines."""
        often = self.draw.random() < 0.6
        kept = [a for a in self.axes[: len(self.domain)] if often or self.draw.random() < 0.7]
        lines = [a for a in self.axes[len(self.domain) :] if self.draw.random() < 0.6]
        axes = [*kept, *lines]
        if self.draw.random() < 0.15:
            self.draw.shuffle(axes)
        return axes

    def pick(self) -> Value:
        """A value that there is, the later ones more often, or a new leaf."""
        known = self.usable
        if not known or self.draw.random() < 0.15:
            return self.leaf(self.some_axes())
        return known[max(self.draw.randrange(len(known)), self.draw.randrange(len(known)))]

    def beside(self, v: Value) -> Value:
        """A value that broadcasts to another's axes."""
        fits = [w for w in self.usable if _stretches(w, v)]
        if fits and self.draw.random() < 0.6:
            return self.draw.choice(fits)
        axes = list(zip(v.labels, v.node.shape, strict=True))
        if self.draw.random() < 0.3:
            axes = axes[self.draw.randrange(len(axes) + 1) :]
        axes = [(WHOLE, 1) if self.draw.random() < 0.15 else a for a in axes]
        return self.leaf(axes, v.node.dtype.str if self.draw.random() < 0.6 else None)

    # --- steps ----------------------------------------------------------------------------------------

    def map_(self) -> None:
        """An elementwise function, its operands in the dtypes of NumPy's loop."""
        first = self.pick()
        name = self.draw.choice(_OFTEN if self.draw.random() < 0.6 else _MAPS)
        if first.rounded:
            name = self.draw.choice(_SMOOTH)
        operands = [first, *(self.beside(first) for _ in range(ELEMENTWISE[name].nin - 1))]
        if self.draw.random() < 0.5:
            operands.reverse()
        if name == "where":
            zero = build.constant(np.zeros((), operands[0].node.dtype))
            operands[0] = self._mapped("greater", [operands[0], Value(zero, (), zero)])
        self._mapped(name, operands)

    def _mapped(self, name: str, operands: list[Value]) -> Value:
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
        return self.add(node, tuple(labels), rounded, any(v.folded for v in cast))

    def _cast(self, v: Value, dtype: np.dtype[Any]) -> Value:
        if v.node.dtype == dtype:
            return v
        if v.rounded and dtype.kind in "iub":
            raise Rejected("a jump")
        return self.add(build.cast(v.node, dtype), v.labels, v.rounded, v.folded)

    def fold(self) -> None:
        """A fold over axes that blocks see whole."""
        v = self.pick()
        inner = [k for k, d in enumerate(v.labels) if d == WHOLE or d in self.whole]
        if not inner:
            raise Rejected("nothing to fold")
        self.folded_over(v, self.draw.sample(inner, self.draw.randint(1, len(inner))))

    def folded_over(self, v: Value, axes: list[int]) -> Value:
        """A fold of a value."""
        name = self.draw.choice(_FOLDS)
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
        where = None
        if name in ("add", "maximum", "fmin") and self.draw.random() < 0.15 and v.node.dtype.kind in "iuf":
            mask = self.leaf(list(zip(v.labels, v.node.shape, strict=True)), "?")
            where = mask.node
        try:
            node = build.fold(name, v.node, axes, where=where)
            exact = not lossy or self._adds_exactly(v, name, tuple(sorted(axes)))
            labels = tuple(d for k, d in enumerate(v.labels) if k not in axes)
            return self.add(node, labels, v.rounded or not exact, floats or v.folded)
        except TypeError as error:
            raise Rejected(str(error)) from None

    @staticmethod
    def _adds_exactly(v: Value, name: str, axes: tuple[int, ...]) -> bool:
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
        how = self.draw.choice(("iota", "take", "sort", "contract"))
        if how == "iota":
            d, n = self.draw.choice(self.axes)
            self.add(build.iota(n), (d,))
            return
        v = self.pick()
        if how == "take":
            lines = [(WHOLE, self.size.choice(_LINES)), *(a for a in self.axes if a[0] == WHOLE)]
            table = self.leaf(lines[:2])
            axes = [a for a in self.axes[: len(self.domain)] if self.draw.random() < 0.7]
            indices = build.constant(self.data.integers(0, table.node.shape[0], tuple(n for _, n in axes)))
            self.values.append(Value(indices, tuple(d for d, _ in axes), self._elements(indices)))
            self.add(build.take(table.node, indices, 0), (*(d for d, _ in axes), *table.labels[1:]))
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
            node = build.contract(v.node, few.node, letters, (inner, *columns), out, v.node.dtype)
            self.add(node, (*v.labels[:-1], *few.labels[1:]), True, True)

    # --- results --------------------------------------------------------------------------------------

    def stage(self) -> Stage:
        """The whole stage."""
        if self.draw.random() < 0.15:
            return self._finished(*self.scanned())
        for _ in range(self.draw.randint(2, 9)):
            step = self.draw.choice((self.map_, self.map_, self.map_, self.fold, self.view, self.other))
            before = len(self.values)
            try:
                step()
            except Rejected:
                del self.values[before:]
        top = self.over_domain()
        axes = [k for k in range(len(self.domain)) if self.draw.random() < 0.6]
        ended = self.folded_over(top, axes) if axes and self.draw.random() < 0.5 else top
        more: list[tuple[Value, Value | None]] = []
        for v in self.draw.sample(self.usable, min(len(self.usable), self.draw.choice((0, 1, 2, 2, 3)))):
            cut = {d for d, n in enumerate(self.domain) if n > 1} - self.whole
            if v is ended or not cut <= set(v.labels) or v.node.op in (Op.DATA, Op.SLICE, Op.INDEX):
                continue
            over = [k for k in range(v.node.ndim) if self.draw.random() < 0.5]
            if v.node.op in (Op.MAP, Op.FOLD) and self.draw.random() < 0.6:
                more.append((v, None))
            elif over:
                before = len(self.values)
                try:
                    more.append((self.folded_over(v, over), v))
                except Rejected:
                    del self.values[before:]
        return self._finished(ended, more)

    def over_domain(self) -> Value:
        """A map with the whole domain's axes, in order: the last value, stretched to it where it can be."""
        own = self.axes[: len(self.domain)]
        every = [v for v in self.usable if set(v.labels) <= {*range(len(self.domain))}]
        v = self.draw.choice([w for w in every if len(set(w.labels)) == len(w.labels)] or [self.leaf(own)])
        order = sorted(range(v.node.ndim), key=lambda k: v.labels[k])
        node = build.transpose(v.node, order)
        node = build.reshape(node, tuple(n if d in v.labels else 1 for d, n in own))
        if node is not v.node:
            labels = tuple(d if d in v.labels else WHOLE for d, _ in own)
            v = self.add(node, labels, v.rounded, v.folded)
        name = "add" if v.node.dtype.kind != "b" else "logical_or"
        return self._mapped(name, [v, self.leaf(own, v.node.dtype.str)])

    def scanned(self) -> tuple[Value, list[tuple[Value, Value | None]]]:
        """Maps, a scan, maps, and perhaps a fold of the last."""
        self.whole, self.lines = set(), 0
        own = self.axes[: len(self.domain)]
        self.axes = own
        self.leaf(own)
        self._maps()
        v = next(w for w in reversed(self.usable) if w.labels == tuple(range(len(own))))
        name = self.draw.choice(_SCANS)
        floats = v.node.dtype.kind in "fc"
        if v.rounded or (floats and name in ("add", "multiply") and self.special):
            raise Rejected("an order that shows")
        axis = self.draw.randrange(len(own))
        try:
            SCANS[name].dtype(v.node.dtype)
            node = build.scan(name, v.node, axis)
            exact = not floats or name not in ("add", "multiply") or self._adds_exactly(v, name, (axis,))
            scan = self.add(node, v.labels, not exact, floats)
        except TypeError as error:
            raise Rejected(str(error)) from None
        self.values = [w for w in self.values if w is scan or w.node.op is Op.DATA]
        if self.draw.random() < 0.4 and not scan.rounded:
            self._chosen(scan)
        self._maps()
        above = [w for w in self.usable if w.labels == scan.labels and scan.node in topological([w.node])]
        top = above[-1]
        axes = [k for k in range(len(own)) if self.draw.random() < 0.6]
        if axes and self.draw.random() < 0.5:
            return self.folded_over(top, axes), [(top, None)] if self.draw.random() < 0.5 else []
        return top, []

    def _chosen(self, scan: Value) -> None:
        """`where` between a scan and another value, as either branch."""
        other = self.beside(scan)
        zero = build.constant(np.zeros((), scan.node.dtype))
        mask = self._mapped("less_equal", [scan, Value(zero, (), zero)])
        branches = [scan, other] if self.draw.random() < 0.5 else [other, scan]
        self._mapped("where", [mask, *branches])

    def _maps(self) -> None:
        for _ in range(self.draw.randint(0, 4)):
            before = len(self.values)
            try:
                self.map_()
            except Rejected:
                del self.values[before:]

    def _finished(self, ended: Value, more: list[tuple[Value, Value | None]]) -> Stage:
        """The group: members under the labels that their readers see them by."""
        shape = root(ended.node)
        if shape.domain != self.domain:
            raise Rejected("another domain")
        group = Group(ended.node, self.domain, shape.out, self.whole | set(shape.whole))
        results: dict[Node, Value] = {ended.node: ended}
        demanded: dict[Node, Labels] = {}

        def demand(node: Node, seen: tuple[Labels, ...]) -> None:
            for source, labels in zip(node.inputs, seen, strict=True):
                known = demanded.setdefault(source, labels)
                if group.canonical(known) != group.canonical(labels) and source.op is not Op.DATA:
                    raise Rejected("seen in two ways")

        demand(ended.node, shape.inputs)
        for v, folded in more:
            if v.node in results:
                continue
            results[v.node] = v
            if folded is not None:
                seen = (folded.labels,) * len(v.node.inputs)
                group.more.append(Result(v.node, v.labels, seen))
                demand(v.node, seen)
            else:
                group.more.append(Result(v.node, v.labels))
                demanded.setdefault(v.node, v.labels)
        for node in reversed(topological(results)):
            if node.op in (Op.DATA, Op.SLICE) or node not in demanded:
                continue
            if any(r.node is node and r.inputs is not None for r in group.more) or node is ended.node:
                raise Rejected("a fold over the domain is used inside")
            labels = demanded[node]
            missing = {d for d, n in enumerate(self.domain) if n > 1 and d not in labels} - group.whole
            free = node.op in (Op.INDEX, *VIEWS) or (node.op is Op.MAP and node.size <= SMALL_REPEAT)
            if missing and not free:
                raise Rejected("computed again for each block")
            if node.op is Op.SCAN:
                group.scan = node
            group.members.append((node, labels))
            demand(node, input_labels(node, labels))
        if group.scan is None and ended.node.op is Op.SCAN:
            group.scan = ended.node
        cache = self.size.choice(_CACHES)
        forced = self.size.choice((None, None, "row", "column", "block"))
        return Stage(group, list(results.values()), cache, forced)


def _stretches(w: Value, v: Value) -> bool:
    """Whether a value's last axes are another's, or of length 1."""
    skip = v.node.ndim - w.node.ndim
    return skip >= 0 and all(
        (d == v.labels[k + skip] and n == v.node.shape[k + skip]) or (n == 1 and d == WHOLE)
        for k, (d, n) in enumerate(zip(w.labels, w.node.shape, strict=True))
    )


def drawn(number: int, seed: int) -> Stage:
    """Stage `number` of a seed."""
    for attempt in range(1000):
        body, sizes = f"{seed}.{number // SIZES_A_BODY}.{attempt}", f"{seed}.{number}.{attempt}"
        with np.errstate(all="ignore"):
            try:
                return Drawing(_mixed(body), _mixed(sizes)).stage()
            except Rejected:
                continue
    raise AssertionError("nothing can be drawn")


def _mixed(text: str) -> int:
    return random.Random(text).getrandbits(60)


class Runner:
    """Runs stages on one worker, and on several."""

    def __init__(self) -> None:
        self.backends: dict[int, Backend] = {1: EmbeddedBackend(2), 3: SimulatedBackend(3)}
        self.compiled = 0
        """Runs in which a compiled kernel did the work."""
        self._plans = 0
        self._failed = {k.source for k in compiler._kernels.values() if k.failure}

    def close(self) -> None:
        """Let the threads go."""
        for backend in self.backends.values():
            backend.close()

    def differences(self, stage: Stage, tiers: tuple[str, ...] = TIERS) -> Iterator[str]:
        """What any tier, on one worker or three, makes otherwise than the reference."""
        with mock.patch.object(blocks, "CACHE_BYTES", stage.cache_bytes):
            for workers, backend in self.backends.items():
                plan, refs = self._planned(stage, workers)
                for tier in tiers if workers == 1 else tiers[-1:]:
                    with warnings.catch_warnings(), np.errstate(all="ignore"), self._counting():
                        warnings.simplefilter("error", KernelWarning)
                        with config.override(kernels=tier):
                            found = self._run(backend, plan, refs)
                    for k, (value, got) in enumerate(zip(stage.results, found, strict=True)):
                        if said := difference(value, got):
                            yield f"{tier} on {workers}: result {k}, {value.node}: {said}"
        for kernel in compiler._kernels.values():
            if kernel.failure and kernel.source not in self._failed:
                self._failed.add(kernel.source)
                yield f"no kernel, but {kernel.failure}"

    def _planned(self, stage: Stage, workers: int) -> tuple[Plan, list[ArrayRef]]:
        roots = [v.node for v in stage.results]
        order = topological(roots)
        grouping = Grouping([stage.group], dict.fromkeys(stage.group.stored, stage.group))
        settings = lower.Settings(ClusterProfile(workers=workers), stage.forced)
        self._plans += 1
        with mock.patch.object(lower, "form_stages", return_value=grouping):
            plan = lower.lower(order, roots, settings, f"stage {self._plans}")
        return plan, [n.data for n in order if n.data is not None]

    def _run(self, backend: Backend, plan: Plan, inputs: list[ArrayRef]) -> list[Any]:
        refs = [ArrayRef(r.shape, r.dtype, value=r.value) for r in inputs]
        for ref, slot in zip(refs, plan.inputs, strict=True):
            backend.upload(ref, plan.slots[slot].tiling)
        found, _ = backend.run(plan, refs)
        return [backend.gather(r, tuple((0, n) for n in r.shape)) for r in found]

    @contextmanager
    def _counting(self) -> Iterator[None]:
        from spartan_ng.kernels.compiled.select import Tier

        choose = Tier.choose

        def counted(tier: Tier, *args: Any) -> Any:
            choice = choose(tier, *args)
            self.compiled += choice is not None
            return choice

        with mock.patch.object(Tier, "choose", counted):
            yield


def difference(value: Value, got: Any) -> str:
    """What differs from the reference; empty where nothing does that may not."""
    want = value.elements
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {got.shape} for {want.dtype} {want.shape}"
    with np.errstate(all="ignore"):
        same = _same(value, got)
    if same.all():
        return ""
    at = tuple(int(i[0]) for i in np.nonzero(~same))
    return f"{(~same).sum()} of {same.size} elements, at {at} {got[at]!r} for {want[at]!r}"


def _same(value: Value, got: Any) -> Any:
    """Which elements are what they should be."""
    want = value.elements
    same = (got == want) | ((got != got) & (want != want))
    if value.rounded:
        scale = max(1.0, float(np.max(np.abs(want), where=np.isfinite(want), initial=0)))
        close = 5e-3 if want.dtype.char == "e" else 1e-3 if want.dtype.char in "fF" else 1e-9
        return same | (np.abs(got - want) <= close * scale)
    if want.dtype.kind == "f" and not value.folded:
        same &= (np.signbit(got) == np.signbit(want)) | (want != want)
    return same


def main() -> None:
    """Run many stages, print what is wrong with them, and exit with 1 if anything was."""
    import argparse
    import sys
    import time
    import traceback

    parser = argparse.ArgumentParser(description="Random stages in every tier against the reference.")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--tiers", default=",".join(TIERS))
    options = parser.parse_args()
    runner, wrong = Runner(), 0
    for number in range(options.first, options.first + options.count):
        stage = drawn(number, options.seed)
        try:
            said = list(runner.differences(stage, tuple(options.tiers.split(","))))
        except Exception:  # noqa: BLE001  # whatever it is, it is printed with its stage
            said = [traceback.format_exc(limit=-4)]
        if said:
            wrong += 1
            print(f"--first {number} --count 1 --seed {options.seed}\n{stage}", *said, sep="\n", flush=True)
        if (number + 1) % 100 == 0:
            print(f"{number + 1} stages, {wrong} wrong, {runner.compiled} compiled runs", flush=True)
    print(f"{options.count} stages of seed {options.seed}: {wrong} wrong, {runner.compiled} compiled runs")
    runner.close()
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
