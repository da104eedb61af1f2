"""The source of a segment's kernel: nested loops over a block, with the rows as straight text inside.

A kernel takes a table of 64-bit integers with one line a block: the sizes of its loops, then for each array
its address and its byte stride along each loop. Long folded lines are cut into strips, so that a sum has many
short partial sums and loses no precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.costs.choices import ABREAST
from spartan_ng.kernels.compiled.cache import titled
from spartan_ng.kernels.compiled.folds import EXTREMES, FOLD_TEXTS, PRODUCT, start
from spartan_ng.kernels.compiled.formulas import code, expression
from spartan_ng.kernels.compiled.layout import Layout
from spartan_ng.kernels.compiled.segments import Ending, Segment
from spartan_ng.plan.rows import Row

STRIP = 1024
"""Elements of a line that are folded in one go."""
_MOST_CHECKS = 8
"""Pairs of arrays that LLVM's vectorizer asks whether they overlap, at most, before it gives a loop up."""
_LANES = {True: 32, False: 8}
"""Values that a NaN-aware extreme is kept in, for one long line and for many short ones."""

HEAD = """\
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import (
    accumulate_add, apart, array_at, ceil, choose, compiled, copysign, count_up, floor,
    greatest, lanes, least, load, local, magnitude, multiply_add, prefetch, rint, sqrt, trunc,
)
from spartan_ng.kernels.compiled.vectors import erf, exp, expit, log

f4, f8, b1 = np.float32, np.float64, np.bool_
i1, i2, i4, i8 = np.int8, np.int16, np.int32, np.int64
u1, u2, u4, u8 = np.uint8, np.uint16, np.uint32, np.uint64
infinity, nan = np.inf, np.nan


"""


class _Emitter:
    """One kernel's lines."""

    def __init__(self, segment: Segment, layout: Layout) -> None:
        self.segment = segment
        self.layout = layout
        self.depth = len(layout.loops)
        self.lines: list[str] = []
        self.indent = 1
        self.names = [f"x{k}" for k in range(len(segment.operands))]
        self.names += [f"y{k}" for k in range(len(segment.stores))]
        self.names += [f"s{k}" for k in range(len(segment.endings))]
        dtypes = [o.dtype for o in segment.operands]
        self.dtype_of = {o.register: o.dtype for o in segment.operands}
        self.dtype_of |= {i: r.dtype for i, r in segment.rows}
        dtypes += [self.dtype_of[i] for i in segment.stores]
        dtypes += [e.dtype for e in segment.endings]
        self.codes = [code(d) for d in dtypes]
        self.widths = [d.itemsize for d in dtypes]
        self.folded = [i for i in range(len(segment.endings)) if layout.reduced[i][-1]]
        """Endings that fold the innermost loop."""
        self.sought = [i for i, e in enumerate(segment.endings) if e.fold in EXTREMES]
        """Endings that find a place in the line of the innermost loop."""
        self.laned = [i for i in self.folded if self._is_laned(i)]
        self.lanes = _LANES[self.depth == 1]
        self.first_ending = len(segment.operands) + len(segment.stores)
        self.abreast = 1
        """Lines of the innermost loop that the text at hand takes at a time."""

    def function(self, title: str) -> str:
        """The text of the function that runs the segment on the block of one line of a table."""
        self._say(*self._unpack())
        for k, ending in enumerate(self.segment.endings):
            # The stage's own result goes on from block to block, and a place is written once.
            if ending.register >= 0 and k not in self.sought:
                self._begin(k)
        for i in self.laned:
            _, dtype = self._folds(i)
            nbytes = self.lanes * dtype.itemsize
            self._say(f"l{i} = array_at(local({nbytes}), ({self.lanes},), {code(dtype)})")
        for i in self.sought:
            _, dtype = self._folds(i)
            self._say(f"v{i} = array_at(local({STRIP * dtype.itemsize}), ({STRIP},), {code(dtype)})")
        for level in range(self.depth - 2):
            self._turn(level, f"range(n{level})")
        if self.depth == 1:
            self._line()
        elif self._goes_abreast():
            level, indent = self.depth - 2, self.indent
            together = f"n{level} // {ABREAST} * {ABREAST}"
            self.abreast = ABREAST
            self._turn(level, f"range(0, {together}, {ABREAST})")
            self._line()
            self.indent, self.abreast = indent, 1
            self._turn(level, f"range({together}, n{level})")
            self._line()
        else:
            self._turn(self.depth - 2, f"range(n{self.depth - 2})")
            self._line()
        return f"@compiled\ndef {title}(t):\n" + "\n".join(self.lines) + "\n"

    @property
    def fields(self) -> int:
        """Numbers in a line of the table."""
        return self.depth + len(self.names) * (self.depth + 1)

    def _goes_abreast(self) -> bool:
        """Whether lines go side by side: they are folded only, each of them, or each of their elements, for
        itself and in the order that there is without it."""
        if self.segment.rows or self.segment.stores or self.laned or self.sought or self.layout.short:
            return False
        still = self.layout.still
        if any(still[self.first_ending + i] for i in self.folded):
            return False
        times = [
            0 if kind == "z" else 1 if s else ABREAST
            for kind, s in zip(self.layout.inner, still, strict=True)
        ]
        read = sum(times[: self.first_ending])
        written = sum([n for i, n in enumerate(times[self.first_ending :]) if i not in self.folded])
        return written * read + written * (written - 1) // 2 <= _MOST_CHECKS

    def _turn(self, level: int, turns: str) -> None:
        """The head of a loop around lines, with the places of all arrays in a turn of it."""
        self._say(f"for k{level} in {turns}:")
        self.indent += 1
        for number, name in enumerate(self.names):
            base = f"{name}_p" if level == 0 else f"{name}_q{level - 1}"
            for line in self._lines_of(number):
                at = f"(k{level} + {line})" if line else f"k{level}"
                self._say(f"{self._named(number, line)}_q{level} = {base} + {at} * {name}_d{level}")

    def _lines_of(self, number: int) -> range:
        """The lines, of those that go side by side, for which an array has a place of its own."""
        return range(1 if self.layout.still[number] else self.abreast)

    def _named(self, number: int, line: int) -> str:
        """What an array is called in one of the lines that go side by side."""
        return self.names[number] + (f"_{line}" if line in self._lines_of(number)[1:] else "")

    def _begin(self, k: int) -> None:
        """Put its start into all that a fold goes to, be it a block's buffer or its part of a tile."""
        place, indent = f"s{k}_p", self.indent
        for level in range(self.depth):
            if not self.layout.reduced[k][level]:
                self._say(f"for k{level} in range(n{level}):")
                self.indent += 1
                place += (
                    f" + k{level} * {self._stride(k + len(self.names) - len(self.segment.endings), level)}"
                )
        self._say(f"array_at({place}, (1,), {code(self.segment.endings[k].dtype)})[0] = {self._start(k)}")
        self.indent = indent

    def _stride(self, number: int, level: int) -> str:
        """An array's byte stride along a loop."""
        if level < self.depth - 1:
            return f"{self.names[number]}_d{level}"
        kind = self.layout.inner[number]
        return {"s": f"{self.names[number]}_w", "c": str(self.widths[number]), "z": "0"}[kind]

    def _say(self, *lines: str) -> None:
        self.lines += ["    " * self.indent + text for text in lines]

    def _unpack(self) -> list[str]:
        """Names for the fields of the table."""
        out = [f"n{k} = t[{k}]" for k in range(self.depth)]
        at = self.depth
        for name, kind in zip(self.names, self.layout.inner, strict=True):
            out.append(f"{name}_p = t[{at}]")
            out += [f"{name}_d{k} = t[{at + 1 + k}]" for k in range(self.depth - 1)]
            if kind == "s":
                out.append(f"{name}_w = t[{at + self.depth}]")
            at += self.depth + 1
        return out

    def _line(self) -> None:
        """The innermost loop; in strips where it folds."""
        level = self.depth - 1
        for k, _, name in self._places():
            base = f"{name}_p" if level == 0 else f"{name}_q{level - 1}"
            self._say(f"{name}_a = {base}")
            if self.layout.inner[k] == "z" and name[0] == "x":
                self._say(f"{name} = load({name}_a, {self.codes[k]})")
        if not self.folded:
            self._say(f"m = n{level}")
            self._strip()
            return
        for i in self.sought:
            self._say(f"z{i} = {self._start(i)}")
        self._say(f"for k{level} in range(0, n{level}, {STRIP}):")
        self.indent += 1
        self._say(f"m = min(n{level} - k{level}, {STRIP})")
        self._strip()
        for k, _, name in self._places():
            if self.layout.inner[k] != "z":
                self._say(f"{name}_a += {STRIP} * {self._stride(k, level)}")
        self.indent -= 1

    def _places(self) -> list[tuple[int, int, str]]:
        """The number of each array, a line for which it has a place of its own, and its name there."""
        return [(k, line, self._named(k, line)) for k in range(len(self.names)) for line in self._lines_of(k)]

    def _strip(self) -> None:
        """M elements of the line from the addresses `_a` on."""
        for k, _, name in self._places():
            if self.layout.inner[k] == "c":
                self._say(f"{name}_v = array_at({name}_a, (m,), {self.codes[k]})")
        every = range(self.abreast)
        for i in self.folded:
            for line in every:
                self._say(f"{_of('a', i, line)} = {self._start(i)}")
            if i in self.laned:
                self._say(f"l{i}[:] = a{i}")
        begin = "0"
        if self.laned:
            self._say(f"for b in range(m // {self.lanes}):")
            self.indent += 1
            self._say(f"for j in lanes({self.lanes}):")
            self.indent += 1
            self._say(f"i = b * {self.lanes} + j")
            self._element(in_lanes=True)
            self.indent -= 2
            for i in self.laned:
                self._say(f"for j in range({self.lanes}):")
                self._say(f"    a{i} = {self._step(i, f'a{i}', f'l{i}[j]')}")
            begin = f"m // {self.lanes} * {self.lanes}"
        self._say(f"for i in {'apart' if self.layout.apart else 'range'}({begin}, m):")
        self.indent += 1
        self._element(in_lanes=False)
        self.indent -= 1
        for i in self.folded:
            for line in every:
                place = f"{self._named(self.first_ending + i, line)}_a"
                self._say(f"c{i} = array_at({place}, (1,), {code(self.segment.endings[i].dtype)})")
                if i in self.sought:
                    self._seek(i)
                    continue
                self._say(f"c{i}[0] = {self._step(i, f'c{i}[0]', _of('a', i, line))}")

    def _seek(self, i: int) -> None:
        """Look for the first of a strip's values that is its extreme, or of those that are NaN if any is, and
        keep its place where it goes before that of all strips before."""
        _, dtype = self._folds(i)
        self._say(f"p{i} = m", *[f"q{i} = m"] * (dtype.kind == "f"), "for i in range(m):")
        self._say(f"    p{i} = min(p{i}, choose(v{i}[i] == a{i}, i, m))")
        before = f"a{i} {self._sign(i)} z{i}"
        if dtype.kind == "f":
            self._say(f"    q{i} = min(q{i}, choose(v{i}[i] != v{i}[i], i, m))")
            self._say(f"p{i} = choose(q{i} < m, q{i}, p{i})")
            self._say(f"a{i} = choose(q{i} < m, {code(dtype)}(nan), a{i})")
            before = f"(z{i} == z{i}) & ((q{i} < m) | ({before}))"
        first = f"k{self.depth - 1}"
        self._say(f"if ({first} == 0) | ({before}):", f"    z{i} = a{i}", f"    c{i}[0] = {first} + p{i}")

    def _sign(self, i: int) -> str:
        """What the values that such an ending looks for are to others."""
        return "<" if self._folds(i)[0] == "minimum" else ">"

    def _element(self, in_lanes: bool) -> None:
        """One element of each line: operands, rows, stores, folds."""
        for line in range(self.abreast):
            value: dict[int, str] = {}
            for k, operand in enumerate(self.segment.operands):
                name = value[operand.register] = self._named(k, line)
                kind = self.layout.inner[k]
                if line not in self._lines_of(k):
                    continue
                if kind == "c":
                    self._say(f"{name} = {name}_v[i]")
                elif kind == "s":
                    self._say(f"{name} = load({name}_a + i * {self.names[k]}_w, {self.codes[k]})")
            for k, (register, row) in enumerate(self.segment.rows):
                self._say(f"r{k} = {self._expression(row, value)}")
                value[register] = f"r{k}"
            for k, register in enumerate(self.segment.stores):
                self._store(f"y{k}", len(self.segment.operands) + k, value[register])
            for i, ending in enumerate(self.segment.endings):
                self._fold(i, ending, value, in_lanes, line)

    def _expression(self, row: Row, value: dict[int, str]) -> str:
        return expression(row, [value[a] for a in row.args], [self.dtype_of[a] for a in row.args])

    def _store(self, name: str, number: int, text: str) -> None:
        if self.layout.inner[number] == "c":
            self._say(f"{name}_v[i] = {text}")
            return
        self._say(f"array_at({self._place(number)}, (1,), {self.codes[number]})[0] = {text}")

    def _place(self, number: int, line: int = 0) -> str:
        """The address of a loop's element `i` in an array that does not lie contiguous."""
        step = f" + i * {self.names[number]}_w" if self.layout.inner[number] == "s" else ""
        return f"{self._named(number, line)}_a{step}"

    def _fold(self, i: int, ending: Ending, value: dict[int, str], in_lanes: bool, line: int) -> None:
        target = code(self._folds(i)[1])
        args = [value[a] for a in ending.args]
        a = _of("a", i, line)
        if ending.fold == PRODUCT:
            if i in self.folded:
                self._say(f"{a} = multiply_add({a}, {args[0]}, {args[1]})")
                return
            text = ""
        else:
            source = code(self.dtype_of[ending.args[0]])
            text = (
                args[0]
                if source == target
                else f"{args[0]} != 0"
                if target == "b1"
                else f"{target}({args[0]})"
            )
            if len(args) > 1:
                text = f"choose({args[1]}, {text}, {self._start(i)})"
        if text:
            self._say(f"e{i} = {text}")
        if i in self.folded:
            self._fold_line(i, in_lanes, a)
            return
        self._fold_element(i, args, bool(text), line)

    def _fold_element(self, i: int, args: list[str], has_value: bool, line: int) -> None:
        """Fold one element to its place; where lines have that in common, it is read before the first of them
        and written after the last."""
        number = self.first_ending + i
        name, is_shared = self._named(number, line), self.layout.still[number] and self.abreast > 1
        if self.layout.inner[number] == "c":
            place = f"{name}_v[i]"
        else:
            if not is_shared or not line:
                self._say(f"g{i} = array_at({self._place(number, line)}, (1,), {self.codes[number]})")
            place = f"g{i}[0]"
        here = f"h{i}" if is_shared else place
        if is_shared and not line:
            self._say(f"{here} = {place}")
        step = self._step(i, here, f"e{i}") if has_value else f"multiply_add({here}, {args[0]}, {args[1]})"
        self._say(f"{here} = {step}")
        if is_shared and line == self.abreast - 1:
            self._say(f"{place} = {here}")

    def _fold_line(self, i: int, in_lanes: bool, a: str) -> None:
        if i in self.sought:
            self._say(f"v{i}[i] = e{i}")
        if i in self.laned and in_lanes:
            self._say(f"l{i}[j] = {self._step(i, f'l{i}[j]', f'e{i}')}")
            return
        fold, dtype = self._folds(i)
        row = FOLD_TEXTS[fold]
        if row.line and dtype.kind == "f" and i not in self.sought:
            self._say(f"{a} = {row.line.format(a, f'e{i}')}")
        else:
            self._say(f"{a} = {self._step(i, a, f'e{i}')}")

    def _step(self, i: int, a: str, b: str) -> str:
        if i in self.sought:  # NaN are looked for once their line is there
            return f"choose({b} {self._sign(i)} {a}, {b}, {a})"
        fold, dtype = self._folds(i)
        return FOLD_TEXTS[fold].step.format(a, b, T=code(dtype))

    def _folds(self, i: int) -> tuple[str, np.dtype[Any]]:
        """What an ending folds its values by, and that one's type: for places, the extreme's."""
        ending = self.segment.endings[i]
        if ending.fold in EXTREMES:
            return EXTREMES[ending.fold], self.dtype_of[ending.args[0]]
        return ending.fold, ending.dtype

    def _start(self, i: int) -> str:
        fold, dtype = self._folds(i)
        value = start(fold, dtype, len(self.segment.endings[i].args) > 1)
        if dtype.kind == "b":
            return str(bool(value))
        special = {"inf": "infinity", "-inf": "-infinity"}
        return f"{code(dtype)}({special.get(str(value), str(value))})"

    def _is_laned(self, i: int) -> bool:
        fold, dtype = self._folds(i)
        return dtype.kind == "f" and (i in self.sought or FOLD_TEXTS[fold].lanes)


def _of(letter: str, i: int, line: int) -> str:
    """The name of an ending's value in one of the lines that go side by side."""
    return f"{letter}{i}_{line}" if line else f"{letter}{i}"


def emit(parts: list[tuple[Segment, Layout]]) -> str:
    """The source of the module whose `kernel(table)` runs segments one after the other on each block.

    The table has one line a block, with the numbers of all segments side by side. Equal loops have equal
    sources.
    """
    functions, calls, at = [], [], 0
    for i, (segment, layout) in enumerate(parts):
        emitter = _Emitter(segment, layout)
        functions.append(emitter.function(f"segment_{i}"))
        calls.append(f"        segment_{i}(table[b, {at}:{at + emitter.fields}])\n")
        at += emitter.fields
    head = "@compiled\ndef kernel(table):\n"
    text = "\n\n".join([*functions, head + "    for b in range(table.shape[0]):\n" + "".join(calls)])
    return titled(" > ".join(name for segment, _ in parts for name in segment.names), HEAD + text)
