"""Code that is read ahead of a result: instructions as `dis` reads them, and as few as are asked for."""

from __future__ import annotations

import argparse
import ast
import dis
import inspect
import types
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

from spartan_ng.api.core import ahead


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code, and those of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


@pytest.mark.parametrize("module", [argparse, ast, numpy.linalg._linalg])
def test_instructions_are_read_as_dis_reads_them(module: types.ModuleType) -> None:
    """Their arguments, though extended, their lines, and which are jumped to; whichever is read first."""
    for code in codes(compile(inspect.getsource(module), "<text>", "exec")):
        check(code)


def check(code: types.CodeType) -> None:
    """That all instructions are what `dis` says, the last one read first."""
    lines = {place: line for begin, end, line in code.co_lines() for place in range(begin, end, 2)}
    expected, is_label = [], False
    for i in dis.get_instructions(code):
        is_label = is_label or i.is_jump_target
        if i.opname not in ("CACHE", "NOP", "EXTENDED_ARG"):
            expected.append((i.offset, i.opcode, i.arg or 0, is_label, lines[i.offset]))
            is_label = False
    text = ahead._Text(code)
    found = [(*text[n], text.line(n)) for n in reversed(range(len(text)))]
    assert found[::-1] == expected


def test_arguments_are_extended_and_jumps_are_long() -> None:
    """Of a loop over a thousand constants and names."""
    lines = "\n".join(f"    q{n} = a * {n + 1000} + b" for n in range(1000))
    code = compile(f"while a:\n{lines}\n    if c:\n        continue\n    b = a\n", "<text>", "exec")
    assert sum(i.opname == "EXTENDED_ARG" for i in dis.get_instructions(code)) > 1000
    check(code)


def test_few_instructions_of_a_long_function_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand lines, those about the operator."""
    lines = "\n".join(f"    q{n} = a * {n} + b[1:] - c" for n in range(1000))
    code = compile(f"def run(a, b, c):\n{lines}\n", "<text>", "exec").co_consts[0]
    read, own = [0], ahead._argument

    def counted(*given: Any) -> Any:
        read[0] += 1
        return own(*given)

    monkeypatch.setattr(ahead, "_argument", counted)
    places = [i.offset for i in dis.get_instructions(code) if i.opname == "BINARY_OP"]
    assert ahead.read_ahead(code, places[1500])[0] != ahead.NOT_TAKEN
    assert 0 < read[0] < 40
