"""No test knows the time: a bound on seconds fails on a machine that is slow or busy."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = sorted(p for p in HERE.rglob("*.py") if p.name.startswith("test_") or p.name == "conftest.py")
CLOCKS = frozenset({"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time_ns", "Timer"})
FOR_EVER_S = 86_400.0
"""Who sleeps, or waits, for a day does so for ever: pytest's limit comes first."""
LIMITS = frozenset({"timeout", "timeout_s"})


def broken_rules(text: str) -> list[str]:
    """Uses of clocks, short sleeps and short waits in a module, and in the programs that its strings are."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name in CLOCKS:
                found.append(f"line {node.lineno}: {name}")
            case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant(float() | int() as seconds)]):
                found += [] if seconds >= FOR_EVER_S else [f"line {node.lineno}: sleep"]
            case ast.Call(func=ast.Attribute(attr="wait" | "join"), args=[ast.Constant(float() | int())]):
                found.append(f"line {node.lineno}: a wait for seconds")
            case ast.Call(func=ast.Attribute(attr="wait" | "join"), args=[ast.Name(id=name)]) if (
                name.endswith("_S")
            ):
                found.append(f"line {node.lineno}: a wait for {name}")
            case ast.Call(func=ast.Attribute(attr="run" | "communicate"), keywords=keywords):
                limits = [k.arg for k in keywords if k.arg in LIMITS]
                found += [f"line {node.lineno}: {limit}" for limit in limits]
            case ast.Constant(str() as program) if "\n" in program and "import " in program:
                found += _in_program(program, node.lineno)
    return found


def _in_program(program: str, line: int) -> list[str]:
    try:
        return [f"line {line}, inside: {rule}" for rule in broken_rules(program)]
    except SyntaxError:
        return []


@pytest.mark.every
@pytest.mark.parametrize("file", FILES, ids=lambda p: str(p.relative_to(HERE)))
def test_no_test_knows_the_time(file: Path) -> None:
    assert broken_rules(file.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() - begin < 2",
        "begin = perf_counter()",
        "time.sleep(0.1)",
        "threading.Timer(0.4, kill).start()",
        "event.wait(10)",
        "thread.join(5)",
        "thread.join(_LIMIT_S)",
        "subprocess.run(command, timeout=60)",
        r'PROGRAM = "import time\ntime.sleep(60)\n"',
    ],
)
def test_what_knows_the_time_is_found(line: str) -> None:
    assert broken_rules(line) != []


def test_waiting_for_ever_is_no_clock() -> None:
    assert broken_rules("time.sleep(100_000); thread.join(); ','.join('ab')") == []
