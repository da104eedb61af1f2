"""A word is one thing: a class name stands in one module, or says here why it stands in several."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import spartan_ng

ROOT = Path(spartan_ng.__file__).parents[1]
ROOMS = ("spartan_ng", "master", "worker", "apps")
RESULT = "what an app finds, under its field's own word; no two apps are one program's"
PAPER = "the paper's word, in the room that follows the paper"
REPEATED = {
    "Factors": RESULT,
    "Fit": f"{RESULT}; in fusion, how a producer fits into a pass",
    "Estimate": f"{RESULT}; in fusion, what is known of a node before it runs",
    "Solution": f"{RESULT}; in the tiling, one option for each variable",
    "Stage": f"{PAPER}: a fused operator of its plan, and the step of a plan that it becomes",
    "Status": f"{PAPER}: whether an operator may grow; and the message that says who is there",
}
"""Names that stand in several modules, with the reason; none is added without one."""


def names() -> dict[str, set[str]]:
    """The classes of all modules, and where they stand."""
    found = defaultdict(set)
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            if file.resolve() == file:  # rooms are linked into the package
                for node in ast.parse(file.read_text()).body:
                    if isinstance(node, ast.ClassDef):
                        found[node.name].add(file.relative_to(ROOT).as_posix())
    return found


def test_a_class_name_stands_for_one_thing() -> None:
    repeated = {name: files for name, files in names().items() if len(files) > 1}
    new = {name: files for name, files in repeated.items() if name not in REPEATED}
    assert new == {}, "another word, or a reason in REPEATED"
    assert REPEATED.keys() - repeated.keys() == set(), (
        "these stand for one thing now: take them from the list"
    )
