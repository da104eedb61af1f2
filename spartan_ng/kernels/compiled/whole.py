"""Run a stage that is all loops: one call for a run of blocks, with no Python between them.

The table of a run has one line a block. What it says of sizes, strides and offsets is worked out once and
kept; each run of the plan adds the addresses of its arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.kernels.compiled.folds import PRODUCT, start
from spartan_ng.kernels.compiled.prepared import RESULT, Blocks, Compiled
from spartan_ng.ops.folds import State


class WholeRunner:
    """One thread's buffers for a stage that is all loops; `out` is the result's tile (reduced: None)."""

    def __init__(self, body: Compiled, operands: list[Any], out: Any) -> None:
        self.body = body
        self._scratch = body.allocate()
        self._bases = {i: _address(o) for i, o in enumerate(operands)}
        self._bases |= {r: _address(self._scratch[b]) for r, b in body.buffers.numbers.items()}
        if out is not None:
            self._bases[RESULT] = _address(out)
        self._operands = (operands, out)  # kept alive: the kernel sees only addresses

    def run(self, blocks: Blocks) -> State | None:
        """Run all blocks; a reduced stage gives their state."""
        body = self.body
        table, arrays = body.run_table(blocks)
        state = None
        bases = self._bases
        if body.write.reducer is not None:
            state = _start(body, blocks[0])
            bases = bases | {RESULT: _address(state)}
        filled = table.copy()
        filled[:, [column for column, _ in arrays]] += np.array([bases[r] for _, r in arrays], np.int64)
        (kernel,) = body.kernels
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(filled)
        return None if state is None else (state,)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _start(body: Compiled, block: Box) -> np.ndarray[Any, Any]:
    """The state of no blocks."""
    for loop in body.loops.values():
        for e in loop.segment.endings:
            if e.register < 0:
                shape = tuple(n if d < 0 else block[d][1] - block[d][0] for d, n in e.shape)
                return np.full(shape, start(e.fold, e.dtype, len(e.args) > 1 and e.fold != PRODUCT), e.dtype)
    raise AssertionError("a reduced stage that is all loops ends in a fold")
