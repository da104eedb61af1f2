"""Compiled scans of a tile: what a stage's rows come to, laid out for its operands, and run piece by piece.

The source is `cumulate`'s. A kernel takes a table of 64-bit integers with a line for each group of lines of
the tile that one walk covers: sizes, then addresses and byte strides.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import WHOLE, Box, box_size
from spartan_ng.arrays.copying import address
from spartan_ng.config import config
from spartan_ng.costs.choices import COMPILED_SCAN_ROWS, SCAN_ELEMENTS
from spartan_ng.costs.tuned import INTERPRETED_FLOPS_S
from spartan_ng.error_state import is_strict
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from spartan_ng.kernels.compiled.cumulate import LoadedOperand, ScanText, source
from spartan_ng.kernels.compiled.formulas import DTYPES, code, obstacle
from spartan_ng.kernels.compiled.segments import VIEWS
from spartan_ng.kernels.compiled.steps import steps_of
from spartan_ng.kernels.scans import ScanCut
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import SEGMENTED
from spartan_ng.plan.rows import Read, Row
from spartan_ng.system.machine import cores

_STRIP = 1024
"""Neighbours that go side by side: their states stay in the first-level cache."""

State = tuple[np.ndarray[Any, Any], ...]


class _TileArray(Struct, frozen=True):
    """An operand (or the result) of a tile: its address and its byte stride along each domain dimension."""

    address: int
    strides: tuple[int, ...]
    lows: Box
    """The box that the array's first element belongs to."""

    def at(self, corner: tuple[int, ...]) -> int:
        """The address of an element."""
        return self.address + sum(
            (i - lo) * s for i, (lo, _), s in zip(corner, self.lows, self.strides, strict=True)
        )


def scan_obstacle(rows: tuple[Row, ...], dtypes: list[np.dtype[Any]]) -> str:
    """Why rows around a scan have no kernel, for reads of `dtypes`; empty where they have one."""
    every = [*dtypes, *(r.dtype for r in rows)]
    if len(rows) > COMPILED_SCAN_ROWS:
        return "too many rows to compile"
    if any(code(d) not in DTYPES for d in every):
        return "a dtype that kernels do not know"
    for row in rows:
        operands = [every[a] for a in row.args]
        if row.kind == "map" and (reason := obstacle(row, operands)):
            return f"{row.fn}: {reason}"
        if row.kind == "scan" and (reason := _step_obstacle(row, operands)):
            return reason
        if row.kind not in ("map", "scan", "iota", *VIEWS) or (row.kind == "iota" and row.params):
            return row.kind
    return ""


def _step_obstacle(row: Row, operands: list[np.dtype[Any]]) -> str:
    if isinstance(row.fn, UserFunction) or row.fn is None or steps_of(row.fn) is None:
        return f"{row.fn}: no step of its own"
    plain = row.fn.removeprefix(SEGMENTED)
    logical = plain.startswith("logical")
    known = row.dtype.kind == "b" if logical else row.dtype.str[1:] in ("f4", "f8", "i4", "i8", "u4", "u8")
    if plain.startswith("bitwise") and row.dtype.kind == "f":
        known = False
    exact = all(d == row.dtype or (d.kind in "fiub" and row.dtype.kind == "f") for d in operands)
    exact = exact or (row.dtype.kind in "iu" and all(d.kind in "iub" for d in operands))
    return "" if known and exact else f"{row.fn} of {', '.join(map(str, operands))} as {row.dtype}"


def compiled_scan(
    reads: tuple[Read, ...],
    rows: tuple[Row, ...],
    operands: list[Any],
    out: Any,
    cut: ScanCut,
    error_state: dict[str, Any],
) -> CompiledScan | None:
    """The compiled form of a scan stage's rows on the tile that `cut` cuts; `out` is the result's tile, or an
    array laid out as one where every piece is given a place of its own.

    None where NumPy has to do it (this time, while it is being compiled).
    """
    if is_strict(error_state):
        return None
    found = prepare_scan(reads, rows, operands, out, cut)
    return found if found is not None and found.is_ready(values=True, totals=cut.in_chunks) else None


def compiled_total(
    reads: tuple[Read, ...],
    rows: tuple[Row, ...],
    operands: list[Any],
    cut: ScanCut,
    error_state: dict[str, Any],
) -> CompiledScan | None:
    """As `compiled_scan`, for totals alone."""
    if is_strict(error_state):
        return None
    found = prepare_scan(reads, rows, operands, None, cut)
    return found if found is not None and found.is_ready(values=False, totals=True) else None


def prepare_scan(
    reads: tuple[Read, ...], rows: tuple[Row, ...], operands: list[Any], out: Any, cut: ScanCut
) -> CompiledScan | None:
    """As `compiled_scan`, its kernels compiled or not; None where none are wanted, or there are none."""
    if not config.compiles or box_size(cut.box) < SCAN_ELEMENTS:
        return None
    if any(type(x) is not np.ndarray for x in operands):
        return None
    if scan_obstacle(rows, [x.dtype for x in operands]):
        return None
    arrays = [_walked(r.labels, x, cut.box) for r, x in zip(reads, operands, strict=True)]
    if any(a is None for a in arrays):
        return None
    return CompiledScan(len(reads), rows, [a for a in arrays if a is not None], operands, out, cut)


def _walked(labels: tuple[int, ...], x: Any, box: Box) -> _TileArray | None:
    """An operand's strides along the domain's dimensions; None where it has an axis beside them."""
    strides = [0] * len(box)
    for label, n, stride in zip(labels, x.shape, x.strides, strict=True):
        if n == 1:
            continue
        if label == WHOLE or n != box[label][1] - box[label][0]:
            return None
        strides[label] += stride
    return _TileArray(address(x), tuple(strides), box)


class CompiledScan:
    """A tile's compiled scan; pieces are boxes of the domain."""

    def __init__(
        self,
        first: int,
        rows: tuple[Row, ...],
        reads: list[_TileArray],
        operands: list[Any],
        out: Any,
        cut: ScanCut,
    ) -> None:
        box = cut.box
        at = next(i for i, r in enumerate(rows) if r.kind == "scan")
        (self.axis,) = rows[at].params
        self.scan, self.dtype = first + at, rows[at].dtype
        # The kernel sees addresses alone.
        self._kept_alive = (operands, out)
        self._arrays = dict(enumerate(reads))
        for i, row in enumerate(rows, first):
            if row.kind == "iota":  # an index is the address of a byte that nobody reads
                steps = tuple(int(d == row.labels[0]) for d in range(len(box)))
                lows = tuple((0, 0) for _ in box)
                self._arrays[i] = _TileArray(0, steps, lows)
        self._result = None if out is None else _walked(tuple(range(len(box))), out, box)
        self._codes = {i: code(x.dtype) for i, x in enumerate(operands)}
        self._rows, self._first = rows, first
        self.box = box
        self._expected_s = box_size(box) * sum(r.kind not in VIEWS for r in rows) / INTERPRETED_FLOPS_S
        """What the interpreter is predicted to take, on one thread."""
        self._outer, self._inner = self._walk(cut.dimensions)
        self._kernels = {total: self._kernel(total) for total in (False, True)}

    @property
    def kernels(self) -> list[Kernel]:
        """Those for values and for totals."""
        return [kernel for kernel, _ in self._kernels.values()]

    @property
    def joined(self) -> frozenset[int]:
        """Dimensions that are walked as one with the one before, and that pieces have whole."""
        return frozenset((*self._outer[1:], *self._inner[1:]))

    def wanted(self, values: bool, totals: bool) -> list[Kernel]:
        """The kernels for values and for totals, as far as they are wanted."""
        return [k for total, (k, _) in self._kernels.items() if (totals if total else values)]

    def is_ready(self, values: bool, totals: bool) -> bool:
        """Whether the kernels for values and for totals are compiled, as far as they are wanted."""
        wanted = self.wanted(values, totals)
        waiting = [k for k in wanted if not k.settled]
        for kernel in waiting:
            compiler.request(kernel)
        if waiting and config.kernels == "compile":
            compiler.wait()
        elif waiting:
            compiler.wait_if_worth(waiting, self._expected_s / (config.threads or cores()))
        return all(k.function is not None for k in wanted)

    def run(self, piece: Box, carry: State | None, place: Any = None) -> State:
        """Scan a piece behind the state `carry`, into the result's tile, or into an array of its own; the
        state that the next piece is behind."""
        return self._call(piece, carry, total=False, place=place)

    def total(self, piece: Box) -> State:
        """The state of a piece."""
        return self._call(piece, None, total=True)

    def _walk(self, cut: frozenset[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The dimensions before the axis, and those behind it, that are walked as one: pieces have all but
        the first of them whole."""
        every = [*self._arrays.values(), *([] if self._result is None else [self._result])]
        sizes = [hi - lo for lo, hi in self.box]

        def joined(last: int, first: int) -> tuple[int, ...]:
            """Dimensions up to `last`, down to `first` as far as all arrays walk them as one."""
            group = [last] if last >= first else []
            while group and group[0] > first:
                d = group[0]
                if d in cut or any(a.strides[d - 1] != a.strides[d] * sizes[d] for a in every):
                    break
                group.insert(0, d - 1)
            return tuple(group)

        return joined(self.axis - 1, 0), joined(len(self.box) - 1, self.axis + 1)

    def _kernel(self, total: bool) -> tuple[Kernel, list[int]]:
        """The kernel for values or totals, and the registers of its operands."""
        first, end = self._first, self.scan if total else self._first + len(self._rows) - 1
        needed, waiting = set[int](), [end]
        while waiting:
            register = waiting.pop()
            if register not in needed:
                needed.add(register)
                waiting += self._rows[register - first].args if register >= first else ()
        rows = [(i, r) for i, r in enumerate(self._rows, first) if i in needed]
        used = sorted(needed & self._arrays.keys())
        line = box_size(self.box[self.axis + 1 :]) == 1
        text = ScanText(
            str(self._rows[self.scan - first].fn),
            self.scan,
            tuple(LoadedOperand(i, self._codes.get(i, ""), self._kind(i, line)) for i in used),
            tuple((i, r) for i, r in rows if r.kind in ("map", "scan")),
            tuple((i, r.args[0]) for i, r in rows if r.kind in VIEWS),
            end,
            self._result_kind(line),
            line,
            total,
        )
        return compiler.kernel(source(text)), used

    def _kind(self, register: int, line: bool) -> str:
        width = np.dtype(self._codes[register]).itemsize if register in self._codes else 0
        return self._step_kind(self._arrays[register], width, line)

    def _result_kind(self, line: bool) -> str:
        return (
            "" if self._result is None else self._step_kind(self._result, self._rows[-1].dtype.itemsize, line)
        )

    def _step_kind(self, array: _TileArray, width: int, line: bool) -> str:
        inner = self.axis if line else self._inner[-1]
        step = array.strides[inner]
        return "z" if step == 0 else "c" if step == width else "s"

    def _call(self, piece: Box, carry: State | None, total: bool, place: Any = None) -> State:
        kernel, used = self._kernels[total]
        sizes = tuple(1 if d == self.axis else hi - lo for d, (lo, hi) in enumerate(piece))
        steps = steps_of(str(self._rows[self.scan - self._first].fn))
        assert steps is not None, "chosen only where there are texts"
        if carry is None:
            states = tuple(np.empty(sizes, self.dtype) for _ in steps.step)
        else:
            # A copy: the kernel takes the states on where they lie.
            states = tuple(np.array(c, self.dtype, order="C").reshape(sizes) for c in carry)
        arrays = [self._arrays[i] for i in used]
        if not total:
            result = self._result if place is None else _walked(tuple(range(len(piece))), place, piece)
            assert result is not None, "values go somewhere"
            arrays.append(result)
        lines = [self._fields(spot, piece, states, arrays, carry is None) for spot in self._spots(piece)]
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(np.array(lines, np.int64))
        return states

    def _spots(self, piece: Box) -> list[Box]:
        """The boxes that one line of the table covers each."""
        strips = []
        for d, (lo, hi) in enumerate(piece):
            if d in self._outer or d == self.axis or d in self._inner[1:]:
                strips.append([(lo, hi)])
            elif d in self._inner and len(self._inner) == 1:
                strips.append([(a, min(a + _STRIP, hi)) for a in range(lo, hi, _STRIP)])
            elif d in self._inner:
                width = max(1, _STRIP // prod(piece[k][1] - piece[k][0] for k in self._inner[1:]))
                strips.append([(a, min(a + width, hi)) for a in range(lo, hi, width)])
            else:
                strips.append([(a, a + 1) for a in range(lo, hi)])
        return list(product(*strips))

    def _fields(
        self, spot: Box, piece: Box, states: State, arrays: list[_TileArray], lift: bool
    ) -> list[int]:
        """The numbers of one line of the table."""
        size = [hi - lo for lo, hi in spot]
        corner = tuple(lo for lo, _ in spot)
        lows = tuple((c, c + 1) if d == self.axis else piece[d] for d, c in enumerate(corner))
        state = [_TileArray(address(s), s.strides, lows) for s in states]
        outer = prod(size[d] for d in self._outer)
        inner = prod(size[d] for d in self._inner)
        fields = [outer, size[self.axis], inner, int(lift)]
        fields.append(state[0].strides[self._outer[-1]] if self._outer else 0)
        fields += [s.at(corner) for s in state]
        for array in arrays:
            fields.append(array.at(corner))
            fields.append(array.strides[self._outer[-1]] if self._outer else 0)
            fields.append(array.strides[self.axis])
            fields.append(array.strides[self._inner[-1]] if self._inner else 0)
        return fields
