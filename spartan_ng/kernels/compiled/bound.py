"""A sampled body with its operands: runs of stored rows for threads, and what becomes of their states.

The rows are cut into runs of about equally many non-zeros, each of them a line of one table. Threads call the
kernel with the whole table; it takes lines from a shared counter, so that nobody waits for the interpreter
between them. The runs, and the order in which their states are added, depend on the body and its driver
alone, never on the number of threads.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays.copying import address
from spartan_ng.costs.choices import NONZERO_ROW_FLOPS, RUN_FLOPS
from spartan_ng.costs.tuned import SMALL_FLOPS, STATES_BYTES
from spartan_ng.kernels.body import slicer
from spartan_ng.kernels.rows import KINDS
from spartan_ng.plan.rows import Row

if TYPE_CHECKING:
    from spartan_ng.kernels.compiled.sampled import Sampled

_RUNS = 32
"""Runs of rows at most; and"""
_TURN_FLOPS = 1 << 27
"""Operations that a call does at most before its thread looks whether to stop: some ten milliseconds."""
_PATIENCE = 1 << 14
"""How often a call looks whether the others are done before it leaves that to Python: at most some tenths of
a millisecond, which is what waking a thread may cost. All calls that find nothing left to do look,
so that none is in Python, with the interpreter's lock, when the one that is waited for comes back."""
_CACHED_BYTES = 1 << 18
"""Arrays of this size stay in a core's cache: nothing of them need be asked for ahead."""
_AHEAD_BYTES = 1 << 10
"""What is asked for of a longer line: the processor itself sees that the rest follows."""
_APART = 16
"""Elements from one state to the next, at least: threads that write to one cache line wait for each other."""
_SPAN = 1 << 14
"""Elements of the states that are added in one go."""

Allocate = Callable[[tuple[int, ...], str], Any]
"""`(shape, dtype)` gives an array with any elements."""
Part = tuple[int, int]
"""First and last (exclusive) element of a state."""


class Lines(Struct, frozen=True):
    """The table of a body's runs for one driver and one layout of operands, before addresses are known.

    Parameters
    ----------
    rows : the first row of each run, and the row after the last one's
    table : one line a run; where addresses go, bytes from the array's beginning
    flops : operations of all runs, about
    calls : calls of the kernel that take all lines
    """

    rows: Any
    table: Any
    flops: int
    calls: int

    def at(self, arrays: list[Any]) -> Any:
        """The table for these arrays, one for each column of addresses."""
        others = [0] * (self.table.shape[1] - len(arrays))
        return self.table + np.array([*map(address, arrays), *others], np.int64)


class LineTables:
    """The lines for the last driver and layout of operands, which loops come back to."""

    def __init__(self) -> None:
        self._last: tuple[Callable[[], Any], Any, Lines | None] = (lambda: None, None, None)

    def of(self, body: Sampled, indptr: Any, numbers: list[int], nnz: int, shape: tuple[int, ...]) -> Lines:
        """The lines for rows that end at `indptr`, with what is the same in all of them (`numbers`)."""
        driver, known, found = self._last
        if found is None or driver() is not indptr or known != numbers:
            found = _lay_out(body, indptr, numbers, nnz, shape)
            # Weakly: a table is no reason to keep a matrix.
            self._last = (weakref.ref(indptr), numbers, found)
        return found


def runs(indptr: Any, count: int) -> Any:
    """Up to `count` runs of rows with about equally many non-zeros: their bounds."""
    shares = np.arange(1, count, dtype=np.int64) * int(indptr[-1]) // count
    inner = {*np.searchsorted(indptr, shares.astype(indptr.dtype)).tolist()}
    rows = len(indptr) - 1
    return np.array([0, *sorted(inner - {0, rows}), rows])


def _lay_out(body: Sampled, indptr: Any, numbers: list[int], nnz: int, shape: tuple[int, ...]) -> Lines:
    loop, ending = body.loop, body.loop.ending
    named = dict(zip(loop.numbers, numbers, strict=True))
    width = named.get("wn", 1)
    flops = NONZERO_ROW_FLOPS * (1 + len(loop.rows)) + 2 * sum(named[name] for name in loop.lengths)
    flops *= int(indptr[-1])
    kept = shape[body.axis] if ending.kept == "major" else shape[1 - body.axis] if ending.kept else 1
    itemsize = np.dtype(ending.code).itemsize
    most = _most_states(kept * width * itemsize, nnz // max(kept, 1)) if loop.has_states else _RUNS
    rows = runs(indptr, min(_RUNS, flops // RUN_FLOPS + 1, most))
    count = len(rows) - 1
    named["patience"] = _PATIENCE
    most = named["most"] = max(1, _TURN_FLOPS * count // max(flops, 1))
    table = np.array([[named.get(name, 0) for name in loop.fields]] * count, np.int64)
    column = {name: table[:, k] for k, name in enumerate(loop.fields)}
    column["lo"][:], column["hi"][:] = rows[:-1], rows[1:]
    if ending.kept == "major":
        column["out_p"][:] = rows[:-1] * width * itemsize
        column["out_n"][:] = width * (rows[1:] - rows[:-1])
    elif loop.has_states:
        column["out_p"][:] = np.arange(count) * max(kept, _APART) * width * itemsize
        column["out_n"][:] = kept * width
        # Long states are added by all threads, span by span, once all lines are done.
        column["total_n"][:] = kept * width if count > 1 and kept * width <= _SPAN else 0
    return Lines(rows, table, flops, -(-count // most))


def _most_states(nbytes: int, nnz: int) -> int:
    """How many runs may have a state of so many bytes of their own: few where states are long and there are
    few non-zeros for each of their elements."""
    return int(max(4, min(STATES_BYTES // max(nbytes, 1), nnz)))


class Bound:
    """A sampled stage with its operands; threads may run parts of it side by side. What the kernel writes to
    is made by `allocate`."""

    def __init__(self, body: Sampled, operands: list[Any], allocate: Allocate = np.empty) -> None:
        self.body = body
        self._allocate = allocate
        self.driver = operands[body.stage.driver]
        indices = np.ascontiguousarray(self.driver.indices)
        indptr = np.ascontiguousarray(self.driver.indptr, indices.dtype)
        arrays, numbers = self._given(_with_rows(body, operands))
        data = np.ascontiguousarray(self.driver.data)
        self._width = numbers[-1] if body.loop.ending.how == "product" else 1
        self.lines = body.tables.of(body, indptr, numbers, len(data), self.driver.shape)
        self._counters = np.zeros(2, np.int64)
        self._kept = [self._counters, *self._place(), indptr, indices, data, *arrays]
        """Arrays whose addresses the table has: they live as long as it does."""
        self._table = self.lines.at(self._kept)

    @property
    def is_small(self) -> bool:
        """Whether no further thread is worth waking for it."""
        return self.lines.flops < SMALL_FLOPS

    # --- runs -----------------------------------------------------------------------------------------

    def turns(self, threads: int) -> range:
        """Calls of `run`, by as many threads as want to, that do everything."""
        return range(max(threads, self.lines.calls))

    def run(self, turn: int) -> None:
        """Run lines of the table that nobody has taken: fills their part of `values`, or their states."""
        (kernel,) = self.body.kernels
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(self._table)

    def is_done(self) -> bool:
        """Whether all lines are done, even if calls of `run` have still to find out."""
        return bool(self._counters[1] > len(self._table))

    @property
    def spans(self) -> list[Part]:
        """The parts of long states, which are still to be added once all has run."""
        n = self.values.size
        if n <= _SPAN or len(self._states) < 2:
            return []
        return list(pairwise((*range(0, n, _SPAN), n)))

    def add(self, span: Part) -> None:
        """Add a part of all states, in the order of the runs."""
        part, total = slice(*span), self.values.reshape(-1)
        states = self._states.reshape(len(self._states), -1)
        np.add.reduce(states[:, part], axis=0, dtype=total.dtype, out=total[part])

    def folded(self) -> Any:
        """`values` in the axes of the stage's reduced result."""
        reducer = self.body.stage.writes[0].reducer
        assert reducer is not None, "only reduced stages are folded"
        values = self.values
        if self.body.loop.ending.how == "product":
            la, lb, lo = reducer.params
            turned = len(lo) == 2 and lo[0] in (la if self.body.is_dense(reducer.args[0]) else lb)
            return values[:, 0] if len(lo) == 1 else values.T if turned else values
        return values[:, 0] if reducer.shape else values.reshape(())

    def _place(self) -> list[Any]:
        """Allocate the values, and the states: the arrays for the results' columns of addresses."""
        ending, shape = self.body.loop.ending, self.driver.shape
        count, code = len(self.lines.rows) - 1, ending.code
        self._states = np.empty((0, 1, self._width), code)
        if ending.how == "store":
            self.values = self._allocate((len(self.driver.data),), code)
            """Of the non-zeros of a sparse result, or of the lines of a reduced one."""
        elif ending.kept == "major":
            self.values = self._allocate((shape[self.body.axis], self._width), code)
        else:
            n = shape[1 - self.body.axis] if ending.kept == "minor" else 1
            self._states = self._allocate((count, max(n, _APART), self._width), code)[:, :n]
            self.values = self._states[0] if count == 1 else self._allocate((n, self._width), code)
            return [self._states, self.values]
        return [self.values]

    def _given(self, operands: list[Any]) -> tuple[list[Any], list[int]]:
        """The arrays for the operands' columns of addresses, and the numbers that go with them."""
        body, loop = self.body, self.body.loop
        arrays: list[Any] = []
        numbers: list[int] = []
        for side in loop.sides:
            x = operands[side.register]
            strides = _strides(x)
            arrays.append(x)
            numbers += [strides[body.axis], strides[1 - body.axis]]
        for dot in loop.dots:
            u, v = self._lines_of(body.stage.rows[dot.register - len(body.stage.reads)], operands)
            arrays += [u, v]
            numbers += [u.strides[0], v.strides[0], _ahead(v), u.shape[1]]
        if loop.ending.how == "product":
            w = self._summed_lines(operands)
            arrays.append(w)
            numbers += [w.strides[0], _ahead(w), w.shape[1]]
        return arrays, numbers

    def _lines_of(self, row: Row, operands: list[Any]) -> tuple[Any, Any]:
        """A product's operands as lines of stored rows and lines of the other axis."""
        _, _, lo = row.params
        lines = {}
        for register, labels in zip(row.args, row.params[:2], strict=True):
            axis = 0 if lo[0] in labels else 1
            lines[axis] = _contiguous(operands[register], labels.index(lo[axis]))
        return lines[self.body.axis], lines[1 - self.body.axis]

    def _summed_lines(self, operands: list[Any]) -> Any:
        """The dense operand of the product at the end, one line for each index that is summed over."""
        reducer = self.body.stage.writes[0].reducer
        assert reducer is not None, "a product at the end is a reducer"
        la, lb, lo = reducer.params
        (register, labels) = next(
            (a, names) for a, names in zip(reducer.args, (la, lb), strict=True) if self.body.is_dense(a)
        )
        return _contiguous(operands[register], next(k for k, x in enumerate(labels) if x not in lo))


def _contiguous(x: Any, axis: int) -> Any:
    """The array with one contiguous line for each index along `axis`."""
    x = x[:, None] if x.ndim == 1 else x if axis == 0 else x.T
    return np.ascontiguousarray(x) if x.strides[1] != x.itemsize and x.shape[1] > 1 else x


def _with_rows(body: Sampled, operands: list[Any]) -> list[Any]:
    """All registers, with operands stretched as rows see them, and the values of rows before the loop."""
    reads, first = body.stage.reads, len(body.stage.reads)
    seen = [slicer(r, body.tile, o)(o, body.tile) for r, o in zip(reads, operands, strict=True)]
    registers = [*seen, *[None] * len(body.stage.rows)]
    for register in body.before:
        row = body.stage.rows[register - first]
        registers[register] = np.asarray(KINDS[row.kind](row)(registers, body.tile, None))
    return registers


def _strides(x: Any) -> tuple[int, int]:
    """Byte strides along the two axes of the body; 0 where the operand does not follow one."""
    strides = (0, 0, *(0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)))
    return strides[-2], strides[-1]


def _ahead(lines: Any) -> int:
    """Bytes of a line to ask for ahead: see `nonzeros`."""
    return min(lines.shape[1] * lines.itemsize, _AHEAD_BYTES) if lines.nbytes > _CACHED_BYTES else 0
