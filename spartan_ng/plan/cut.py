"""Cut drafts by the grids that were chosen for them: from here on there are slots and stages.

Partial states: where a grid cuts a dimension that a stage reduces over, the stage writes states with one
leading axis for each such dimension, lying where they were computed, and a `Combine` stage pulls
them together. That is the whole of the library's reduction machinery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import Tiling
from spartan_ng.costs.tuned import COUNTED
from spartan_ng.graph.node import Node, Op
from spartan_ng.memory import block_bytes, copied_bytes
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.line_sorts import merge_bytes
from spartan_ng.ops.line_states import LINE_STATES
from spartan_ng.ops.units import Folded, Lead, leading
from spartan_ng.optimizer.fusion.labels import is_line_sort
from spartan_ng.optimizer.tiling.memory import task_parts
from spartan_ng.optimizer.tiling.options import canonical, project
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, Tilings
from spartan_ng.plan.absorb import has_product, is_heavy
from spartan_ng.plan.bands import band_of
from spartan_ng.plan.cascade import Cascade, copied_operand, is_full, moved_bytes
from spartan_ng.plan.draft import Draft, DraftResult, stage_name
from spartan_ng.plan.lines import sorted_length
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.reads import is_own, plain_read, rows_before
from spartan_ng.plan.rows import VALUE, Read, Row, Slot, Write
from spartan_ng.plan.settings import Settings
from spartan_ng.plan.sketches import state_dtypes, stored_format
from spartan_ng.plan.stages import (
    Accumulate,
    Assemble,
    Combine,
    Fused,
    Join,
    MergeParts,
    ScanTile,
    SortParts,
    Stage,
)
from spartan_ng.plan.steps import heavy_steps, turning
from spartan_ng.plan.strategies import side_slots
from spartan_ng.plan.units import folded_operand, folded_units


class Cut:
    """The drafts of one choice on their way to a plan.

    `nodes` are all that is stored, the `leaves` first; `roots` are the numbers of those that are wanted.
    """

    def __init__(
        self,
        settings: Settings,
        nodes: Sequence[Node],
        leaves: int,
        roots: Sequence[int],
        sparse_bytes: Mapping[Node, int],
        sketched: tuple[list[StageSketch], list[ArraySketch]],
    ) -> None:
        self.settings, self.nodes, self.leaves, self.roots = settings, nodes, leaves, roots
        self.sparse_bytes, self.sketched = sparse_bytes, sketched
        self.usual_bytes = block_bytes(settings.profile.memory_bytes)
        """What a block may take of most stages."""
        self.slots: list[Slot] = []
        self.stages: list[Stage] = []
        self.predicted: list[int] = []
        self.inputs = list(range(leaves))
        self.also: list[tuple[int, int]] = []
        self.copies: dict[tuple[int, Tiling], int] = {}
        """The slots of arrays' second copies, by the array's own slot and the copy's tiling."""
        self.originals: dict[int, int] = {}
        """The array's own slot, by that of any second copy."""

    def plan(self, key: str, drafts: Sequence[Draft], tilings: Tilings) -> Plan:
        """The plan of all drafts."""
        # Behind the nodes' arrays come those of scans' aggregates, which are laid out with their stages.
        for node, tiling in zip(self.nodes, tilings.arrays, strict=False):
            ref = node.data
            chunks, mapped = (None, False) if ref is None else (ref.chunks, ref.is_mapped)
            beside = (0, 0) if ref is None else (ref.beside_bytes, ref.whole_bytes)
            form, stored = stored_format(node), None
            if form != "dense":
                stored = self.sparse_bytes.get(node, node.nbytes) if ref is None else ref.nbytes
            self.slots.append(Slot(node.shape, node.dtype, tiling, form, chunks, mapped, stored, *beside))
        for i, draft in enumerate(drafts):
            self._find_copies(draft, i, tilings)
            self._cut(draft, i, tilings)
        # Copies of inputs outlive the plan: a loop's next step reads them again.
        keeps = [s for s, _ in self.copies if s < self.leaves]
        return Plan(
            key,
            tuple(self.slots),
            tuple(self.inputs),
            (*self.roots, *(c for (s, _), c in self.copies.items() if s in keeps)),
            tuple(self.stages),
            self.settings.profile.workers,
            tuple(self.predicted),
            self._ranks(),
            tuple(self.also),
            tuple(keeps),
        )

    def _ranks(self) -> int:
        """How many of the first ranks take part."""
        grids = [g for s in self.stages if isinstance(g := getattr(s, "grid", None), Tiling)]
        tilings = [*(s.tiling for s in self.slots), *grids]
        if any(t.duplicate for t in tilings):
            return self.settings.profile.workers
        return 1 + max((t.highest for t in tilings), default=0)

    # --- second copies -----------------------------------------------------------------------------

    def _find_copies(self, draft: Draft, index: int, tilings: Tilings) -> None:
        """Let the draft read the copies that were chosen for it; one that is not there yet is made."""
        sources = iter(tilings.sources[index])
        for reads in (draft.reads, draft.after.reads if draft.after is not None else []):
            for i, read in enumerate(reads):
                if read.slot == VALUE:
                    continue
                tiling = next(sources)
                if tiling != canonical(self.slots[read.slot].tiling):
                    slot = self._kept(read.slot, tiling)
                    if slot is None:
                        slot = self._copied(read.slot, tiling, tilings)
                    reads[i] = replace(read, slot=slot)

    def _kept(self, slot: int, tiling: Tiling) -> int | None:
        """The input slot of a copy that the workers keep already."""
        ref = self.nodes[slot].data
        kept = [copy.tiling for copy in ref.also] if ref is not None else []
        if tiling not in kept:
            return None
        wanted = (slot, kept.index(tiling))
        if wanted not in self.also:
            self.also.append(wanted)
            self.slots.append(replace(self.slots[slot], tiling=tiling))
            self.inputs.append(len(self.slots) - 1)
            self.originals[len(self.slots) - 1] = slot
        return self.inputs[self.leaves + self.also.index(wanted)]

    def _copied(self, slot: int, tiling: Tiling, tilings: Tilings) -> int:
        """The slot of a copy that this plan makes, before its first reader."""
        if (slot, tiling) not in self.copies:
            array = self.slots[slot]
            self.slots.append(replace(array, tiling=tiling))
            new = self.copies[slot, tiling] = len(self.slots) - 1
            self.originals[new] = slot
            moved = sum(c.moved_bytes for c in tilings.copies if (c.array, c.tiling) == (slot, tiling))
            write = Write((new,), 0, tuple(range(len(array.shape))))
            stage = Fused("copy", array.shape, tiling, (plain_read(slot, array),), (), (write,))
            self._emit(stage, moved)
        return self.copies[slot, tiling]

    # --- stages of drafts --------------------------------------------------------------------------

    def _cut(self, draft: Draft, index: int, tilings: Tilings) -> None:
        """Emit the stages of a draft."""
        grid = tilings.grids[index]
        read_bytes = tilings.read_bytes[index]
        combine_bytes = tilings.combine_bytes[index]
        if any(row.kind == "scan" for row in draft.rows):
            self._scan(draft, grid, read_bytes, combine_bytes)
        elif not draft.separate:
            self._fused(draft, index, grid, read_bytes, combine_bytes)
        elif is_line_sort(draft.node) or draft.node.fn == "places":
            self._sort(draft, grid, read_bytes, sum(combine_bytes))
        elif draft.node.fn == "tile_as":
            write = Write((draft.slot,), 0, draft.out)
            name = f"tile_as {draft.node.params[0]}"
            stage = Fused(name, draft.domain, grid, tuple(draft.reads), (), (write,))
            self._emit(stage, read_bytes)
        elif draft.node.op is Op.RESHAPE or draft.node.fn in ("concatenate", "assign"):
            how = "reshape" if draft.node.op is Op.RESHAPE else str(draft.node.fn)
            name = f"{how}{draft.node.shape}"
            self._emit(Assemble(name, how, draft.node.params, tuple(draft.reads), draft.slot), read_bytes)
        else:
            self._join(draft, grid, read_bytes, sum(combine_bytes))

    def _emit(self, stage: Stage, predicted_bytes: int) -> None:
        self.stages.append(stage)
        self.predicted.append(predicted_bytes)

    def _fused(
        self, draft: Draft, index: int, grid: Tiling, read_bytes: int, combine_bytes: tuple[int, ...]
    ) -> None:
        if self.settings.products == "broadcast" and has_product(draft) and not grid.duplicate:
            draft = self._broadcast(draft)
        writes = tuple(self._write(result, draft, grid) for result in draft.results)
        heavy = is_heavy(draft)
        finish = None if draft.after is None else self._finish(draft.after)
        partial = any(w.partial for w in writes)
        band = band_of(draft, self.slots, grid, self.settings.profile)
        stage = Fused(
            stage_name(draft),
            draft.domain,
            grid,
            tuple(draft.reads),
            tuple(draft.rows),
            writes,
            draft.whole,
            driver=draft.driver,
            heavy=heavy,
            steps=self._steps(draft, grid) if heavy and band is None else (),
            parts=self._parts(draft, index, grid) if band is None else 1,
            turns=turning(draft) or 0,
            # Of partial sums nothing can be finished: that is where they are combined.
            finish=None if partial else finish,
            exact=self.settings.reproducible,
            band=band,
            block_bytes=self._block_bytes(writes),
        )
        self._emit(stage, read_bytes)
        self._combine(draft, grid, writes, combine_bytes, finish)

    def _combine(
        self,
        draft: Draft,
        grid: Tiling,
        writes: Sequence[Write],
        combine_bytes: Sequence[int],
        finish: Fused | None = None,
    ) -> None:
        """Emit the stages that put partial states together."""
        for result, write, moved in zip(draft.results, writes, combine_bytes, strict=True):
            if write.reducer is not None and write.partial:
                row, states, lead = write.reducer, write.slots, len(write.partial)
                cut = leading(write.units, grid, draft.domain)
                spans = tuple(tuple(s for part in parts for s in part) for _, parts in cut)
                stage = Combine("combine", row, states, lead, result.slot, finish, spans)
                self._emit(replace(stage, parts=self._combined_in(stage)), moved)

    def _combined_in(self, stage: Combine) -> int:
        """In how many parts a worker combines states, so that those of a part take a share of its memory."""
        profile, row = self.settings.profile, stage.row
        by_element = row.kind not in LINE_STATES and not isinstance(row.fn, UserFunction)
        if not profile.limited or not by_element:
            return 1
        tiling, shape = self.slots[stage.slot].tiling, self.slots[stage.slot].shape
        longest = max((n // parts for n, parts in zip(shape, tiling.parts, strict=True)), default=1)
        nbytes = sum(self.slots[s].nbytes for s in stage.states) // max(tiling.ntiles, 1)
        return max(1, min(longest, nbytes // max(copied_bytes(profile.memory_bytes), 1) + 1))

    def _broadcast(self, draft: Draft) -> Draft:
        """A product whose side operands are copied to all workers first; its own reads charge for it."""
        sides = [s for s in side_slots(draft, self.slots) if not self.slots[s].tiling.duplicate]
        copies = {slot: self._everywhere(slot) for slot in sides}
        reads = [replace(r, slot=copies.get(r.slot, r.slot)) for r in draft.reads]
        after = draft.after
        if after is not None:
            after = replace(after, reads=[replace(r, slot=copies.get(r.slot, r.slot)) for r in after.reads])
        return replace(draft, reads=reads, after=after)

    def _everywhere(self, slot: int) -> int:
        """The slot of a copy of an array on every worker."""
        array = self.slots[slot]
        ndim = len(array.shape)
        self.slots.append(replace(array, tiling=Tiling.copies(ndim)))
        write = Write((len(self.slots) - 1,), 0, tuple(range(ndim)))
        read = plain_read(slot, array)
        self._emit(Fused("broadcast", array.shape, Tiling.copies(ndim), (read,), (), (write,)), 0)
        return len(self.slots) - 1

    def _parts(self, draft: Draft, index: int, grid: Tiling) -> int:
        """In how many parts the tasks of a stage run, to keep to a worker's memory."""
        stages, arrays = self.sketched
        profile = self.settings.profile
        if stages[index].turns is None or profile.workers == 1:
            return 1
        own, others = set[int](), set[int]()
        for read in (r for r in draft.reads if r.slot != VALUE):
            slot = self.slots[read.slot]
            placed = slot.tiling.duplicate or slot.tiling.ntiles == grid.ntiles
            is_here = placed and is_own(read, slot, grid)
            # A copy counts as its array: sketches, by which parts are counted, know no copies.
            (own if is_here else others).add(self.originals.get(read.slot, read.slot))
        return task_parts(stages[index], arrays, grid, profile, own - others)

    def _value_slot(self, result: DraftResult, row: Row) -> int:
        """A slot that says what a product's value is like; it is not stored."""
        shape = result.node.shape
        self.slots.append(Slot(shape, row.dtype, Tiling.single(len(shape))))
        return len(self.slots) - 1

    def _finish(self, after: Draft) -> Fused:
        """The pass that makes what is stored of a product's value."""
        (result,) = after.results
        write = Write((result.slot,), result.register, result.out)
        single = Tiling.single(len(after.domain))
        reads, rows, exact = tuple(after.reads), tuple(after.rows), self.settings.reproducible
        return Fused(
            stage_name(after),
            after.domain,
            single,
            reads,
            rows,
            (write,),
            exact=exact,
            block_bytes=self._block_bytes(()),
        )

    def _block_bytes(self, writes: Sequence[Write]) -> int:
        """What a block may take of a stage with these results."""
        most = self.usual_bytes
        for write in writes:
            if write.reducer is not None and write.reducer.kind == "bincount":
                counted = COUNTED * write.state_bytes
                most = max(most, block_bytes(self.settings.profile.memory_bytes, counted))
        return most

    def _steps(self, draft: Draft, grid: Tiling) -> tuple[int, ...]:
        profile = self.settings.profile
        return heavy_steps(draft, self.slots, grid, profile.memory_bytes if profile.limited else None)

    def _write(self, result: DraftResult, draft: Draft, grid: Tiling) -> Write:
        """How a result leaves its stage: in partial states where the grid cuts what it reduces."""
        row = result.reducer
        if row is None:
            return Write((result.slot,), result.register, result.out)
        partial = tuple(d for d in range(len(draft.domain)) if d not in result.out and grid.parts[d] > 1)
        units = self._units(row, draft) if self.settings.reproducible else ()
        if not partial:
            slot = result.slot if draft.after is None else self._value_slot(result, row)
            return Write((slot,), -1, result.out, row, units=units)
        lead = leading(units, grid, draft.domain)
        if units:
            assert set(partial) <= {d for d, _ in lead}, "a cut dimension is handed over in subtrees"
            partial = tuple(d for d, _ in lead)
        dtypes = state_dtypes(row, result.node)
        states = tuple(self._state_slot(result, dtype, grid, partial, lead) for dtype in dtypes)
        return Write(states, -1, result.out, row, partial, units)

    def _units(self, row: Row, draft: Draft) -> tuple[Folded, ...]:
        """The units of what a reducer folds."""
        operand, format = folded_operand(draft, row, lambda slot: self.slots[slot].format)
        return folded_units(row, operand, format, draft.uncut)

    def _state_slot(
        self, result: DraftResult, dtype: np.dtype[Any], grid: Tiling, partial: tuple[int, ...], lead: Lead
    ) -> int:
        """A slot for partial states: leading axes for the cut reduced dimensions, then the result's."""
        labels = (*partial, *result.out)
        tiling = project(grid, labels)
        counts = [[len(part) for part in parts] for _, parts in lead]
        counts = counts or [[1] * grid.parts[d] for d in partial]
        # A part that hands over several subtrees has several states: the leading axis is cut between parts.
        splits = tuple(tuple(accumulate(c))[:-1] if max(c) > 1 else () for c in counts)
        behind = tiling.splits[len(partial) :] or ((),) * len(result.out)
        shape = (*map(sum, counts), *result.node.shape)
        self.slots.append(Slot(shape, dtype, canonical(replace(tiling, splits=(*splits, *behind)))))
        return len(self.slots) - 1

    def _join(self, draft: Draft, grid: Tiling, read_bytes: int, combine_bytes: int) -> None:
        node, reads = draft.node, tuple(draft.reads)
        if not isinstance(node.fn, UserFunction):
            how = str(node.fn)
            self._emit(Join(how, how, None, node.params, reads, draft.slot, grid), read_bytes)
            return
        self.slots.append(Slot(grid.parts, node.dtype, grid.evenly(), "updates"))
        updates = len(self.slots) - 1
        name = f"join_update {node.fn}"
        self._emit(Join(name, "user", node.fn, node.params, reads, updates, grid), read_bytes)
        self._emit(Accumulate("accumulate", node.params[1], updates, draft.slot, grid), combine_bytes)

    def _sort(self, draft: Draft, grid: Tiling, read_bytes: int, picked_bytes: int) -> None:
        node, name = draft.node, str(draft.node.params[0])
        a = node.inputs[0]
        self.slots.append(Slot(a.shape, a.dtype, grid))
        values, indices = len(self.slots) - 1, None
        if name == "argsort":
            self.slots.append(Slot(a.shape, node.dtype, grid))
            indices = len(self.slots) - 1
        element = a.dtype.itemsize + (node.dtype.itemsize if indices is not None else 0)
        length, exact = sorted_length(node, grid.parts[0], self.settings), self.settings.reproducible
        spans = node.params[1] if node.fn == "places" else ()
        parts = SortParts(
            f"{name} parts",
            a.shape,
            grid,
            tuple(draft.reads),
            tuple(draft.rows),
            values,
            indices,
            spans,
            length,
            exact,
        )
        merge = MergeParts(f"{name} merge", values, indices, draft.slot, grid, spans, length)
        if spans:
            self._emit(parts, read_bytes)
            self._emit(replace(merge, name="pick places"), picked_bytes)
            return
        # The sketch has charged the sort with both of its halves.
        moved = merge_bytes(a.size, a.dtype.itemsize, element, grid.parts[0])
        self._emit(parts, read_bytes - moved)
        self._emit(merge, moved)

    def _moved(self, read: Read, domain: tuple[int, ...], grid: Tiling) -> int:
        """Bytes that a grid's tasks pull for an operand, an array or a second copy of one."""
        _, arrays = self.sketched
        array = arrays[self.originals.get(read.slot, read.slot)]
        return moved_bytes(read, self.slots[read.slot], domain, grid, array.nbytes)

    def _scan(self, draft: Draft, grid: Tiling, read_bytes: int, combine_bytes: tuple[int, ...]) -> None:
        """The cascades where the axis is cut, then each part's own cumulative aggregate, then what combines
        its folds."""
        reads, rows = tuple(draft.reads), tuple(draft.rows)
        scan = next(row for row in rows if row.kind == "scan")
        (axis,) = scan.params
        totals, offsets, moved = None, None, read_bytes
        writes = tuple(self._write(result, draft, grid) for result in draft.results)
        band = None
        if not any(write.units for write in writes):
            whole = (axis,) if self.settings.reproducible and scan.dtype.kind in "fc" else ()
            band = band_of(draft, self.slots, grid, self.settings.profile, whole)
        if grid.parts[axis] > 1:
            moves = [self._moved(r, draft.domain, grid) for r in reads]
            used, _, _ = rows_before(reads, rows)
            # Both the totals and the scan itself read these whole: what lies elsewhere is brought to the
            # scan's places once, in place of twice.
            brought = [
                m > 0 and r in used and is_full(r, draft.domain) for r, m in zip(reads, moves, strict=True)
            ]
            reads = tuple(
                copied_operand(r, grid, self.slots, self._emit, m) if b else r
                for r, m, b in zip(reads, moves, brought, strict=True)
            )
            moves = [0 if b else m for m, b in zip(moves, brought, strict=True)]
            cascade = Cascade(scan, draft.domain, grid, self.settings.scan_fan)
            before = rows_before(reads, rows)
            extra = sum(m for r, m in zip(reads, moves, strict=True) if r in before[0])
            totals, offsets, moved = cascade.emit(*before, self.slots, self._emit, extra, band)
            moved += sum(moves)
        name, exact = stage_name(draft), self.settings.reproducible
        tile = ScanTile(name, draft.domain, grid, reads, rows, offsets, writes, totals, exact, band)
        self._emit(tile, moved)
        self._combine(draft, grid, writes, combine_bytes[: len(writes)])  # the last is the cascade's
