"""One door of eager work: which calls pass it, and that nobody else in the API has a bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import spartan_ng
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.api.core import quick
from tests.api.at_once_cases import LEAST, MOST, NEVER, is_at_once, write_files
from tests.test_programs import running_on

API = Path(spartan_ng.__file__).parent / "api"
DOOR = API / "core" / "door.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the files are that calls read."""
    path = str(tmp_path_factory.mktemp("files"))
    write_files(path)
    return path


def check(text: str, least: int, folder: str) -> None:
    """A call is answered at once from a threshold on, and below it is not."""
    if least == NEVER:
        assert not is_at_once(text, MOST, folder)
        return
    assert is_at_once(text, least, folder)
    assert is_at_once(text, MOST, folder)
    assert least == 0 or not is_at_once(text, least - 1, folder)


@pytest.mark.some(80)
@pytest.mark.skipif(not quick.IS_COMPILED, reason="some bounds of results are wider in Python")
@pytest.mark.parametrize("text", LEAST)
def test_calls_are_answered_at_once_from_a_threshold_on(
    text: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, elsewhere = LEAST[text]
    check(text, here, folder)
    # What workers would take longer for depends on how fast this machine is.
    monkeypatch.setattr(session, "is_sooner_at", lambda *work: False)
    with running_on(SimulatedBackend(2)):
        check(text, elsewhere, folder)


# --- nobody else has a bound -----------------------------------------------------------------------------

FILES = sorted(p for p in API.rglob("*.py") if p != DOOR)
OF_THE_DOOR = frozenset(
    {"small_bytes", "SURELY", "PLAIN_BYTES", "SHORT", "TINY_FLOPS", "QUICK_FLOPS", "AT_ONCE_FLOPS", "LOOPED"}
)
GIVEN = frozenset(
    ("ndarray/array.py", name) for name in ("SURELY", "PLAIN_BYTES", "QUICK_FLOPS", "AT_ONCE_FLOPS", "LOOPED")
)
"""Thresholds that the class gives to what is compiled, which answers the plain case by them."""
MOST_OF_A_COUNT = 15
"""Numbers up to here count copies, shares and tries."""
OTHER_NUMBERS = {
    "how a plan cuts, or which of two plans is made": {
        "algebra/factorizations.py": {"PANEL", "GROUPS", "LARGE"},
        "base/segments.py": {"_GROUPED", "_FEW_SEGMENTS", "_MOST_SEGMENTS"},
        "core/chains.py": {"CHAIN"},
        "core/holders.py": {"MANY"},
        "drawing/generator.py": {"_COLUMNS"},
        "elementwise/operators.py": {"_TRIPLES"},
        "numeric/filters.py": {"_TAPS"},
        "ordering/sets.py": {"_COMPARED", "_FEW", "_LONG", "_TOLD", "_SHARE", "_SPAN"},
    },
    "what memory has room for, or the disk": {
        "algebra/factorizations.py": {"GROUP_BYTES", "GROUP_SHARE"},
        "drawing/streams.py": {"PIECE", "_SWAPS", "_FEW_BYTES"},
        "files/saving.py": {"PART_BYTES"},
        "files/sinks.py": {"_PART_BYTES"},
        "files/text.py": {"_ROWS", "_READ_BYTES", "_LOOKED_BYTES"},
        "numeric/vectorized.py": {"_OBJECT_BYTES"},
        "places/resizing.py": {"_UNIT_BYTES"},
    },
    "what NumPy has so, too": {
        "core/conversion.py": {"MOST_AXES"},
        "core/kinds.py": {"_OWN_DTYPES"},
        "drawing/streams.py": {"_TAIL_OF"},
        "places/flat.py": {"MOST_AXES_OF_FLAT"},
        "places/taking.py": {"_MOST_OPERANDS"},
        "statistics/histograms.py": {"_EXACT"},
    },
    "how something is done that is done at once either way": {
        "core/work.py": {"_BISECTED", "_LONG"},
    },
    "what is shown, and when something is looked at again": {
        "core/summaries.py": {"_SIDE", "_LINES"},
        "core/watch.py": {"_LINES"},
    },
}
"""Numbers of the API that are no bounds of eager work, by what they are."""


def number(node: ast.AST) -> float | None:
    """The number that an expression of numbers is; None of others."""
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(op=ast.LShift() | ast.Mult() | ast.Pow()) if None not in map(
            number, (node.left, node.right)
        ):
            return float(eval(compile(ast.Expression(node), "a number", "eval")))
    return None


def numbers(tree: ast.Module) -> Iterator[str]:
    """Names of a module's numbers, but for small counts."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            target = node.targets[-1]
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = [*zip(target.elts, node.value.elts, strict=True)]
            for name, value in pairs:
                found = number(value)
                if isinstance(name, ast.Name) and found is not None and found > MOST_OF_A_COUNT:
                    yield name.id


def compared(tree: ast.Module) -> Iterator[str]:
    """Comparisons of bytes, sizes or operations with a number that has no name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            names = {getattr(n, "attr", getattr(n, "id", "")) for side in sides for n in ast.walk(side)}
            large = [n for n in map(number, sides) if n is not None and n > MOST_OF_A_COUNT]
            if large and not names.isdisjoint({"nbytes", "size", "flops", "prod", "len", "itemsize"}):
                yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.every
@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(API)))
def test_nobody_but_the_door_has_a_bound(file: Path) -> None:
    name, tree = file.relative_to(API).as_posix(), ast.parse(file.read_text())
    read = {getattr(n, "attr", getattr(n, "id", None)) for n in ast.walk(tree)} & OF_THE_DOOR
    assert {r for r in read if (name, r) not in GIVEN} == set(), "ask core/door.py"
    allowed = set[str]().union(*(files.get(name, ()) for files in OTHER_NUMBERS.values()))
    found = set(numbers(tree))
    assert found <= allowed, "bounds of what NumPy does at once stand in core/door.py; name what others are"
    assert allowed <= found, "these are gone: take them from the list"
    assert [*compared(tree)] == []


@pytest.mark.parametrize(
    "line", ["a.nbytes <= 1 << 20", "flops < 100_000", "64 >= len(items)", "prod(shape) * 8 > 4096"]
)
def test_bounds_without_names_are_seen(line: str) -> None:
    assert [*compared(ast.parse(line))] == [f"line 1: {ast.unparse(ast.parse(line))}"]
    assert [*numbers(ast.parse("_FEW, _MORE = 2, 1 << 10\nSOME = 8"))] == ["_MORE"]
