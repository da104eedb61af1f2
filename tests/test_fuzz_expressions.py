"""Random programs of expressions give NumPy's bits, and a planted fault is found and made short."""

from __future__ import annotations

import re
from typing import Any

import numpy
import pytest
from click.testing import CliRunner

import spartan_ng
from tests.fuzz import expressions
from tests.fuzz.texts import Text


def _ran(*arguments: str) -> Any:
    return CliRunner().invoke(expressions.main, [*arguments])


def test_programs() -> None:
    ran = _ran("--programs", "8", "--seed", "7000", "--keep-going")
    assert ran.exit_code == 0, ran.output


def test_programs_whose_expressions_are_compiled() -> None:
    ran = _ran("--programs", "2", "--seed", "7100", "--keep-going", "--compiled")
    assert ran.exit_code == 0, ran.output


def test_programs_are_drawn_again() -> None:
    assert Text(3).statements(5) == Text(3).statements(5)
    assert expressions.drawn(3, 128) == expressions.drawn(3, 128)


def test_a_planted_fault_is_found_and_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spartan_ng, "maximum", lambda x, y: numpy.minimum(x, y))
    ran = _ran("--programs", "200", "--seed", "5")
    assert ran.exit_code == 1
    shown = ran.output[ran.output.index("def program") :]
    assert "maximum" in shown
    seed = re.search(r"# --seed (\d+) --programs 1", ran.output)
    assert seed is not None
    monkeypatch.undo()
    assert _ran("--programs", "1", "--seed", seed[1]).exit_code == 0


def test_what_is_told_is_compared() -> None:
    text = ("t1 = (a / (a * 0)) + b",)
    program = expressions.Program(1, (2048,), "f8", expressions._any(1, 2048).head, text)
    assert expressions.fault(program) is None
    with spartan_ng.errstate(all="ignore"):
        quiet = expressions.run(program, spartan_ng)
    assert quiet.told == []
    assert expressions.run(program, numpy).told != []
