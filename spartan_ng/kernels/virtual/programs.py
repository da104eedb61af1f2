"""Put programs in the place of a stage's rows, where the user wants numexpr to run them.

Nothing else asks for them: NumPy's loops are vectorized, numexpr's take half a nanosecond of a core for each
element and function, so that NumPy's calls are done as soon or sooner, and need no building (`python -m
benchmarks virtual-chain-16 virtual-choices`).

A program has one value, so it is a row and those before it that nothing else reads. In the stage's place
stands another with as many registers: the program at its value's row, and nothing at the rows inside it, so
that the interpreter runs it like any other. Folds and what numexpr cannot express stay NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.kernels.compiled.formulas import code
from spartan_ng.kernels.virtual.machine import MOST_OPERANDS, ProgramRefused, build_program
from spartan_ng.kernels.virtual.texts import TEXTS, expression, obstacle
from spartan_ng.plan.stages import Fused

LONGEST = 48
"""Functions in a program's text; a value that is read twice stands in it twice."""


class VirtualProgram(Struct, frozen=True):
    """Rows that one program stands for, by their registers, the last its value's."""

    members: tuple[int, ...]
    operands: tuple[int, ...]
    text: str
    codes: tuple[str, ...]


class Programs(Struct, frozen=True):
    """A stage with programs, and what there is to say about it."""

    stage: Fused
    names: tuple[str, ...]
    """The functions of each program."""
    left: tuple[tuple[str, str], ...]
    """The maps that no program can express, each with the reason."""


def with_programs(stage: Fused, dtypes: list[np.dtype[Any]]) -> Programs:
    """The stage with all programs that there can be; `dtypes` are those of the reads."""
    rows, first = list(stage.rows), len(stage.reads)
    finder = _ProgramFinder(stage, dtypes)
    names = []
    for found in finder.programs():
        *inside, head = found.members
        row = rows[head - first]
        try:
            build_program(found.text, found.codes, len(row.shape))
        except ProgramRefused as refusal:
            finder.reasons[head] = f"numexpr refuses: {refusal}"
            continue
        names.append(" > ".join(str(rows[m - first].fn) for m in found.members))
        rows[head - first] = replace(
            row, kind="program", fn=found.text, args=found.operands, params=found.codes
        )
        for m in inside:
            rows[m - first] = replace(rows[m - first], kind="inside", args=(), params=())
    reasons = sorted(finder.reasons.items())
    left = tuple((str(stage.rows[i - first].fn), reason) for i, reason in reasons if reason)
    return Programs(replace(stage, rows=tuple(rows)) if names else stage, tuple(names), left)


class _ProgramFinder:
    """Cuts a stage's maps into programs, as long as they can be."""

    def __init__(self, stage: Fused, dtypes: list[np.dtype[Any]]) -> None:
        self.rows = stage.rows
        self.first = len(stage.reads)
        self.dtypes = [*dtypes, *(r.dtype for r in stage.rows)]
        self.axes = [*(len(r.shape) for r in stage.reads), *(len(r.shape) for r in stage.rows)]
        self.users: list[set[int]] = [set() for _ in self.dtypes]
        for i, row in enumerate(stage.rows, self.first):
            for a in row.args:
                self.users[a].add(i)
        self.outside = {w.register for w in stage.writes if w.reducer is None}
        self.outside.update(a for w in stage.writes if w.reducer is not None for a in w.reducer.args)
        self.reasons = {
            i: obstacle(row, [self.dtypes[a] for a in row.args]) or ("" if row.shape else "a single value")
            for i, row in enumerate(stage.rows, self.first)
            if row.kind == "map"
        }
        """By map: why it is in no program, or nothing."""

    def programs(self) -> Iterator[VirtualProgram]:
        """Every program of two functions or more."""
        long = self._too_long()
        heads: dict[int, int] = {}
        for i in reversed(range(self.first, len(self.dtypes))):
            if self.reasons.get(i) != "":
                continue
            readers = {-1 if u in long else heads.get(u, -1) for u in self.users[i]}
            head = readers.pop() if len(readers) == 1 and i not in self.outside else -1
            if head >= 0 and self._place(head) == self._place(i):
                heads[i] = head
            elif self.dtypes[i].kind == "b":
                self.reasons[i] = "numexpr has no product of truth values"
            else:
                heads[i] = i
        for head in sorted(set(heads.values())):
            found = self._program(head, [i for i, h in sorted(heads.items()) if h == head])
            if found is not None:
                yield found

    def _place(self, i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        row = self.rows[i - self.first]
        return row.shape, row.labels

    def _too_long(self) -> set[int]:
        """Rows whose text takes no other's in, as it would get too long."""
        lengths: dict[int, int] = {}
        long = set()
        for i, row in enumerate(self.rows, self.first):
            if self.reasons.get(i) == "":
                text = TEXTS[str(row.fn)].text if row.fn != "cast" else "{0}"
                taken = (lengths.get(a, 0) * text.count(f"{{{k}}}") for k, a in enumerate(row.args))
                lengths[i] = 1 + sum(taken)
                if lengths[i] > LONGEST:
                    lengths[i] = 1
                    long.add(i)
        return long

    def _program(self, head: int, members: list[int]) -> VirtualProgram | None:
        texts: dict[int, str] = {}
        operands: list[int] = []
        for i in members:
            args = self.rows[i - self.first].args
            for a in args:
                if a not in members and a not in operands:
                    operands.append(a)
            names = [texts.get(a) or f"a{operands.index(a)}" for a in args]
            texts[i] = expression(self.rows[i - self.first], names, [self.dtypes[a] for a in args])
        if len(members) < 2 or len(operands) > MOST_OPERANDS:
            return None
        if max(self.axes[a] for a in operands) != self.axes[head]:
            return None  # its shape is not that of its operands
        codes = tuple(code(self.dtypes[a]) for a in operands)
        return VirtualProgram(tuple(members), tuple(operands), texts[head], codes)
