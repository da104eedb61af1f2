"""Run a stage that is all loops: one call for a run of blocks, with no Python between them.

The table of a run has one line a block. What it says of sizes, strides and offsets is worked out once and
kept; each run of the plan adds the addresses of its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.arrays.copying import address
from spartan_ng.kernels.compiled.folds import PRODUCT, start
from spartan_ng.kernels.compiled.prepared import Blocks, Compiled, extents_of
from spartan_ng.kernels.compiled.segments import Ending
from spartan_ng.ops.by_ufunc import State
from spartan_ng.ops.line_states import Allocate


class WholeRunner:
    """One thread's buffers for a stage that is all loops; `outs` are the tiles of its results, or the
    states of the tile that all runs share (None: each run gives a state of its own)."""

    def __init__(self, body: Compiled, operands: list[Any], outs: list[Any]) -> None:
        self.body = body
        self._scratch = body.allocate()
        self._bases = {i: address(o) for i, o in enumerate(operands)}
        self._bases |= {r: address(self._scratch[b]) for r, b in body.buffers.numbers.items()}
        self._bases |= {-1 - k: address(o) for k, o in enumerate(outs) if o is not None}
        self._own = [r for r in body.reduced if outs[-1 - r] is None]
        self._operands = (operands, outs)  # kept alive: the kernel sees only addresses

    def run(self, blocks: Blocks) -> list[State | None]:
        """Run all blocks; for each result that has no place the state of them."""
        body = self.body
        table, at = body.run_table(blocks), body.addresses
        states: list[State | None] = [None] * len(body.stage.writes)
        bases = dict(self._bases) if self._own else self._bases
        for register in self._own:
            state = first_state(body, register, body.tile if body.shared else blocks[0])
            bases[register] = address(state)
            states[-1 - register] = (state,)
        addresses = np.zeros(table.shape[1], np.int64)
        addresses[at.columns] = [bases[r] for r in at.registers]
        (kernel,) = body.kernels
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(table + addresses)
        return states


def first_state(
    body: Compiled, register: int, box: Box, allocate: Allocate = np.empty
) -> np.ndarray[Any, Any]:
    """The state of no blocks, for a result over `box`."""
    e = body.ending(register)
    state: np.ndarray[Any, Any] = allocate(extents_of(e.shape, box), e.dtype)
    state[...] = first_value(e)
    return state


def first_value(e: Ending) -> Any:
    """What each element of such a state is."""
    return start(e.fold, e.dtype, masked=len(e.args) > 1 and e.fold != PRODUCT)
