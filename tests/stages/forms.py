"""Stages of one pass, by form: cells, scans with what stands around them, products, sums of segments,
ends of sorted lines."""

from __future__ import annotations

from functools import partial

import numpy as np

from spartan_ng.arrays import WHOLE
from spartan_ng.graph import build
from spartan_ng.graph.node import Op, topological
from spartan_ng.ops.scans import SCANS
from tests.stages import users
from tests.stages.steps import Steps
from tests.stages.values import Ended, Rejected, Value

_SCANS = ("add", "add", "multiply", "maximum", "minimum", "fmax", "logical_or", "bitwise_xor")
_STATES = ("cumsumprod", "compensated_add", "segmented_add", "segmented_maximum")
"""Scans whose states are more than a value."""


class Forms(Steps):
    """Whole stages of one pass: each form gives what the stage ends in, and what else it stores."""

    def cells(self) -> Ended:
        """Maps, folds, views and lookups over one domain, several of them stored or folded."""
        for _ in range(self.draw.randint(2, 9)):
            step = self.draw.choice((self.map_, self.map_, self.map_, self.fold, self.view, self.other))
            self.tried(step)
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
                folded = self.tried(partial(self.folded_over, v, over))
                more += [(folded, v)] if folded is not None else []
        return ended, more

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
        return self.mapped(name, [v, self.leaf(own, v.node.dtype.str)])

    def scanned(self) -> Ended:
        """Maps, a scan, maps, and perhaps a fold of the last."""
        self.whole, self.lines, self.masks = set(), 0, False
        own = self.axes[: len(self.domain)]
        self.axes = own
        self.leaf(own)
        self.maps()
        v = next(w for w in reversed(self.usable) if w.labels == tuple(range(len(own))))
        scan = self._scan(v, self.draw.randrange(len(own)))
        self.values = [w for w in self.values if w is scan or w.node.op is Op.DATA]
        if self.draw.random() < 0.4 and not scan.rounded:
            self._chosen(scan)
        self.maps()
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
        mask = self.mapped("less_equal", [scan, Value(zero, (), zero)])
        branches = [scan, other] if self.draw.random() < 0.5 else [other, scan]
        self.mapped("where", [mask, *branches])

    def maps(self) -> None:
        """Some of them."""
        for _ in range(self.draw.randint(0, 4)):
            self.tried(self.map_)

    def _scan(self, v: Value, axis: int) -> Value:
        """A scan of a value."""
        if self.calls_users and self.draw.random() < 0.5:
            return self._users_scan(v, axis)
        if v.node.dtype.char in "fd" and self.draw.random() < 0.3:
            return self._scan_of_states(v, axis)
        name = self.draw.choice(_SCANS)
        floats = v.node.dtype.kind in "fc"
        if v.rounded or (floats and name in ("add", "multiply") and self.special):
            raise Rejected("an order that shows")
        try:
            SCANS[name].dtype(v.node.dtype)
            node = build.scan(name, v.node, axis)
            exact = not floats or name not in ("add", "multiply") or self.adds_exactly(v, name, (axis,))
            return self.add(node, v.labels, not exact, floats)
        except TypeError as error:
            raise Rejected(str(error)) from None

    def _scan_of_states(self, v: Value, axis: int) -> Value:
        """A recurrence, a scan in segments, or a sum that keeps what rounding loses."""
        name = self.draw.choice(_STATES)
        if v.rounded or self.special:
            raise Rejected("an order that shows")
        exact = self.adds_exactly(v, "add", (axis,))
        if name == "compensated_add":
            return self.add(build.scan(name, v.node, axis), v.labels, not exact, True)
        signs = self.data.integers(-1 if name == "cumsumprod" else 0, 2, v.node.shape)
        weights = build.constant(signs.astype(v.node.dtype))
        self.values.append(Value(weights, v.labels, signs))
        return self.add(build.recurrence(name, v.node, weights, axis), v.labels, not exact, True)

    def _users_scan(self, v: Value, axis: int) -> Value:
        if v.node.dtype.kind not in "iuf" or v.rounded or self.special:
            raise Rejected("nothing that users scan")
        fn = self.draw.choice((users.SUM, users.LEAST))
        floats = v.node.dtype.kind == "f"
        exact = fn is users.LEAST or not floats or self.adds_exactly(v, "add", (axis,))
        return self.add(build.scan(fn, v.node, axis), v.labels, not exact, floats)

    def product(self) -> Ended:
        """A sum of products over the domain, of operands that the pass makes."""
        self.whole, self.lines, self.axes = set(), 0, self.own_axes()
        letters = range(len(self.domain))
        sides = [self.draw.choice(("a", "b", "ab")) for _ in letters]
        lo = tuple(x for x in letters if sides[x] != "ab" or self.draw.random() < 0.3)
        la, lb = (tuple(x for x in letters if side in sides[x]) for side in "ab")
        a, b = self._side(la), self._side(lb)
        if a.node is b.node:
            raise Rejected("one operand")
        out = tuple(self.draw.sample(lo, len(lo)))
        return self.product_of(a, b, la, lb, out, out), []

    def _side(self, letters: tuple[int, ...]) -> Value:
        """An operand with some of the domain's axes, and perhaps work on it."""
        first = self.leaf([self.axes[x] for x in letters], self.draw.choice(("f8", "f8", "f4", "i8")))
        own, others = [first], self.values
        self.values = own
        for _ in range(self.draw.choice((0, 0, 1, 2))):
            self.tried(self.map_)
        found = [v for v in self.values if v.labels == first.labels and v.node.shape == first.node.shape]
        self.values = [*others, *self.values]
        return found[-1]

    def ends(self) -> Ended:
        """The first or last places of a sorted line, or its distinct elements."""
        if len(self.domain) > 1:
            raise Rejected("more than a line")
        self.whole, self.lines, self.axes = set(), 0, self.own_axes()
        self.leaf(self.axes, self.draw.choice(("f8", "f4", "i8", "i1", "?", "u2")))
        self.maps()
        x = [v for v in self.usable if v.labels == (0,)][-1]
        if x.node.dtype.kind not in "biuf" or x.rounded:
            raise Rejected("an order that shows")
        function, count = self.draw.choice(("sort", "argsort")), self.draw.randint(1, min(self.domain[0], 40))
        dtype = x.node.dtype if function == "sort" else build.INTP
        node = build.ends(function, x.node, count, self.draw.random() < 0.5, dtype)
        if self.draw.random() < 0.3:
            node = build.distinct(x.node, count)
        elif self.draw.random() < 0.2 and x.node.dtype.kind in "iuf":
            bounds = sorted({self.draw.randint(0, 9) for _ in range(3)})
            wanted = [self.draw.random() < 0.3 for _ in range(len(bounds) + 1)]
            node = build.between(x.node, [(b, True) for b in bounds], wanted, 0)
        return self.add(node, (WHOLE,)), []

    def segments(self) -> Ended:
        """Counts or sums for each number of an index."""
        self.whole, self.lines, self.axes = set(), 0, self.own_axes()
        length = self.size.choice((1, 3, 8, 50))
        which = self.data.integers(0, length, self.domain[0])
        x = build.constant(which.astype(np.int64))
        self.values.append(Value(x, (0,), which))
        if self.draw.random() < 0.5:  # work on the index, too
            top = build.constant(np.int64(self.draw.choice((0, 2, 49))))
            x = self.mapped("minimum", [self.values[-1], Value(top, (), top)]).node
        if len(self.domain) == 1 and self.draw.random() < 0.4:
            return self.add(build.bincount(x, length), (WHOLE,)), []
        self.leaf(self.axes)
        self.maps()
        full = [v for v in self.usable if v.labels == tuple(range(len(self.domain)))]
        if full[-1].node.dtype.kind == "c" or self.special or full[-1].rounded:
            raise Rejected("an order that shows")
        weights = self._cast(full[-1], np.dtype(np.float64))
        exact = self.adds_exactly(weights, "add", (0,))
        node = build.bincount(x, length, weights.node)
        return self.add(node, (WHOLE, *range(1, len(self.domain))), not exact, True), []
