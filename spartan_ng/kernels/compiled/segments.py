"""Cut a stage's body into steps: loops that can be compiled, and NumPy calls between them.

A segment is a loop over one space of axes: maps, and the folds and products at their end ("On Optimizing
Operator Fusion Plans", section 2.2: the templates Cell and Row over the same description of their body).
Every row is put as early as its operands allow, so that rows of one space meet in few segments; what only
a later row needs moves down to it. The description names no backend: it is made of the plan's rows.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import WHOLE
from spartan_ng.kernels.compiled.folds import EXTREMES, PRODUCT, fold_obstacle
from spartan_ng.kernels.compiled.formulas import FORMULAS, code, obstacle
from spartan_ng.kernels.reducers import sums_on_the_way
from spartan_ng.plan.rows import Read, Row
from spartan_ng.plan.stages import Fused

Space = tuple[tuple[int, int], ...]
"""The axes of a loop: the domain dimension (or WHOLE) and the global size of each."""


class Operand(Struct, frozen=True):
    """A register that a segment reads. Views are seen through: the elements lie in register `source`,
    and `axes` gives the loop's axis of each of the source's axes, or -1."""

    register: int
    source: int
    axes: tuple[int, ...]
    dtype: np.dtype[Any]


class Ending(Struct, frozen=True):
    """A fold of the loop's values into an array with axes `kept`; register -1 - k: write k of the stage."""

    register: int
    fold: str
    args: tuple[int, ...]
    kept: tuple[int, ...]
    dtype: np.dtype[Any]
    shape: tuple[tuple[int, int], ...]
    """Domain dimension and global size of each axis of the result, those of size 1 that no axis of the
    loop stands for included."""


class Segment(Struct, frozen=True):
    """One loop: operands, rows (with their registers), values that are stored, folds."""

    space: Space
    operands: tuple[Operand, ...]
    rows: tuple[tuple[int, Row], ...]
    stores: tuple[int, ...]
    endings: tuple[Ending, ...]

    @property
    def names(self) -> list[str]:
        """Its functions and folds."""
        return [*(str(row.fn) for _, row in self.rows), *(e.fold for e in self.endings)]


class NumpyStep(Struct, frozen=True):
    """A row that stays a NumPy call, and why."""

    register: int
    reason: str


Step = Segment | NumpyStep

VIEWS = ("transpose", "broadcast", "reshape")
"""Kinds of rows that loops see through."""
ALONE = "NumPy's loop is as good for a single function"


class _Place(Struct):
    """Where a row goes: its step's level, and its space (None: a NumPy call)."""

    level: int
    space: Space | None
    reason: str = ""


class Splitter:
    """One stage on its way to steps; `dtypes` are those of the reads."""

    def __init__(self, stage: Fused, dtypes: list[np.dtype[Any]]) -> None:
        self.stage = stage
        self.first = len(stage.reads)
        self.results = {w.register for w in stage.writes if w.reducer is None}
        known = sums_on_the_way(stage)
        reducers = {k: w.reducer for k, w in enumerate(stage.writes) if w.reducer and k not in known}
        self.reduced = list(reducers)
        """The numbers of the writes that are reduced over the domain, without the sums that another one makes
        on the way; their rows follow the stage's."""
        self.rows = [*stage.rows, *reducers.values()]
        self.end = self.first + len(stage.rows)
        self.dtypes = [*dtypes, *(r.dtype for r in self.rows)]
        values: list[Read | Row] = [*stage.reads, *self.rows]
        self.shapes = [_axes(v.shape, v.labels, stage.whole) for v in values]
        self.users: list[list[int]] = [[] for _ in range(self.first + len(self.rows))]
        for i, row in enumerate(self.rows, self.first):
            for a in set(row.args):
                self.users[a].append(i)
        self.places: dict[int, _Place] = {}

    def split(self) -> list[Step]:
        """The steps in an order in which they can run."""
        for i, row in enumerate(self.rows, self.first):
            space, reason = self._space(row)
            self.places[i] = _Place(self._level(row, space), space, reason)
        for i in reversed(range(self.first, self.end)):
            self._sink(i)
        steps = self._steps(lone_maps=False)
        calls = [s for s in steps if isinstance(s, NumpyStep)]
        if len(calls) < len(steps) and all(s.reason in (ALONE, *VIEWS) for s in calls):
            return self._steps(lone_maps=True)  # then one kernel runs the whole stage
        return steps

    def _space(self, row: Row) -> tuple[Space | None, str]:
        """The loop that could compute a row, or None and why there is none."""
        if row.format != "dense":
            return None, "sparse"
        operands = [self.dtypes[a] for a in row.args]
        if row.kind == "map":
            reason = obstacle(row, operands)
            if not reason and not row.shape:
                reason = "a single value"
            return (None, reason) if reason else (_axes(row.shape, row.labels, self.stage.whole), "")
        if row.kind == "fold":
            name = row.fn if isinstance(row.fn, str) else "a user's function"
            reason = fold_obstacle(name, operands[0], row.dtype)
            if not reason and any(self.shapes[a] != self.shapes[row.args[0]] for a in row.args):
                reason = "a broadcast mask"
            if not reason and name in EXTREMES and not self._makes_lines(row):
                reason = "a fold with NumPy's own loop"
            return (None, reason) if reason else (self.shapes[row.args[0]], "")
        if row.kind == "contract":
            return self._product_space(row)
        return None, row.kind

    def _makes_lines(self, row: Row) -> bool:
        """Whether a loop makes the operand of a fold, and makes it in whole lines that go to one place each:
        what lies in memory NumPy looks through as fast."""
        (operand, *mask), (axes,) = row.args, row.params
        space = self.shapes[operand]
        if mask or axes != (len(space) - 1,) or space[-1][0] != WHOLE or space[-1][1] == 1:
            return False
        if operand < self.first or self.rows[operand - self.first].kind != "map":
            return False
        return self.places[operand].space == space

    def _product_space(self, row: Row) -> tuple[Space | None, str]:
        """A product where one operand has all the labels is a loop over that operand."""
        la, lb, _ = row.params
        a, b = row.args
        if any(self.dtypes[r] != row.dtype for r in (a, b)) or code(row.dtype) not in ("f4", "f8"):
            return None, f"a product of {self.dtypes[a]} and {self.dtypes[b]}"
        sized = dict(zip((*la, *lb), (*self.shapes[a], *self.shapes[b]), strict=True))
        wide = {x for x, (_, n) in sized.items() if n > 1}
        for labels, others, r in ((la, lb, a), (lb, la, b)):
            if wide <= set(labels) and len(others) and len(set(labels)) == len(labels):
                return self.shapes[r], ""
        return None, "a matrix product"

    def _level(self, row: Row, space: Space | None) -> int:
        level = 0
        for a in row.args:
            if a >= self.first:
                place = self.places[a]
                joins = space is not None and place.space == space and self.rows[a - self.first].kind == "map"
                joins = joins and row.kind != "contract"
                level = max(level, place.level + (0 if joins else 1))
        return level

    def _sink(self, i: int) -> None:
        """Move a row that reads only stored values down to the rows that use it."""
        row, place = self.rows[i - self.first], self.places[i]
        if row.kind != "map" or place.space is None or not self.users[i] or i in self.results:
            return
        if any(a >= self.first and self.places[a].space is not None for a in row.args):
            return
        limits = []
        for u in self.users[i]:
            user = self.places[u]
            joins = user.space == place.space and self.rows[u - self.first].kind != "contract"
            limits.append(user.level if joins else user.level - 1)
        place.level = max(place.level, min(limits))

    def _steps(self, lone_maps: bool) -> list[Step]:
        groups: dict[tuple[int, Space], list[int]] = {}
        numpy_steps: dict[int, list[int]] = {}
        for i, place in self.places.items():
            if place.space is None:
                if i < self.end:
                    numpy_steps.setdefault(place.level, []).append(i)
                continue
            contract = self.rows[i - self.first].kind == "contract"
            key = (place.level, (*place.space, (-2, i)) if contract else place.space)
            groups.setdefault(key, []).append(i)
        out: list[Step] = []
        for level in sorted({*numpy_steps, *(k[0] for k in groups)}):
            out += [NumpyStep(i, self.places[i].reason) for i in numpy_steps.get(level, ())]
            for (at, _), members in groups.items():
                if at == level:
                    out += self._segment(members, lone_maps)
        return out

    def _segment(self, members: list[int], lone_maps: bool) -> list[Step]:
        rows = [(i, self.rows[i - self.first]) for i in members]
        space = self.places[members[0]].space
        assert space is not None, "segments have a space"
        maps = [(i, r) for i, r in rows if r.kind == "map"]
        if len(maps) == len(rows) == 1 and not lone_maps and not self._beats_numpy(rows[0][1]):
            return [NumpyStep(members[0], ALONE)]
        inside = {i for i, _ in maps}
        endings = tuple(self._ending(i, r, space) for i, r in rows if r.kind != "map")
        operands: dict[int, Operand] = {}
        for _, r in rows:
            for position, a in enumerate(r.args):
                if a not in inside and a not in operands:
                    source, mapped = self._seen(a, self._axes_of(r, position, a, space))
                    operands[a] = Operand(a, source, mapped, self.dtypes[a])
        held = set(members)
        stores = tuple(i for i in inside if i in self.results or any(u not in held for u in self.users[i]))
        return [Segment(space, tuple(operands.values()), tuple(maps), tuple(sorted(stores)), endings)]

    def _beats_numpy(self, row: Row) -> bool:
        """Whether a loop for this map alone is worth compiling: its formula is, or operands lie turned to
        each other in memory, which NumPy's loop does not walk in blocks of the cache."""
        formula = FORMULAS.get(str(row.fn))
        orders = {
            tuple(o for o in self.stage.reads[a].order if o >= 0)
            for a in row.args
            if a < self.first and len(self.shapes[a]) > 1
        }
        return (formula is not None and formula.beats_numpy) or len(orders) > 1

    def _axes_of(self, row: Row, position: int, register: int, space: Space) -> tuple[int, ...]:
        """The loop's axis of each axis of an operand."""
        shape = self.shapes[register]
        if row.kind != "contract":
            skip = len(space) - len(shape)
            return tuple(
                -1 if n == 1 and space[k + skip][1] != 1 else k + skip for k, (_, n) in enumerate(shape)
            )
        mine = row.params[position]
        labels = self._space_labels(row, space)
        return tuple(labels.index(x) if x in labels else -1 for x in mine)

    def _seen(self, register: int, axes: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The register that holds a view's elements, and the loop's axis of each of its axes."""
        while register >= self.first:
            row = self.rows[register - self.first]
            here = viewed_axes(row, self.shapes[row.args[0]]) if row.args else None
            if here is None:
                break
            axes = tuple(-1 if k < 0 else axes[k] for k in here)
            register = row.args[0]
        return register, axes

    def _space_labels(self, row: Row, space: Space) -> tuple[int, ...]:
        la, lb, _ = row.params
        wide = {
            x
            for x, (_, n) in zip(
                (*la, *lb), (*self.shapes[row.args[0]], *self.shapes[row.args[1]]), strict=True
            )
            if n > 1
        }
        fits = wide <= set(la) and self.shapes[row.args[0]] == space
        return la if fits else lb  # type: ignore[no-any-return]

    def _ending(self, i: int, row: Row, space: Space) -> Ending:
        register = -1 - self.reduced[i - self.end] if i >= self.end else i
        kept: tuple[int, ...]
        if row.kind == "fold":
            (axes,) = row.params
            kept = tuple(k for k in range(len(space)) if k not in axes)
            fold = str(row.fn)
        else:
            labels = self._space_labels(row, space)
            kept = tuple(labels.index(x) if x in labels else -1 for x in row.params[2])
            fold = PRODUCT
        return Ending(register, fold, row.args, kept, row.dtype, self.shapes[i])


def _axes(shape: tuple[int, ...], labels: tuple[int, ...], whole: tuple[int, ...]) -> Space:
    """Axes under one name: dimensions that blocks never cut are WHOLE."""
    return tuple((WHOLE if d in whole else d, n) for d, n in zip(labels, shape, strict=True))


def viewed_axes(row: Row, base: Space) -> tuple[int, ...] | None:
    """For a row that is a view: the row's axis of each axis of its operand (-1: none); else None."""
    if row.kind == "transpose":
        (order,) = row.params
        return tuple(order.index(k) for k in range(len(base)))
    if row.kind == "broadcast":
        skip = len(row.shape) - len(base)
        return tuple(k + skip if n == row.shape[k + skip] else -1 for k, (_, n) in enumerate(base))
    if row.kind == "reshape":
        wide = [k for k, n in enumerate(row.shape) if n != 1]
        if [row.shape[k] for k in wide] != [n for _, n in base if n != 1]:
            return None
        following = iter(wide)
        return tuple(-1 if n == 1 else next(following) for _, n in base)
    return None


def split(stage: Fused, dtypes: list[np.dtype[Any]]) -> list[Step]:
    """The steps of a stage whose reads have `dtypes`."""
    return Splitter(stage, dtypes).split()


def compiles(steps: list[Step], stage: Fused) -> bool:
    """Whether compiled loops would do a share of the work worth having."""
    return any(isinstance(s, Segment) and prod(n for _, n in s.space) > 1 for s in steps) and not stage.heavy
