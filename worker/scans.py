"""Cumulative aggregates of a tile: totals of the part, then local values behind the parts before it.

Distributed cumulative aggregates (BTW '19), section 3: the forward cascade reduces each part to one row of
aggregates, the backward cascade puts the rows before a part in front of its own values. Inside a tile
the same scheme runs over threads.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.kernels.reducers import fold_axes
from spartan_ng.kernels.user import guarded
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import SCANS
from spartan_ng.plan.plan import ScanTile
from spartan_ng.worker.program import Task

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run

_CHUNKS = 8
"""Chunks that a large tile is scanned in, whatever the number of threads: the answer's last bits depend
on them."""
_LARGE = 1 << 17
_BLOCK = 1 << 15
"""Elements that are accumulated and offset in one go, so that both passes stay in the cache."""


def run_scan(ex: Executor, run: Run, stage: ScanTile, task: Task) -> None:
    """The tile's totals go to the peers behind it, theirs come in, then the tile is scanned."""
    if task.box is None:
        return
    x = ex.load(run, task.operands[0])
    slot = run.plan.slots[stage.slot]
    functions = Functions(stage.fn, stage.axis, slot.dtype)
    before = None
    if stage.totals is not None:
        ex.put(run, stage.totals, functions.total(x))
        rows = ex.gather(run, task.later[0])
        if rows.shape[stage.axis]:
            before = functions.total(rows)
    out = ex.store.allocate(x.shape, slot.dtype)
    _scan(ex, run, functions, x, out, before)
    ex.put(run, stage.slot, out)


class Functions:
    """f_agg, f_cumagg and f_off of a scan along one axis."""

    def __init__(self, fn: str | UserFunction, axis: int, dtype: np.dtype[Any]) -> None:
        self.axis = axis
        self.dtype = dtype
        self._row = SCANS[fn] if isinstance(fn, str) else None
        self._user = guarded(fn, "scan") if isinstance(fn, UserFunction) else None

    def total(self, x: Any) -> Any:
        """f_agg: one row of aggregates, the axis kept with length 1."""
        if self._row is not None:
            return self._row.aggregate(x, self.axis, self.dtype)
        assert self._user is not None, "a scan is a row or a user's function"
        return np.expand_dims(fold_axes(self._user, x, (self.axis,)), self.axis).astype(
            self.dtype, copy=False
        )

    def offset(self, total: Any, block: Any) -> None:
        """f_off, in place: what comes before, in front of a block's own values."""
        if self._row is not None:
            self._row.offset(total, block)
            return
        assert self._user is not None, "a scan is a row or a user's function"
        block[...] = self._user(np.broadcast_to(total, block.shape), block)

    def cumulate(self, x: Any, into: Any) -> None:
        """f_cumagg of a block: by the ufunc, or by doubling distances with a user's function."""
        if self._row is not None:
            self._row.cumulate(x, self.axis, into)
            return
        assert self._user is not None, "a scan is a row or a user's function"
        out = np.moveaxis(np.array(x, self.dtype), self.axis, 0)
        distance = 1
        while distance < out.shape[0]:
            out = np.concatenate([out[:distance], self._user(out[:-distance], out[distance:])])
            distance *= 2
        into[...] = np.moveaxis(out, 0, self.axis)


def _scan(ex: Executor, run: Run, functions: Functions, x: Any, out: Any, before: Any) -> None:
    """Scan a tile into `out`: totals of its chunks first, then each chunk behind them."""
    axis, n = functions.axis, x.shape[functions.axis]
    count = min(_CHUNKS, n) if x.size >= _LARGE else 1
    bounds = [(i * n // count, (i + 1) * n // count) for i in range(count)]
    line = max(1, prod(x.shape) // max(n, 1))
    step = max(1, _BLOCK // line)

    def part(array: Any, lo: int, hi: int) -> Any:
        return array[(slice(None),) * axis + (slice(lo, hi),)]

    totals = []
    if count > 1:
        totals = ex.parallel(run, bounds[:-1], lambda: lambda b: functions.total(part(x, *b)), False)
    offsets = [before]
    for total in totals:
        if offsets[-1] is not None:
            functions.offset(offsets[-1], total)
        offsets.append(total)

    def scan_chunk(item: tuple[tuple[int, int], Any]) -> None:
        (lo, hi), carry = item
        for a in range(lo, hi, step):
            b = min(a + step, hi)
            block = part(out, a, b)
            functions.cumulate(part(x, a, b), block)
            if carry is not None:
                functions.offset(carry, block)
            carry = part(out, b - 1, b)

    ex.parallel(run, list(zip(bounds, offsets, strict=True)), lambda: scan_chunk, count == 1)
