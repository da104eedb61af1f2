"""Turn sketches into the pure problem: variables for grids and tilings, tables for what moves.

A stage's grid is a variable. So is the tiling of an array that may lie anywhere: one that is not on the
workers yet, or one that is combined from partial states. A result that no grid reduces lies where its
tasks ran, and views are permutations of labels; both are contracted away. Readers that may have a copy of
an array of their own have one more variable, the tiling of that copy.

Spartan (ATC '15), section 3.3, "Constructing the tiling graph".
"""

from __future__ import annotations

from math import prod

import numpy as np

from spartan_ng.arrays import WHOLE
from spartan_ng.costs import Table
from spartan_ng.costs.choices import LATER
from spartan_ng.ops.line_sorts import merge_bytes
from spartan_ng.ops.order import count
from spartan_ng.optimizer.tiling import forced as force
from spartan_ng.optimizer.tiling.copies import own_copies, readers
from spartan_ng.optimizer.tiling.factors import CostFactors
from spartan_ng.optimizer.tiling.memory import outside_bytes, within
from spartan_ng.optimizer.tiling.moves import bounds, combine_bytes, pulled_bytes, pulled_pieces
from spartan_ng.optimizer.tiling.options import (
    Options,
    are_cut,
    between_units,
    candidates,
    canonical,
    fewer,
    interned,
    lie_where_made,
    placed_results,
    projected,
    uneven,
)
from spartan_ng.optimizer.tiling.problem import Problem
from spartan_ng.optimizer.tiling.sketch import ArraySketch, Span, StageSketch, TaskAccess
from spartan_ng.optimizer.tiling.uneven import cuts_of, shares
from spartan_ng.optimizer.tiling.variables import PINNED, BehindSums, Model, Move, OwnCopy, Rules, TilingPlace


def build_model(stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], rules: Rules) -> Model:
    """The model of a program."""
    return _ModelBuilder(stages, arrays, rules).model()


class _ModelBuilder(CostFactors):
    """Collects variables and factors stage by stage."""

    def __init__(
        self, stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], rules: Rules
    ) -> None:
        super().__init__(rules.rates or rules.profile)
        self.stages, self.arrays, self.rules = stages, arrays, rules
        self.profile = rules.profile
        self.cuts = {} if rules.forced else cuts_of(stages, arrays, self.profile)
        self.few: dict[int, dict[int, None]] = {}
        """For each array, numbers of workers that small stages which touch it are worth."""
        self.grids = [self._grids(s) for s in stages]
        self.sizes += [len(g) for g in self.grids]
        free = not rules.forced
        self.own = own_copies(stages, arrays, self.profile, rules.budget) if free else ()
        # Everything may be forbidden at once, and the sum has to stay within 64 bits.
        bits = 60 - (2 * (len(stages) + len(arrays) + len(self.own))).bit_length()
        self.widen(self._most_ns(), bits)

    def model(self) -> Model:
        """Everything, in program order."""
        places: dict[int, TilingPlace] = {}
        combines = []
        for s, stage in enumerate(self.stages):
            combines.append(tuple(self._write(s, stage, w, places) for w in stage.writes))
        for a in range(len(self.arrays)):
            if a not in places:
                places[a] = self._source(a)
        for a, array in enumerate(self.arrays):
            self._outlive(array, places[a])
        copies = {who: self._own_copy(who[0], places[who[0]]) for who in self.own}
        reads, sources, outside = [], [], []
        for s, stage in enumerate(self.stages):
            self._compute(s, stage)
            outside.append(self._read_outside(s, stage))
            own = {r: copies.get(readers(stage, r)) for r in stage.reads}
            seen = {r: places[r.array] if copy is None else copy.place for r, copy in own.items()}
            moves = [self._read(s, stage, r, place, places) for r, place in seen.items()]
            reads.append((*moves, *self._merge(s, stage)))
            sources.append(tuple(seen[r] for r in stage.reads))
        weights = {s: w for s, w in self.weights.items() if w.any()}
        budget = None if self.rules.forced else self.rules.budget
        problem = Problem(tuple(self.sizes), self.factors, self.forbidden, weights, budget, self.constant)
        return Model(
            problem,
            tuple(self.grids),
            tuple(places[a] for a in range(len(self.arrays))),
            tuple(reads),
            tuple(combines),
            tuple(sources),
            tuple(copies.values()),
            tuple(outside),
        )

    # --- variables ---------------------------------------------------------------------------------

    def _grids(self, stage: StageSketch) -> Options:
        options = self._any_grids(stage)
        longest: dict[int, int] = {}
        for f in (f for write in stage.writes for f in write.units if f.dim != WHOLE):
            longest[f.dim] = max(longest.get(f.dim, 1), f.length)
        return between_units(options, stage.domain, longest) if longest else options

    def _any_grids(self, stage: StageSketch) -> Options:
        kept = {w.labels[axis] for w in stage.writes for axis in self.arrays[w.array].uncut} | {*stage.late}
        cuttable = tuple(d for d in stage.cuttable if d not in kept) if kept else stage.cuttable
        workers = self.profile.workers
        if stage.by_hand:
            (write,) = stage.writes
            format = "csr" if self.arrays[write.array].uncut else "dense"
            return interned((force.exact_tiling(stage.domain, format, workers, stage.by_hand),), workers)
        if self.rules.forced:
            copies = stage.replicable
            return force.nearest(stage.domain, cuttable, workers, self.rules.forced, copies)
        if stage.only:
            return force.nearest(stage.domain, cuttable, workers, stage.only, False)
        cuttable = tuple(d for d in cuttable if d not in stage.dear) or cuttable
        made = sum(self.arrays[w.array].nbytes for w in stage.writes)
        fits = 2 * self._held(stage) <= self.profile.memory_bytes
        copies = stage.replicable and fits and made <= self.rules.budget
        options = candidates(stage.domain, cuttable, workers, single=fits, copies=copies)
        worth = 1 << (self.profile.worth(stage.flops, stage.touched_bytes).bit_length() - 1)
        if 1 < worth < workers:
            options = fewer(options, stage.domain, cuttable, (worth,))
            for access in (*stage.reads, *stage.writes):
                self.few.setdefault(access.array, {})[worth] = None
        if kept and stage.turns is not None:
            # Where partial states are combined anyway, the result's own tiling is chosen freely.
            more = candidates(stage.domain, stage.cuttable, workers, single=False, copies=False).tilings
            deep = (g for g in more if g.parts[stage.turns] > 1)
            options = interned(tuple(dict.fromkeys([*options.tilings, *deep])), workers)
        if self.cuts:
            options = uneven(options, stage.domain, cuttable, self.cuts)
        return options if stage.turns is None else within(stage, self.arrays, options, self.profile)

    def _held(self, stage: StageSketch) -> int:
        """Bytes of the arrays that a stage reads and writes, all of them."""
        numbers = dict.fromkeys([a.array for a in stage.reads] + [a.array for a in stage.writes])
        return sum(self.arrays[a].nbytes for a in numbers)

    def _candidates(self, number: int) -> Options:
        array = self.arrays[number]
        cuttable = tuple(a for a in range(len(array.shape)) if a not in array.uncut)
        workers = self.profile.workers
        if self.rules.forced:
            return force.nearest(array.shape, cuttable, workers, self.rules.forced, True)
        single = 4 * array.nbytes <= self.profile.memory_bytes
        copies = array.nbytes <= self.rules.budget
        options = candidates(array.shape, cuttable, workers, single=single, copies=copies)
        if number in self.few:
            options = fewer(options, array.shape, cuttable, self.few[number])
        return uneven(options, array.shape, cuttable, self.cuts) if self.cuts else options

    def _source(self, number: int) -> TilingPlace:
        """An array that no stage writes."""
        array = self.arrays[number]
        if array.pinned is not None:
            return TilingPlace(PINNED, interned((canonical(array.pinned),), self.profile.workers))
        place = self._variable(array, self._candidates(number))
        if array.driver:
            copies = [self.profile.workers if c else 1 for c in place.options.copied]
            self._add_unary(place.variable, [self.rates.move_ns(n * array.nbytes) for n in copies])
        return place

    def _own_copy(self, a: int, place: TilingPlace) -> OwnCopy:
        """A copy of array `a`, which lies at `place`, for some of its readers; it may be the array itself."""
        array, here = self.arrays[a], place.options.tilings
        tilings = (*here, *map(canonical, array.kept), *self._candidates(a).tilings)
        options = interned(tuple(dict.fromkeys(tilings)), self.profile.workers)
        v = len(self.sizes)
        self.sizes.append(len(options))
        axes = tuple(range(len(array.shape)))
        moved = pulled_bytes(array.shape, options, array.shape, place.options, axes, (), True, array.nbytes)
        there = [t in array.kept for t in options.tilings]
        made = np.array(
            [[not k and t != h for h in here] for t, k in zip(options.tilings, there, strict=True)]
        )
        moved = moved * made
        # A nanosecond, so that none is made in vain. A copy that later programs may read is preferred to
        # reading the same bytes from afar: its message is free, and that nanosecond is saved.
        extra = made.astype(self.kind)
        if array.outlives and not self._is_result(a):
            extra = extra - (moved > 0) * (self.rates.message_ns + 2)
        self._add(v, place.variable, moved, extra)
        taken = [array.nbytes if t.duplicate else -(-array.nbytes // t.ntiles) for t in options.tilings]
        weight = made * np.array(taken, self.kind)[:, None]
        if place.variable == PINNED:
            self.weights[v,] = weight[:, 0]
        else:
            self.weights[place.variable, v] = weight.T
        return OwnCopy(a, TilingPlace(v, options), Move(v, place.variable, moved))

    # --- factors -----------------------------------------------------------------------------------

    def _write(
        self, s: int, stage: StageSketch, write: TaskAccess, places: dict[int, TilingPlace]
    ) -> Move | None:
        """Place a result; what its combining moves, or None where no grid reduces it."""
        array, grids = self.arrays[write.array], self.grids[s]
        assert array.pinned is None, "a result is on the workers only after its stage has run"
        reduced = tuple(d for d in range(len(stage.domain)) if d not in write.labels)
        cuts = are_cut(grids, reduced)
        if not any(cuts):
            places[write.array] = TilingPlace(s, projected(grids, write.labels))
            self._weigh(s, grids, array)
            return None
        options = placed_results(grids, write.labels, reduced, self._candidates(write.array))
        places[write.array] = place = self._variable(array, options)
        moved = self._combined(stage, write, grids, options, reduced)
        cutting = np.array(cuts)[:, None]
        stays = lie_where_made(grids, write.labels, options)
        moved = moved * cutting
        # Where a grid reduces nothing, the result lies where its tasks ran, and nowhere else.
        elsewhere = (~(cutting | stays)).astype(self.kind)
        self._add(s, place.variable, moved, elsewhere * self.forbidden)
        return Move(s, place.variable, moved)

    def _combined(
        self,
        stage: StageSketch,
        write: TaskAccess,
        grids: Options,
        options: Options,
        reduced: tuple[int, ...],
    ) -> Table:
        if stage.update_bytes is None:
            array = self.arrays[write.array]
            state = array.nbytes if write.state_bytes is None else write.state_bytes
            ordered = (stage.domain, write.units) if write.units else None
            return combine_bytes(array.shape, grids, options, write.labels, reduced, state, ordered)
        # No peer sends an update to itself: of so many ranks one is at home.
        rows = [
            [
                stage.update_bytes * (self.profile.workers - 1)
                if copied
                else stage.update_bytes * (ranks - 1) // ranks
                for copied in options.copied
            ]
            for ranks in grids.ranks
        ]
        return np.array(rows, self.kind)

    def _read(
        self, s: int, stage: StageSketch, read: TaskAccess, place: TilingPlace, places: dict[int, TilingPlace]
    ) -> Move | BehindSums:
        array, (write, *_) = self.arrays[read.array], stage.writes
        if read.behind and places[write.array].variable != s:
            return self._late_read(s, stage, read, place, places[write.array])
        grids, options = self.grids[s], place.options
        framing = array.row_bytes * array.shape[0] if array.row_bytes else 0
        stored = array.nbytes - framing - array.piece_bytes
        moved = pulled_bytes(
            stage.domain,
            grids,
            array.shape,
            options,
            read.labels,
            read.spans,
            read.exact,
            stored * read.part[0] // read.part[1],
            read.placed,
            read.asked,
            read.run,
            read.within,
        )
        if framing and not read.asked:
            moved = moved + pulled_bytes(
                stage.domain,
                grids,
                array.shape,
                options,
                (read.labels[0], WHOLE),
                (read.spans[0] if read.spans else (0, 1, array.shape[0]), (0, 1, 1)),
                read.exact,
                array.row_bytes * array.size,
                placed=(read.placed[0], (0, 1)) if read.placed else (),
                run=read.run,
                within=read.within,
            )
        if array.piece_bytes:
            rows, span = array.shape[0], read.spans[0] if read.spans else (0, 1, array.shape[0])
            where = (read.labels[0], span, read.exact, read.placed[:1], read.run)
            moved = moved + array.piece_bytes * pulled_pieces(stage.domain, grids, rows, options, *where)
        self._add(s, place.variable, moved, None)
        return Move(s, place.variable, moved)

    def _merge(self, s: int, stage: StageSketch) -> tuple[Move, ...]:
        """What a distributed sort moves between its sorted parts."""
        if stage.sorts is None:
            return ()
        ranks = self.grids[s].ranks
        moved = np.array([[merge_bytes(stage.domain[0], *stage.sorts, r)] for r in ranks], self.kind)
        self._add(s, PINNED, moved, None)
        return (Move(s, PINNED, moved),)

    def _late_read(
        self, s: int, stage: StageSketch, read: TaskAccess, place: TilingPlace, result: TilingPlace
    ) -> BehindSums:
        """A read of the tasks that make the result, wherever these are."""
        grids, array, write = self.grids[s], self.arrays[read.array], stage.writes[0]
        rest = (place.options, read.spans, read.exact, array.nbytes)
        at_once = _moved(stage.domain, grids, array.shape, read.labels, rest)
        axes = tuple(write.labels.index(d) if d != WHOLE else WHOLE for d in read.labels)
        shape = self.arrays[write.array].shape
        late = _moved(shape, result.options, array.shape, axes, rest)
        reduced = tuple(d for d in range(len(stage.domain)) if d not in write.labels)
        cutting = np.array(are_cut(grids, reduced))[:, None, None]
        table = np.where(cutting, late[None], at_once[:, None, :])
        self._add_wide((s, result.variable, place.variable), table)
        return BehindSums((s, result.variable, place.variable), table)

    def _compute(self, s: int, stage: StageSketch) -> None:
        if self.cuts:
            self._compute_unevenly(s, stage)
            return
        ranks, touched = self.grids[s].ranks, stage.touched_bytes
        fewest, most = self.grids[s].range
        if fewest == most:
            self.constant += self.rates.compute_ns(stage.flops, touched, ranks[0])
            return
        cost = {r: self.rates.compute_ns(stage.flops, touched, r) for r in set(ranks)}
        self._add_unary(s, [cost[r] for r in ranks])

    def _read_outside(self, s: int, stage: StageSketch) -> tuple[int, ...]:
        """Charge the reading of what lies outside; for each grid the bytes that all workers read, of which
        several may need the same."""
        grids = self.grids[s].tilings
        if all(self.arrays[r.array].chunks is None for r in stage.reads):
            return (0,) * len(grids)
        times = [1 if stage.scanned is None or g.parts[stage.scanned] == 1 else 2 for g in grids]
        needed = [n * outside_bytes(stage, self.arrays, g) for n, g in zip(times, grids, strict=True)]
        self._add_unary(s, [self.rates.outside_ns(n) for n in needed])
        readers = [self.profile.workers if g.duplicate else g.ntiles for g in grids]
        return tuple(n * k for n, k in zip(needed, readers, strict=True))

    def _is_result(self, a: int) -> bool:
        return any(w.array == a for stage in self.stages for w in stage.writes)

    def _outlive(self, array: ArraySketch, place: TilingPlace) -> None:
        """A later program most likely cuts an array along its longest axis. Where it does not lie so, that
        program's cost of moving it is charged in part."""
        idle = self.rules.forced or self.rules.rates is not None
        if not array.outlives or place.variable == PINNED or idle or not array.shape:
            return
        longest = max(range(len(array.shape)), key=lambda axis: (array.shape[axis], -axis))
        moved = array.nbytes * (self.profile.workers - 1) // self.profile.workers
        charge = max(0, self.profile.move_ns(moved) - self.profile.message_ns) // LATER
        tilings = place.options.tilings
        self._add_unary(
            place.variable,
            [0 if t.duplicate or 1 < t.ntiles == t.parts[longest] else charge for t in tilings],
        )

    def _compute_unevenly(self, s: int, stage: StageSketch) -> None:
        """Where parts or workers are not equal, a stage takes as long as its slowest worker."""
        grids, touched = self.grids[s], stage.touched_bytes
        loads = {}
        brought = sum(stage.touched[a] for a in {read.array for read in stage.reads})
        for read in stage.reads:
            array = self.arrays[read.array]
            if array.load is None or read.labels[0] < 0 or read.spans:
                continue
            if stage.domain[read.labels[0]] == array.shape[0]:  # a slice or a reshape has other rows
                part = stage.touched[read.array] / max(brought, 1)
                loads[read.array] = (read.labels[0], array.load, part)
        lo, hi = bounds(grids, stage.domain, False)
        share = shares(lo, hi, grids.active, stage.domain, list(loads.values()), self.profile.weights)
        task = self.rates.task_ns
        alone = self.rates.compute_ns(stage.flops, touched, 1) - task
        slowest = [alone * round(1_000_000 * x) // 1_000_000 for x in share.tolist()]
        self._add_unary(s, [c + task * r for c, r in zip(slowest, grids.ranks, strict=True)])

    def _most_ns(self) -> int:
        """More than any choice costs above the constant."""
        compute, moved, messages, workers = 0, 0, 0, self.profile.workers
        weights = self.profile.weights or (1,)
        slowest = -(-sum(weights) // (len(weights) * min(weights)))
        for stage, grids in zip(self.stages, self.grids, strict=True):
            fewest, most = grids.range
            if fewest < most or self.cuts:
                compute += slowest * self.rates.compute_ns(stage.flops, stage.touched_bytes, fewest)
            compute += workers * self.rates.task_ns
            messages += len(stage.reads) + len(stage.writes)
            for access in stage.reads:
                moved += workers * self.arrays[access.array].nbytes
                if self.arrays[access.array].chunks is not None:
                    times = 1 if stage.scanned is None else 2
                    compute += self.rates.outside_ns(times * self.arrays[access.array].nbytes)
            for access in stage.writes:
                if len(access.labels) < len(stage.domain) or WHOLE in access.labels:
                    state = max(access.state_bytes or 0, self.arrays[access.array].nbytes)
                    states = max(workers, prod(count(f.size, f.length) for f in access.units))
                    moved += workers * max(states * state, stage.update_bytes or 0)
        moved += workers * sum(a.nbytes for a in self.arrays if a.driver)
        moved += workers * sum(self.arrays[a].nbytes for a, _ in self.own)
        moved += sum(a.nbytes for a in self.arrays if a.outlives)
        messages += len(self.own)
        return compute + self.rates.move_ns(moved) + self.rates.message_ns * messages


def _moved(
    domain: tuple[int, ...],
    grids: Options,
    shape: tuple[int, ...],
    labels: tuple[int, ...],
    rest: tuple[Options, tuple[Span, ...], bool, int],
) -> Table:
    """Bytes that tasks over `domain` pull of an array, for each of its tilings."""
    tilings, spans, exact, nbytes = rest
    return pulled_bytes(domain, grids, shape, tilings, labels, spans, exact, nbytes)
