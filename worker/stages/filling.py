"""What fills a run with its range of the line that is sorted: read, or made by rows, where it is wanted.

Rows go block by block, as in any pass. What sources give is read for each block, into memory that the next
one uses again, so that nothing of the line is stored before it is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.kernels.body import Runner
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.rows import labelled_shape
from spartan_ng.kernels.sequences import cut_at_multiples
from spartan_ng.memory import band_bytes
from spartan_ng.plan.rows import Read
from spartan_ng.plan.stages import SortParts
from spartan_ng.sources import Unread
from spartan_ng.worker.memory.regions import PiecedOperand
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.windows import read_all

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

Fill = Callable[[Any, int, int], None]
"""Fills an array with the range from `lo` to `hi` of a task's part of the line."""


def filling(ex: Executor, run: Run, stage: SortParts, task: Task) -> Callable[[], Fill]:
    """What makes for each thread what fills its runs."""
    found = ex.unread_all(run, task.operands)
    first, *others = found
    if not (others or stage.rows or task.operands[0].is_turned):
        if isinstance(first, Unread):
            return lambda: lambda part, lo, hi: first.part(0, lo, hi).into(part)
        return lambda: lambda part, lo, hi: np.copyto(part, dense(first)[lo:hi])
    follows = [any(axis.label == 0 for axis in read.axes) for read in stage.reads]
    whole = read_all(ex, task.operands, [None if f else v for f, v in zip(follows, found, strict=True)])
    operands = [v if f else w for f, v, w in zip(follows, found, whole, strict=True)]
    return lambda: _Rows(ex, run, stage, task, operands).fill


class _Rows:
    """One thread's rows, over ranges of the line."""

    def __init__(self, ex: Executor, run: Run, stage: SortParts, task: Task, operands: Sequence[Any]) -> None:
        assert task.box is not None, "a task that has something to sort"
        assert task.body is not None, "prepared with the program"
        self._ex, self._run, self._body, self._line = ex, run, task.body, task.body.stage
        ((self._first, _),) = self._box = task.box
        every = enumerate(zip(stage.reads, task.operands, operands, strict=True))
        unread = {i: _Slabs(read, o, v, task.box) for i, (read, o, v) in every if isinstance(v, Unread)}
        (self._step,) = task.sizes
        if unread:
            fitting = band_bytes() // sum(slabs.line_bytes for slabs in unread.values())
            chunk = max(slabs.chunk for slabs in unread.values())
            fitting = fitting // chunk * chunk or max(fitting, 1)
            self._step = min(self._step, fitting)
        shown = [unread[i].stand_in if i in unread else dense(value) for i, value in enumerate(operands)]
        self._runner = _LineRunner(task.body, shown, task.box, (self._step,))
        self._runner.unread = unread

    def fill(self, part: Any, lo: int, hi: int) -> None:
        """Fill an array with a range."""
        (write,), rows, first = self._line.writes, self._line.rows, self._first + lo
        for a, b in cut_at_multiples(first, self._first + hi, self._step):
            self._ex.check(self._run)
            block, place = ((a, b),), part[a - first : b - first]
            if rows:
                place = place.reshape(labelled_shape(rows[-1].labels, rows[-1].shape, block))
            value = self._runner.run(block, {write.register: place})[write.register]
            if value is not place:
                np.copyto(place, dense(value), casting="unsafe")


class _LineRunner(Runner):
    """A runner that reads what sources give for each block."""

    unread: dict[int, _Slabs]

    def load(self, block: Box) -> None:
        """Set the registers of the reads, with what is read."""
        super().load(block)
        for register, slabs in self.unread.items():
            self.registers[register] = slabs.read(block)


class _Slabs:
    """An operand that is read a block at a time, into one place for all."""

    def __init__(self, read: Read, operand: PiecedOperand, unread: Unread, box: Box) -> None:
        self._operand, self._unread = operand, unread
        ((self._first, _),) = box
        self._axis = next(i for i, axis in enumerate(read.axes) if axis.label == 0)
        self._down = read.axes[self._axis].step < 0
        self._size = unread.shape[self._axis]
        self.line_bytes = max(prod(unread.shape) // max(self._size, 1) * unread.dtype.itemsize, 1)
        self.chunk = max(unread.source.chunks[self._axis] // abs(read.axes[self._axis].step), 1)
        self.stand_in = operand.present(np.broadcast_to(np.empty((), unread.dtype), unread.shape))
        """An array of the operand's shape without its memory."""
        self._place: Any = np.empty(0, unread.dtype)

    def read(self, block: Box) -> Any:
        """The block's part."""
        ((lo, hi),) = block
        lo, hi = lo - self._first, hi - self._first
        if self._down:
            lo, hi = self._size - hi, self._size - lo
        part = self._unread.part(self._axis, lo, hi)
        if self._place.size < prod(part.shape):
            self._place = np.empty(prod(part.shape), self._place.dtype)
        place = self._place[: prod(part.shape)].reshape(part.shape)
        part.into(place)
        return self._operand.present(place)
