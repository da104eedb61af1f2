"""Turn sketches into the pure problem: variables for grids and tilings, tables for what moves.

A stage's grid is a variable. So is the tiling of an array that may lie anywhere: one that is not on the
workers yet, or one that is combined from partial states. A result that no grid reduces lies where its
tasks ran, and views are permutations of labels; both are contracted away.

Spartan (ATC '15), section 3.3, "Constructing the tiling graph".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spartan_ng.optimizer.tiling import forced as force
from spartan_ng.optimizer.tiling.memory import within
from spartan_ng.optimizer.tiling.moves import combine_bytes, read_bytes
from spartan_ng.optimizer.tiling.options import (
    Options,
    candidates,
    canonical,
    interned,
    project,
    projected,
)
from spartan_ng.optimizer.tiling.problem import Problem, Scope
from spartan_ng.optimizer.tiling.profile import ClusterProfile, Table
from spartan_ng.optimizer.tiling.sketch import WHOLE, Access, ArraySketch, Span, StageSketch

_PINNED = -1
"""In place of a variable: the array has one possible tiling."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an array may lie: the variable that decides, and the tiling for each of its options."""

    variable: int
    options: Options


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes that an access moves, a table over two variables (either may be `_PINNED`)."""

    row: int
    column: int
    table: Table

    def at(self, choice: tuple[int, ...]) -> int:
        """The bytes under a choice."""
        row = choice[self.row] if self.row >= 0 else 0
        column = choice[self.column] if self.column >= 0 else 0
        return int(self.table[row, column])


@dataclass(frozen=True, slots=True)
class Late:
    """Bytes of a read behind partial sums: a table over the grid, the result's tiling, and the array's."""

    scope: tuple[int, int, int]
    table: Table

    def at(self, choice: tuple[int, ...]) -> int:
        """The bytes under a choice."""
        return int(self.table[tuple(choice[v] if v >= 0 else 0 for v in self.scope)])


@dataclass(frozen=True, slots=True)
class Model:
    """A problem, and what its variables mean. Variable i < number of stages is the grid of stage i."""

    problem: Problem
    grids: tuple[Options, ...]
    places: tuple[Place, ...]
    reads: tuple[tuple[Move | Late, ...], ...]
    combines: tuple[tuple[Move | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be chosen: the cluster, the memory for copies, and a tiling forced on everything."""

    profile: ClusterProfile
    budget: int
    forced: str | None = None


def build(stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], rules: Rules) -> Model:
    """The model of a program."""
    return _Builder(stages, arrays, rules).model()


class _Builder:
    """Collects variables and factors stage by stage."""

    def __init__(
        self, stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], rules: Rules
    ) -> None:
        self.stages, self.arrays, self.rules = stages, arrays, rules
        self.profile = rules.profile
        self.touched = [self._touched(s) for s in stages]
        self.grids = [self._grids(s, t) for s, t in zip(stages, self.touched, strict=True)]
        self.sizes = [len(g) for g in self.grids]
        self.constant = 0
        self.factors: dict[Scope, Table] = {}
        self.weights: dict[int, list[int]] = {}
        bits = 60 - (len(stages) + len(arrays)).bit_length()
        # Picoseconds, a thousand times the cost, have to stay within 64 bits, too.
        self.wide = self._most_ns() >= 1 << min(bits, 52)
        self.forbidden = 1 << (200 if self.wide else bits)

    def model(self) -> Model:
        """Everything, in program order."""
        places: dict[int, Place] = {}
        combines = []
        for s, stage in enumerate(self.stages):
            combines.append(tuple(self._write(s, stage, w, places) for w in stage.writes))
        for a, array in enumerate(self.arrays):
            if a not in places:
                places[a] = self._source(array)
        reads = []
        for s, stage in enumerate(self.stages):
            self._compute(s, stage)
            reads.append(tuple(self._read(s, stage, r, places) for r in dict.fromkeys(stage.reads)))
        weights = {v: tuple(w) for v, w in self.weights.items() if any(w)}
        budget = None if self.rules.forced else self.rules.budget
        problem = Problem(tuple(self.sizes), self.factors, self.forbidden, weights, budget, self.constant)
        return Model(
            problem,
            tuple(self.grids),
            tuple(places[a] for a in range(len(self.arrays))),
            tuple(reads),
            tuple(combines),
        )

    # --- variables ---------------------------------------------------------------------------------

    def _grids(self, stage: StageSketch, touched: int) -> Options:
        kept = {w.labels[axis] for w in stage.writes for axis in self.arrays[w.array].uncut} | {*stage.late}
        cuttable = tuple(d for d in stage.cuttable if d not in kept) if kept else stage.cuttable
        workers = self.profile.workers
        if self.rules.forced:
            copies = stage.replicable
            return force.nearest(stage.domain, cuttable, workers, self.rules.forced, copies)
        if stage.only:
            return force.nearest(stage.domain, cuttable, workers, stage.only, False)
        made = sum(self.arrays[w.array].nbytes for w in stage.writes)
        fits = 2 * touched <= self.profile.memory_bytes
        copies = stage.replicable and fits and made <= self.rules.budget
        grids = candidates(stage.domain, cuttable, workers, single=fits, copies=copies)
        if kept and stage.turns is not None:
            # Where partial states are combined anyway, the result's own tiling is chosen freely.
            more = candidates(stage.domain, stage.cuttable, workers, single=False, copies=False).tilings
            deep = (g for g in more if g.parts[stage.turns] > 1)
            grids = interned(tuple(dict.fromkeys([*grids.tilings, *deep])), workers)
        return grids if stage.turns is None else within(stage, self.arrays, grids, self.profile)

    def _touched(self, stage: StageSketch) -> int:
        numbers = dict.fromkeys([a.array for a in stage.reads] + [a.array for a in stage.writes])
        return sum(self.arrays[a].nbytes for a in numbers)

    def _candidates(self, array: ArraySketch) -> Options:
        cuttable = tuple(a for a in range(len(array.shape)) if a not in array.uncut)
        workers = self.profile.workers
        if self.rules.forced:
            return force.nearest(array.shape, cuttable, workers, self.rules.forced, True)
        single = 4 * array.nbytes <= self.profile.memory_bytes
        copies = array.nbytes <= self.rules.budget
        return candidates(array.shape, cuttable, workers, single=single, copies=copies)

    def _variable(self, array: ArraySketch, options: Options) -> Place:
        v = len(self.sizes)
        self.sizes.append(len(options))
        self._weigh(v, options, array)
        return Place(v, options)

    def _weigh(self, v: int, options: Options, array: ArraySketch) -> None:
        if any(options.copied):
            weights = self.weights.setdefault(v, [0] * len(options))
            for o, copied in enumerate(options.copied):
                weights[o] += array.nbytes if copied else 0

    def _source(self, array: ArraySketch) -> Place:
        """An array that no stage writes."""
        if array.pinned is not None:
            return Place(_PINNED, interned((canonical(array.pinned),), self.profile.workers))
        place = self._variable(array, self._candidates(array))
        if array.driver:
            copies = [self.profile.workers if c else 1 for c in place.options.copied]
            self._add_unary(place.variable, [self.profile.move_ns(n * array.nbytes) for n in copies])
        return place

    # --- factors -----------------------------------------------------------------------------------

    def _write(self, s: int, stage: StageSketch, write: Access, places: dict[int, Place]) -> Move | None:
        """Place a result; what its combining moves, or None where no grid reduces it."""
        array, grids = self.arrays[write.array], self.grids[s]
        assert array.pinned is None, "a result is on the workers only after its stage has run"
        reduced = tuple(d for d in range(len(stage.domain)) if d not in write.labels)
        cuts = _cuts(grids, reduced)
        if not any(cuts):
            places[write.array] = Place(s, projected(grids, write.labels))
            self._weigh(s, grids, array)
            return None
        options = _results(grids, write.labels, reduced, self._candidates(array))
        places[write.array] = place = self._variable(array, options)
        moved = self._combined(stage, write, grids, options, reduced)
        cutting = np.array(cuts)[:, None]
        stays = _stays(grids, write.labels, options)
        moved = moved * cutting
        elsewhere = (~(cutting | stays)).astype(object if self.wide else np.int64)
        self._add(s, place.variable, moved, elsewhere * self.forbidden)
        return Move(s, place.variable, moved)

    def _combined(
        self,
        stage: StageSketch,
        write: Access,
        grids: Options,
        options: Options,
        reduced: tuple[int, ...],
    ) -> Table:
        if stage.update_bytes is None:
            array = self.arrays[write.array]
            state = array.nbytes if write.state_bytes is None else write.state_bytes
            return combine_bytes(array.shape, grids, options, write.labels, reduced, state)
        rows = [
            [
                stage.update_bytes * (self.profile.workers - 1)
                if copied
                else stage.update_bytes * (ranks - 1) // ranks
                for copied in options.copied
            ]
            for ranks in grids.ranks
        ]
        return np.array(rows, object if self.wide else np.int64)

    def _read(self, s: int, stage: StageSketch, read: Access, places: dict[int, Place]) -> Move | Late:
        place, array = places[read.array], self.arrays[read.array]
        (write, *_) = stage.writes
        if read.behind and places[write.array].variable != s:
            return self._late_read(s, stage, read, place, places[write.array])
        moved = read_bytes(
            stage.domain,
            self.grids[s],
            array.shape,
            place.options,
            read.labels,
            read.spans,
            read.exact,
            array.nbytes,
        )
        self._add(s, place.variable, moved, None)
        return Move(s, place.variable, moved)

    def _late_read(self, s: int, stage: StageSketch, read: Access, place: Place, result: Place) -> Late:
        """A read of the tasks that make the result, wherever these are."""
        grids, array, write = self.grids[s], self.arrays[read.array], stage.writes[0]
        rest = (place.options, read.spans, read.exact, array.nbytes)
        at_once = _moved(stage.domain, grids, array.shape, read.labels, rest)
        axes = tuple(write.labels.index(d) if d != WHOLE else WHOLE for d in read.labels)
        shape = self.arrays[write.array].shape
        late = _moved(shape, result.options, array.shape, axes, rest)
        reduced = tuple(d for d in range(len(stage.domain)) if d not in write.labels)
        cutting = np.array(_cuts(grids, reduced))[:, None, None]
        table = np.where(cutting, late[None], at_once[:, None, :])
        self._add_wide((s, result.variable, place.variable), table)
        return Late((s, result.variable, place.variable), table)

    def _add_wide(self, variables: tuple[int, ...], moved: Table) -> None:
        """A cost over any number of different variables, some of which may be pinned."""
        cost = self.profile.move_ns(moved.astype(object) if self.wide else moved)
        free = [axis for axis, v in enumerate(variables) if v != _PINNED]
        cost = cost[tuple(slice(None) if v != _PINNED else 0 for v in variables)]
        scope = tuple(variables[axis] for axis in free)
        cost = cost.transpose(sorted(range(len(scope)), key=lambda axis: scope[axis]))
        scope = tuple(sorted(scope))
        known = self.factors.get(scope)
        self.factors[scope] = cost if known is None else known + cost

    def _add(self, row: int, column: int, moved: Table, extra: Table | None) -> None:
        if self.wide:
            moved = moved.astype(object)
        cost = self.profile.move_ns(moved)
        if extra is not None:
            cost = cost + extra
        scope: Scope
        if column == _PINNED:
            scope, cost = (row,), cost[:, 0]
        elif row < column:
            scope = (row, column)
        else:
            scope, cost = (column, row), cost.T
        known = self.factors.get(scope)
        self.factors[scope] = cost if known is None else known + cost

    def _add_unary(self, v: int, costs: list[int]) -> None:
        """Costs of a variable's options; what they have in common goes to the constant."""
        least = min(costs)
        self.constant += least
        table = np.array([c - least for c in costs], object if self.wide else np.int64)
        known = self.factors.get((v,))
        self.factors[v,] = table if known is None else known + table

    def _compute(self, s: int, stage: StageSketch) -> None:
        ranks, touched = self.grids[s].ranks, self.touched[s]
        fewest, most = self.grids[s].range
        if fewest == most:
            self.constant += self.profile.compute_ns(stage.flops, touched, ranks[0])
            return
        cost = {r: self.profile.compute_ns(stage.flops, touched, r) for r in set(ranks)}
        self._add_unary(s, [cost[r] for r in ranks])

    def _most_ns(self) -> int:
        """More than any choice costs above the constant."""
        compute, moved, messages, workers = 0, 0, 0, self.profile.workers
        for stage, grids, touched in zip(self.stages, self.grids, self.touched, strict=True):
            fewest, most = grids.range
            if fewest < most:
                compute += self.profile.compute_ns(stage.flops, touched, fewest)
            messages += len(stage.reads) + len(stage.writes)
            for access in stage.reads:
                moved += workers * self.arrays[access.array].nbytes
            for access in stage.writes:
                if len(access.labels) < len(stage.domain) or WHOLE in access.labels:
                    state = max(access.state_bytes or 0, self.arrays[access.array].nbytes)
                    moved += workers * max(workers * state, stage.update_bytes or 0)
        moved += workers * sum(a.nbytes for a in self.arrays if a.driver)
        return compute + self.profile.move_ns(moved) + self.profile.message_ns * messages


def _moved(
    domain: tuple[int, ...],
    grids: Options,
    shape: tuple[int, ...],
    labels: tuple[int, ...],
    rest: tuple[Options, tuple[Span, ...], bool, int],
) -> Table:
    """Bytes that tasks over `domain` pull of an array, for each of its tilings."""
    tilings, spans, exact, nbytes = rest
    return read_bytes(domain, grids, shape, tilings, labels, spans, exact, nbytes)


@lru_cache(maxsize=4096)
def _cuts(grids: Options, dimensions: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether each grid cuts one of the dimensions."""
    return tuple(any(g.parts[d] > 1 for d in dimensions) for g in grids.tilings)


@lru_cache(maxsize=4096)
def _results(grids: Options, labels: tuple[int, ...], reduced: tuple[int, ...], own: Options) -> Options:
    """Tilings of a result that some grids reduce: projections where none is, then the candidates."""
    plain = [
        project(g, labels) for g, cut in zip(grids.tilings, _cuts(grids, reduced), strict=True) if not cut
    ]
    return interned(tuple(dict.fromkeys([*plain, *own.tilings])), grids.workers)


@lru_cache(maxsize=4096)
def _stays(grids: Options, labels: tuple[int, ...], options: Options) -> NDArray[np.bool_]:
    """Whether each option is where the tasks of each grid leave their results."""
    return np.array([[project(g, labels) == t for t in options.tilings] for g in grids.tilings])
