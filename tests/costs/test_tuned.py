"""Numbers that choose between two ways by their speed stand in `costs/`, and say what set them.

What keeps small work at once stands behind the array API's door, and is no part of this.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.costs.limits import LIMITS

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("spartan_ng", "worker", "master")
COSTS, API = ROOT / "spartan_ng" / "costs", ROOT / "spartan_ng" / "api"
WHERE = """a number that chooses between two ways by their speed belongs in costs/choices.py, one that says
how much longer something takes in costs/tuned.py, with unit, meaning and what set it; a limit of memory, a
format or a protocol stays where it is, and goes on the list in tests/costs/limits.py"""
_LITERAL = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Load)


def number(node: ast.AST) -> float | None:
    """The number that is written there, if it is one."""
    if not all(isinstance(part, _LITERAL) for part in ast.walk(node)):
        return None
    try:
        value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})  # type: ignore[arg-type]
    except TypeError:  # of texts, perhaps
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def named(text: str) -> Iterator[tuple[str, str]]:
    """The names that a module gives to numbers which are no mere counts, and what stands below each."""
    body = ast.parse(text).body
    for here, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(here, ast.Assign | ast.AnnAssign) or here.value is None:
            continue
        targets = here.targets if isinstance(here, ast.Assign) else [here.target]
        names = [n for t in targets for n in (t.elts if isinstance(t, ast.Tuple) else [t])]
        values = here.value.elts if isinstance(here.value, ast.Tuple) else [here.value]
        found: list[Any] = [number(value) for value in values]
        if not any(n is not None and (isinstance(n, float) or abs(n) >= 4) for n in found):
            continue
        said = after.value if isinstance(after, ast.Expr) else None
        for name in names:
            if isinstance(name, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", name.id):
                yield name.id, str(said.value) if isinstance(said, ast.Constant) else ""


def places() -> dict[str, set[str]]:
    """The names of numbers outside `costs/`, by their folders."""
    found: dict[str, set[str]] = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if not {COSTS, API} & {*path.parents}:
                names = found.setdefault(str(path.relative_to(ROOT).parent), set())
                names.update(name for name, _ in named(path.read_text()))
    return found


@pytest.mark.slow
def test_numbers_outside_are_limits() -> None:
    known = {place: {*names.split()} for place, names in LIMITS.items()}
    there = places()
    new = [f"{p}: {n}" for p, names in there.items() for n in sorted(names - known.get(p, set()))]
    assert not new, f"{', '.join(new)}: {WHERE}"
    gone = [f"{p}: {n}" for p, names in known.items() for n in sorted(names - there.get(p, set()))]
    assert not gone, f"{', '.join(gone)}: strike what is no more from tests/costs/limits.py"


@pytest.mark.parametrize("module", ["choices", "tuned"])
def test_every_tuned_number_says_what_it_means_and_what_set_it(module: str) -> None:
    numbers = list(named((COSTS / f"{module}.py").read_text()))
    assert numbers
    for name, said in numbers:
        assert re.search(r"[a-z]{3}.*\.", said, re.DOTALL), f"{name} says nothing of itself"
        assert re.search(r"\((chosen|`benchmarks|[Mm]easured)", said), f"{name} does not say what set it"
        for benchmark in re.findall(r"`benchmarks[ .]([\w-]+)`", said):
            there = ROOT / "benchmarks" / f"{benchmark}.py"
            listed = (ROOT / "benchmarks" / "__main__.py").read_text()
            assert there.exists() or f'"{benchmark}"' in listed, f"{name}: no benchmark {benchmark}"


def test_a_new_number_is_found() -> None:
    assert dict(named('LEAST = 1 << 14\n"""Elements."""\n_A, _B = 0.5, 3\nx = 9\nN = None\n')) == {
        "LEAST": "Elements.",
        "_A": "",
        "_B": "",
    }
