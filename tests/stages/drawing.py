"""A stage on its way: its axes, its values, and leaves that are views of new arrays.

Sizes, cuts and data are drawn apart from the structure, so that several stages share one compiled kernel.
Data are small whole numbers (sums of them are exact in any order), thirds of them (sums round), or have
everything special in them.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import WHOLE
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.labels import Labels
from spartan_ng.optimizer.fusion.legality import LARGEST_BLOCK
from tests import reference
from tests.kernels.samples import sample
from tests.stages.values import Rejected, Value

_SIZES = (2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 100, 129, 257, 1025)
LINES = (2, 3, 5, 7, 8, 9, 17, 40, 300)
_ELEMENTS = 20_000
_MOST = 16 * _ELEMENTS
"""Elements of a value; along lines that are stretched over and over there would be billions."""
_LARGEST = 1e4
_DTYPES = ("f8",) * 6 + ("f4", "f4", "i4", "i8", "i8", "i1", "i2", "u1", "u4", "u8", "?", "f2", "c8", "c16")


class Drawing:
    """One stage on its way: `draw` decides its structure, `size` its sizes, cuts and data."""

    def __init__(self, structure: int, sizes: int) -> None:
        self.draw, self.size = random.Random(structure), random.Random(sizes)
        self.data = np.random.default_rng(sizes)
        self.special = self.draw.random() < 0.2
        self.thirds = not self.special and self.draw.random() < 0.2
        """Whether floats are thirds, of which sums round."""
        self.calls_users = False
        self.masks = True
        """Whether folds may have a mask: behind a scan there is none."""
        self.values: list[Value] = []
        kinds = [self.draw.random() < 0.12 for _ in range(self.draw.choice((1, 2, 2, 2, 3, 3, 4)))]
        whole = [self.draw.random() < 0.25 for _ in kinds]
        self.lines = self.draw.choice((0, 0, 1, 1, 2))
        self.domain = self._domain(kinds, whole)
        self.whole = {d for d, w in enumerate(whole) if w}
        self.line_sizes = [self.size.choice(LINES) for _ in range(self.lines)]
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
        """One more value; `Rejected` where its elements are too large, or too many."""
        if node.size > _MOST:
            raise Rejected(f"{node} has too many elements")
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
        node = build.constant(self.numbers(dtype, tuple(shape)))
        if cut != "none":
            starts = [sizes[k] - 1 if step < 0 else 1 for k in order]
            node = build.slice_(node, starts, [step] * len(order), tuple(sizes[k] for k in order))
        node = build.transpose(node, tuple(order.index(k) for k in range(len(order))))
        node = build.broadcast(node, tuple(n for _, n in axes))
        labels = tuple(d for d, _ in axes)
        value = Value(node, labels, self._elements(node))
        self.values.append(value)
        return value

    def numbers(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        n = prod(shape)
        if self.special and dtype.kind in "fiub":
            values = sample(dtype, self.size.randrange(1 << 30), max(n, 64))[:n]
            return np.resize(values, n).reshape(shape).astype(dtype)
        low = 0 if dtype.kind in "ub" else -3
        numbers = self.data.integers(low, 5, shape).astype(dtype)
        return numbers / dtype.type(3) if self.thirds and dtype.char in "fdFD" else numbers

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

    def own_axes(self) -> list[tuple[int, int]]:
        """The whole domain's."""
        return self.axes[: len(self.domain)]


def _stretches(w: Value, v: Value) -> bool:
    """Whether a value's last axes are another's, or of length 1."""
    skip = v.node.ndim - w.node.ndim
    return skip >= 0 and all(
        (d == v.labels[k + skip] and n == v.node.shape[k + skip]) or (n == 1 and d == WHOLE)
        for k, (d, n) in enumerate(zip(w.labels, w.node.shape, strict=True))
    )
