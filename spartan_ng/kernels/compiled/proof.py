"""The proof that a compiled stage must give before it is trusted: a block of real data in both tiers.

A generated loop may be wrong, and so may the strides, tables and places that it is called with. So the last
block of the tile, the one with cut edges, is interpreted as well, and all bits are compared: of plain results
with a margin around the block, filled with a pattern that must stay, since a store that goes astray lands
there first. The compiled side writes into tiles of its own.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.kernels.blocks import Cut, Sweep, is_one_block, walks
from spartan_ng.kernels.body import Body, Runner
from spartan_ng.kernels.compiled.formulas import FORMULAS
from spartan_ng.kernels.compiled.prepared import Compiled, extents_of
from spartan_ng.kernels.compiled.runner import CompiledRunner
from spartan_ng.kernels.compiled.trial import (
    MARGIN,
    PATTERN,
    Guards,
    first_flaw,
    largest,
    most_elements,
    unequal,
)
from spartan_ng.kernels.compiled.whole import WholeRunner, first_value
from spartan_ng.kernels.counting import CountGiven
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.reducers import block_states, reducer_of, sums_on_the_way
from spartan_ng.kernels.rows import labelled_box
from spartan_ng.ops.by_ufunc import State
from spartan_ng.plan.rows import Row, Write
from spartan_ng.plan.stages import Fused

_ORDERLESS = frozenset({"minimum", "maximum", "fmin", "fmax", "argmin", "argmax"})
"""Folds of floats that give the same in any order."""


def flaw(body: Compiled, cut: Cut, operands: list[Any]) -> str:
    """What a compiled stage makes otherwise than the interpreter of the same block; empty if nothing."""
    if body.stage.calls_users:
        return ""  # a user's function may say another thing whenever it is called
    block = _proving_block(body, cut)
    wanted = _Interpreted(body.stage, operands, body.tile, block)
    trial = _Trial(body, operands, block, wanted)
    scale = None if is_exact(body.stage) else wanted.scale
    for k, write in enumerate(body.stage.writes):
        said = trial.difference(k, write, scale)
        if said:
            return f"result {k} of the block {block}: {said}"
    return ""


def is_exact(stage: Fused) -> bool:
    """Whether the interpreter and loops agree to the last bit: not where loops have functions of their own
    (`vectors`), or add floats in another order than NumPy and BLAS do."""
    return not any(rounds(row) for row in stage.every_row)


def rounds(row: Row) -> bool:
    """Whether loops may round a row's value otherwise."""
    if row.kind == "map":
        formula = FORMULAS.get(str(row.fn))
        return formula is not None and "d" in formula.kinds
    adds = row.kind == "contract" or (row.kind == "fold" and row.fn not in _ORDERLESS)
    return adds and row.dtype.kind in "fc"


def _proving_block(body: Compiled, cut: Cut) -> Box:
    """The end of the last block, as much of it as a proof may take; of the first, where others are walked to.

    What no block cuts stays whole: loops may walk such an axis and its neighbour as one.
    """
    runs = cut.runs if isinstance(cut, Sweep) else cut[-1].runs
    block = list(runs[0][0] if walks(body.stage) else runs[-1][-1])
    cuttable = [d for d, n in enumerate(body.sizes) if not is_one_block(body.tile[d], n)]
    multiplies = any(row.kind == "contract" for row in body.stage.rows)
    most = most_elements(prod(box_shape(body.tile)), multiplies)
    for d in sorted(cuttable, key=lambda d: block[d][0] - block[d][1]):
        lo, hi = block[d]
        size = prod(b - a for a, b in block)
        if size > most and d not in body.stage.whole:
            block[d] = hi - max(1, most * (hi - lo) // size), hi
    return tuple(block)


class _Interpreted:
    """What the interpreter makes of a block."""

    def __init__(self, stage: Fused, operands: list[Any], tile: Box, block: Box) -> None:
        runner = Runner(Body(stage), operands, tile, box_shape(block))
        self.registers = runner.run(block)
        reducers = (reducer_of(stage, w) for w in stage.writes)
        self.reducers = [CountGiven(r) if r is not None and r.row.kind == "bincount" else r for r in reducers]
        self.states: list[State | None] = [None] * len(self.reducers)
        sums = sums_on_the_way(stage)
        block_states(self.reducers, sums, self.registers.__getitem__, block, self.states)

    @property
    def scale(self) -> float:
        """The largest number on the way."""
        every = [*self.registers, *(x for state in self.states if state is not None for x in state)]
        return largest(every)


class _Trial:
    """The compiled side: the block's results in tiles of their own, placed as in a run."""

    def __init__(self, body: Compiled, operands: list[Any], block: Box, wanted: _Interpreted) -> None:
        self.body, self.block, self.wanted = body, block, wanted
        self.values = [*operands, *body.stage.rows]
        self.guards = Guards()
        self.bytes: list[Any] = []
        """For each plain result the bytes of its tile, with those of an element along the last axis."""
        for write in body.stage.writes:
            if write.reducer is not None:
                self.bytes.append(None)
                continue
            value = self.values[write.register]
            shape = (*box_shape(self._box(write, body.tile)), value.dtype.itemsize)
            own = self.guards.empty(shape, np.uint8)
            own[self._place(write, MARGIN)] = PATTERN
            self.bytes.append(own)
        self.tiles: list[Any] = [
            None if own is None else own.view(self.values[w.register].dtype)[..., 0]
            for own, w in zip(self.bytes, body.stage.writes, strict=True)
        ]
        self.states = self._whole(operands) if body.is_whole else self._stepwise(operands)

    def _stepwise(self, operands: list[Any]) -> list[State | None]:
        targets = [
            None if tile is None else tile[(*self._place(w), ...)]
            for tile, w in zip(self.tiles, self.body.stage.writes, strict=True)
        ]
        return CompiledRunner(self.body, operands, self.wanted.reducers).run(self.block, targets)

    def _whole(self, operands: list[Any]) -> list[State | None]:
        """States of the tile's size lie beside the tiles, the others are made by the run."""
        outs = [
            self._state(k) if tile is None and self.body.shared else tile for k, tile in enumerate(self.tiles)
        ]
        states = WholeRunner(self.body, operands, outs).run((self.block,))
        pairs = zip(states, outs, self.tiles, strict=True)
        return [(out,) if tile is None and out is not None else state for state, out, tile in pairs]

    def _state(self, k: int) -> Any:
        """The state of no blocks: of the tile's size, and touched only around the block."""
        e = self.body.ending(-1 - k)
        state = self.guards.empty(extents_of(e.shape, self.body.tile), e.dtype)
        state[self._place(self.body.stage.writes[k], MARGIN)] = first_value(e)
        return state

    def difference(self, k: int, write: Write, scale: float | None) -> str:
        """What is wrong with result `k`."""
        return self._of_values(k, write, scale) if write.reducer is None else self._of_states(k, write, scale)

    def _of_values(self, k: int, write: Write, scale: float | None) -> str:
        tile, own = self.tiles[k], self.bytes[k]
        place = self._place(write)
        said = unequal(tile[(*place, ...)], dense(self.wanted.registers[write.register]), scale)
        own[place] = PATTERN
        if not (self.guards.intact and (own[self._place(write, MARGIN)] == PATTERN).all()):
            return "elements beside the block's are written to"
        return said

    def _of_states(self, k: int, write: Write, scale: float | None) -> str:
        states, wanted = self.states[k], self.wanted.states[k]
        assert states is not None, "a reduced result has a state"
        assert wanted is not None, "so has the interpreter's"
        if self.body.shared:
            (state,) = states
            first, place = first_value(self.body.ending(-1 - k)), self._place(write)
            states = (state[(*place, ...)].copy(),)
            state[place] = first
            around = state[self._place(write, MARGIN)]
            if not self.guards.intact or unequal(around, np.full_like(around, first), None):
                return "states beside the block's are written to"
        return first_flaw(zip(states, wanted, strict=True), scale)

    def _box(self, write: Write, block: Box) -> Box:
        """The box of a result that a block of the domain makes."""
        shape = self.values[write.register].shape if write.reducer is None else write.reducer.shape
        if write.reducer is None and write.register < self.body.first:
            shape = self.body.stage.reads[write.register].shape
        return labelled_box(write.labels, shape, block)

    def _place(self, write: Write, margin: int = 0) -> tuple[slice, ...]:
        """The block's part of a result's tile, with so many elements around it."""
        every = zip(self._box(write, self.block), self._box(write, self.body.tile), strict=True)
        return tuple(slice(max(a - lo - margin, 0), min(b + margin, hi) - lo) for (a, b), (lo, hi) in every)
