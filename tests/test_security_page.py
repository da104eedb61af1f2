"""The page on security: every threat has a test, and the test exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "security.md").read_text()
THREATS = re.findall(r"^\| (.+?) \| (to .+?) \| (.+?) \| (.+?) \|$", TEXT, re.MULTILINE)


def functions(path):
    return {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}


def commands():
    """What `python -m tests.faults` offers."""
    text = (ROOT / "tests" / "faults" / "__main__.py").read_text()
    (names,) = re.findall(r"for _command in \(([\w, ]+)\)", text)
    return names.split(", ")


@pytest.mark.parametrize(
    ("who", "tries", "happens", "tests"), THREATS, ids=[f"{w}: {t}" for w, t, *_ in THREATS]
)
def test_a_threat_has_tests_that_exist(who, tries, happens, tests):
    named = re.findall(r"`([^`]+)`", tests)
    assert named
    for name in named:
        if name.startswith("python -m tests.faults "):
            assert name.split()[-1] in commands()
            continue
        file, _, function = name.partition("::")
        assert (ROOT / file).is_file(), name
        if function:
            assert function in functions(ROOT / file), name


def test_the_table_is_read_whole():
    _, _, rest = TEXT.partition("## Threats")
    table = [line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("|")]
    assert len(THREATS) == len(table) - 2 >= 20
