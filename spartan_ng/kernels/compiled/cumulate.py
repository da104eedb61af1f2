"""The source of a scan's kernel: loops over lines, rows and neighbours, with the maps around the scan inside.

Distributed cumulative aggregates (BTW '19), section 4.1: offsets are applied during f_cumagg, without a copy.
A kernel works on `outer` lines of `n` rows of `inner` neighbours. An element's operands are loaded, the
maps before the scan computed, the state taken a step on, the maps behind it computed, the result stored: one
pass, whatever stands around the scan. Rows of several neighbours go side by side, which vectorizes; a single
line takes four elements at a time, so that one operation in four waits for the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.kernels.compiled.cache import titled
from spartan_ng.kernels.compiled.emit import HEAD
from spartan_ng.kernels.compiled.folds import FOLD_TEXTS
from spartan_ng.kernels.compiled.formulas import code, expression
from spartan_ng.kernels.compiled.steps import steps_of
from spartan_ng.plan.rows import Row


class LoadedOperand(Struct, frozen=True):
    """A value that a kernel loads: its dtype code ("" for an index itself), and how it follows the
    innermost loop: "c" contiguous, "z" not at all, "s" by a stride."""

    register: int
    code: str
    kind: str


class ScanText(Struct, frozen=True):
    """All that a kernel's source depends on; `total` asks for the state alone, `line` for one neighbour."""

    fn: str
    scan: int
    """The scan's register; its row is the one in `rows` with that number."""
    operands: tuple[LoadedOperand, ...]
    rows: tuple[tuple[int, Row], ...]
    aliases: tuple[tuple[int, int], ...]
    """Rows that are views: the register, and the register they show."""
    result: int
    result_kind: str
    line: bool
    total: bool


_KERNEL = """\
@compiled
def kernel(table):
    for r in range(table.shape[0]):
        t = table[r]
        outer, n, inner, lift = t[0], t[1], t[2], t[3]
"""


class _ScanEmitter:
    """One kernel's lines."""

    def __init__(self, text: ScanText) -> None:
        steps = steps_of(text.fn)
        assert steps is not None, "chosen only where there are texts"
        self.text, self.steps = text, steps
        self.rows = dict(text.rows)
        row = self.rows[text.scan]
        self.args = row.args
        self.type = code(row.dtype)
        self.width = row.dtype.itemsize
        self.states = len(steps.step) if text.total else steps.kept
        self.lines: list[str] = []
        self.indent = 2

    def source(self) -> str:
        """The module's text."""
        self._unpack()
        self._say("for o in range(outer):")
        self.indent += 1
        names = [f"x{k}" for k in range(len(self.text.operands))] + ([] if self.text.total else ["y"])
        for name in names:
            self._say(f"{name}_o = {name}_p + o * {name}_do")
        for k in range(self.states):
            self._say(f"c{k} = array_at(c{k}_p + o * c_do, (inner,), {self.type})")
        if self.text.line:
            self._line()
        else:
            self._wide()
        return HEAD + _KERNEL + "\n".join(self.lines) + "\n"

    def _say(self, *lines: str) -> None:
        self.lines += ["    " * self.indent + line for line in lines]

    def _unpack(self) -> None:
        self._say("c_do = t[4]")
        at = 5
        for k in range(len(self.steps.step)):
            self._say(f"c{k}_p = t[{at + k}]")
        at += len(self.steps.step)
        for k in range(len(self.text.operands)):
            self._say(f"x{k}_p, x{k}_do, x{k}_di, x{k}_dj = t[{at}], t[{at + 1}], t[{at + 2}], t[{at + 3}]")
            at += 4
        if not self.text.total:
            self._say(f"y_p, y_do, y_di, y_dj = t[{at}], t[{at + 1}], t[{at + 2}], t[{at + 3}]")

    # --- rows of neighbours -------------------------------------------------------------------------

    def _wide(self) -> None:
        self._say("first = 0", "if lift != 0:")
        self.indent += 1
        self._say("first = 1", "i = 0")
        self._row(lift=True)
        self.indent -= 1
        self._say("for i in range(first, n):")
        self.indent += 1
        self._row(lift=False)
        self.indent -= 1

    def _row(self, lift: bool) -> None:
        """All neighbours of row i."""
        for k, operand in enumerate(self.text.operands):
            self._say(f"x{k}_a = x{k}_o + i * x{k}_di")
            if operand.kind == "c" and operand.code:
                self._say(f"x{k}_v = array_at(x{k}_a, (inner,), {operand.code})")
            elif operand.kind == "z":
                self._say(f"x{k} = {self._loaded(operand, f'x{k}_a')}")
        if not self.text.total:
            self._say("y_a = y_o + i * y_di")
            if self.text.result_kind == "c":
                self._say(f"y_v = array_at(y_a, (inner,), {self._result_code()})")
        self._say("for j in range(inner):")
        self.indent += 1
        values: dict[int, str] = {}
        for k, operand in enumerate(self.text.operands):
            if operand.kind == "c" and operand.code:
                self._say(f"x{k} = x{k}_v[j]")
            elif operand.kind != "z":
                self._say(f"x{k} = {self._loaded(operand, f'x{k}_a + j * x{k}_dj')}")
            values[operand.register] = f"x{k}"
        self._before(values)
        states = [f"c{k}[j]" for k in range(self.states)]
        self._state(values, states, lift)
        for k in range(self.states):
            self._say(f"c{k}[j] = s{k}")
        self._behind(values, "", "y_v[j]" if self.text.result_kind == "c" else "", "y_a + j * y_dj")
        self.indent -= 1

    # --- a single line ------------------------------------------------------------------------------

    def _line(self) -> None:
        operands = self.text.operands
        for k, operand in enumerate(operands):
            if operand.kind == "c" and operand.code:
                self._say(f"x{k}_v = array_at(x{k}_o, (n,), {operand.code})")
            elif operand.kind == "z":
                self._say(f"x{k} = {self._loaded(operand, f'x{k}_o')}")
        if not self.text.total and self.text.result_kind == "c":
            self._say(f"y_v = array_at(y_o, (n,), {self._result_code()})")
        self._say("i = 0", "if lift != 0:")
        self.indent += 1
        self._element(0, lift=True)
        for k in range(self.states):
            self._say(f"b{k} = s{k}")
        self._say("i = 1")
        self.indent -= 1
        self._say("else:")
        self.indent += 1
        for k in range(self.states):
            self._say(f"b{k} = c{k}[0]")
        self.indent -= 1
        if self.text.total:
            self._summed()
        else:
            self._four()
        for k in range(self.states):
            self._say(f"c{k}[0] = b{k}")

    def _summed(self) -> None:
        """The rest of a line for its total alone: float sums may be reordered."""
        self._say("for i in range(i, n):")
        self.indent += 1
        fold = FOLD_TEXTS.get(self.text.fn)
        if fold is not None and fold.line and self.type in ("f4", "f8"):
            values = self._loads(0)
            self._before(values)
            (value,) = self._scanned(values)
            self._say(f"b0 = {fold.line.format('b0', value)}")
        else:
            self._element(0, lift=False)
            for k in range(self.states):
                self._say(f"b{k} = s{k}")
        self.indent -= 1

    def _four(self) -> None:
        """The rest of a line, four elements at a time where the step associates."""
        if self.steps.associates:
            self._say("while i + 4 <= n:")
            self.indent += 1
            every = []
            for d in range(4):
                values = self._loads(d)
                self._before(values, f"_{d}")
                (value,) = self._scanned(values)
                self._say(f"v{d} = {value}" if d == 0 else f"v{d} = {self._step0(f'v{d - 1}', value)}")
                every.append(values)
            for d, values in enumerate(every):
                self._say(f"s0_{d} = {self._step0('b0', f'v{d}')}")
                values[self.text.scan] = f"s0_{d}"
            for d, values in enumerate(every):
                self._behind(values, f"_{d}", *self._place(d))
            self._say("b0 = s0_3", "i += 4")
            self.indent -= 1
        self._say("while i < n:")
        self.indent += 1
        self._element(0, lift=False)
        for k in range(self.states):
            self._say(f"b{k} = s{k}")
        self._say("i += 1")
        self.indent -= 1

    def _element(self, d: int, lift: bool) -> None:
        values = self._loads(d)
        self._before(values)
        self._state(values, [f"b{k}" for k in range(self.states)], lift)
        self._behind(values, "", *self._place(d))

    def _loads(self, d: int) -> dict[int, str]:
        """Element i + d of every operand."""
        values: dict[int, str] = {}
        for k, operand in enumerate(self.text.operands):
            name = f"x{k}"
            if operand.kind != "z":
                name = f"x{k}_{d}"
                at = f"x{k}_o + (i + {d}) * x{k}_di"
                direct = operand.kind == "c" and operand.code
                self._say(f"{name} = x{k}_v[i + {d}]" if direct else f"{name} = {self._loaded(operand, at)}")
            values[operand.register] = name
        return values

    def _place(self, d: int) -> tuple[str, str]:
        return (f"y_v[i + {d}]" if self.text.result_kind == "c" else ""), f"y_o + (i + {d}) * y_di"

    # --- an element ---------------------------------------------------------------------------------

    @staticmethod
    def _loaded(operand: LoadedOperand, address: str) -> str:
        return f"load({address}, {operand.code})" if operand.code else f"i8({address})"

    def _before(self, values: dict[int, str], suffix: str = "") -> None:
        """The maps before the scan."""
        self._maps(values, suffix, [r for r, _ in self.text.rows if r < self.text.scan])

    def _maps(self, values: dict[int, str], suffix: str, registers: list[int]) -> None:
        aliases = dict(self.text.aliases)

        def named(register: int) -> str:
            while register in aliases:
                register = aliases[register]
            return values[register]

        for register in registers:
            row = self.rows[register]
            text = expression(row, [named(a) for a in row.args], [self._dtype(a) for a in row.args])
            self._say(f"r{register}{suffix} = {text}")
            values[register] = f"r{register}{suffix}"
        for view, shown in self.text.aliases:
            while shown in aliases:
                shown = aliases[shown]
            if shown in values:
                values[view] = values[shown]

    def _dtype(self, register: int) -> np.dtype[Any]:
        """The dtype of an operand, or of a row."""
        aliases = dict(self.text.aliases)
        while register in aliases:
            register = aliases[register]
        if register in self.rows:
            return self.rows[register].dtype
        found = next(o for o in self.text.operands if o.register == register)
        return np.dtype(found.code or np.int64)

    def _scanned(self, values: dict[int, str]) -> list[str]:
        """The scanned values in the scan's dtype."""
        return [f"{self.type}({values[a]})" if self.type != "b1" else values[a] for a in self.args]

    def _step0(self, state: str, value: str) -> str:
        return self.steps.step[0].format(s0=state, x0=value, T=self.type)

    def _state(self, values: dict[int, str], states: list[str], lift: bool) -> None:
        """The element's state s0, s1, and its value."""
        xs = self._scanned(values)
        for k, x in enumerate(xs):
            self._say(f"e{k} = {x}")
        names = {f"x{k}": f"e{k}" for k in range(len(xs))} | {f"s{k}": s for k, s in enumerate(states)}
        texts = self.steps.lift if lift else self.steps.step
        if not lift and len(states) > 1 and self.text.fn == "compensated_add":
            self._say(f"t = {names['s0']} + e0")
        fresh = [text.format(**names, T=self.type) for text in texts[: self.states]]
        for k, text in enumerate(fresh):
            self._say(f"n{k} = {text}")
        for k in range(len(fresh)):
            self._say(f"s{k} = n{k}")
        if not self.text.total:
            self._say(f"v = {self.steps.value.format(s0='s0', s1='s1')}")
            values[self.text.scan] = "v"

    def _behind(self, values: dict[int, str], suffix: str, place: str, address: str) -> None:
        """The maps behind the scan, and the result at its place."""
        if self.text.total:
            return
        self._maps(values, suffix, [r for r, _ in self.text.rows if r > self.text.scan])
        value = values[self.text.result]
        if place:
            self._say(f"{place} = {value}")
        else:
            self._say(f"array_at({address}, (1,), {self._result_code()})[0] = {value}")

    def _result_code(self) -> str:
        return code(self.rows[self.text.result].dtype)


def source(text: ScanText) -> str:
    """The text of the kernel."""
    names = [str(row.fn) if row.kind == "map" else f"scan {row.fn}" for _, row in text.rows]
    title = f"totals of {' > '.join(names)}" if text.total else " > ".join(names)
    return titled(title, _ScanEmitter(text).source())
