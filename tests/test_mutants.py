"""Faults that are put into the code: each is one, at its place, and there only when it is asked for."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import switch
from tests.mutants.sites import SWITCH, drawn, sites, switched
from tests.mutants.tree import CORE, SCHEMA, connected, is_chosen

TEXT = '''"""A module."""

from __future__ import annotations

import math


def inside(x: int, low: int = 3) -> bool:
    """Whether x is there: "é" counts two bytes before it."""
    name = f"{x + 1}"; return "é" == "é" and not x < low and (
        x <=
        10
    )


@compiled
def untouched(x):
    return x + 1
'''


def run(text: str, active: int) -> Any:
    space: dict[str, Any] = {SWITCH: lambda number: number == active, "compiled": lambda f: f}
    exec(text.replace(f"from tests.mutants.switch import at as {SWITCH}\n", ""), space)
    return space


def test_every_kind_of_fault_is_found_and_nothing_that_does_not_run() -> None:
    found = {(s.before, s.after) for s in sites("m.py", TEXT)}
    assert found == {
        ("x < low", "x <= low"),
        ("x <= 10", "x < 10"),
        ("not x < low", "x < low"),
        ("'é' == 'é'", "'é' != 'é'"),
        ("'é' == 'é' and (not x < low) and (x <= 10)", "'é' == 'é' or not x < low or x <= 10"),
    }
    assert {(s.before, s.after) for s in sites("m.py", TEXT, numbers=True)} - found == {
        ("3", "4"),
        ("10", "11"),
    }


def test_what_is_compiled_from_its_text_is_not_chosen() -> None:
    kernels = Path("spartan_ng/kernels/compiled")
    assert is_chosen(kernels / "folds.py", CORE)
    assert not is_chosen(kernels / "loops/prefixes.py", CORE)


@pytest.mark.parametrize("site", sites("m.py", TEXT, numbers=True), ids=lambda s: s.after)
def test_a_fault_is_there_only_when_its_switch_says_so(site) -> None:
    text = switched(TEXT, [(5, site)])
    assert ast.get_docstring(ast.parse(text)) == "A module."
    right, wrong = run(text, -1)["inside"], run(text, 5)["inside"]
    plain = run(TEXT, -1)["inside"]
    values = range(15)
    assert [right(x) for x in values] == [plain(x) for x in values]
    assert [bool(wrong(x)) for x in values] != [plain(x) for x in values]


def test_what_is_drawn_depends_on_the_seed_alone_and_never_overlaps(tmp_path) -> None:
    (tmp_path / "m.py").write_text(TEXT)
    one, again = drawn(tmp_path, ["m.py"], 20, 2, True), drawn(tmp_path, ["m.py"], 20, 2, True)
    assert one == again
    assert drawn(tmp_path, ["m.py"], 2, 2, True) == one[:2]
    together = switched(TEXT, list(enumerate(one)))
    assert together.count(f"{SWITCH}(") == len(one) > 2
    inside = run(together, -1)["inside"]
    assert [inside(x) for x in range(15)] == [run(TEXT, -1)["inside"](x) for x in range(15)]


def test_processes_note_together_who_comes_by(tmp_path) -> None:
    shared = tmp_path / "reached"
    shared.write_bytes(bytes(100))
    program = "from tests.mutants import switch as s; print(s.at({0}), s.at({1}), s.reached())"
    environment = {**os.environ, switch.REACHED: str(shared), switch.NUMBER: "7"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    said = [
        subprocess.run(
            [sys.executable, "-c", program.format(*numbers)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for numbers in ((7, 3), (5, 3))
    ]
    assert said == ["True False [3, 7]\n", "False False [3, 5, 7]\n"]


SHARP = "from tests.mutants.switch import active\n\n"
FILES = {
    "conftest.py": "def pytest_addoption(parser): parser.addoption('--seed')",
    "test_newer.py": "from tests.mutants.switch import is_newer\n\ndef test_newer(): pass",
    "test_unsteady.py": "def test_unsteady(): raise AssertionError",
    "test_blind.py": "def test_blind(): pass",
    "test_sharp.py": f"{SHARP}def test_sharp(): assert active < 0",
    "test_ends.py": f"import os\n{SHARP}def test_ends(): active < 0 or os._exit(0)",
}
WITNESSES = {
    ("newer", "unsteady", "blind", "sharp"): ("seen", "test_sharp.py::test_sharp"),
    ("newer", "unsteady", "blind", "ends"): ("seen", "test_ends.py::test_ends: ended with 0"),
    ("newer", "unsteady", "blind"): ("survives", "1 tests"),
    ("newer", "unsteady"): ("no test", "no test comes by"),
}
JUDGE = """
import sys
from pathlib import Path

import pytest
from tests.mutants.run import judge
from tests.mutants.tree import connected

for number in range(int(sys.argv[1])):
    judge(Path("own").resolve(), connected(Path(".")), number, 60.0, is_early=False)
"""


@pytest.mark.whole
def test_what_fails_without_the_fault_too_is_no_witness(tmp_path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for folder in "own", "kernels":
        (tmp_path / folder).mkdir()
    (site,) = sites("m.py", "a < b")
    state = connected(tmp_path)
    state.executescript(SCHEMA)
    for number, names in enumerate(WITNESSES):
        state.execute("insert into site values (?, ?)", (number, json.dumps(asdict(site))))
        for seconds, name in enumerate(names):
            test = f"test_{name}.py::test_{name}"
            row = test, f"test_{name}.py", seconds / 10, True
            state.execute("insert or replace into test values (?, ?, ?, ?)", row)
            state.execute("insert into reach values (?, ?)", (number, test))
    subprocess.run(
        [sys.executable, "-c", JUDGE, str(len(WITNESSES))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    said = state.execute("select verdict, why from verdict order by number").fetchall()
    assert said == list(WITNESSES.values())
