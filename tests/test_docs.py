"""The documentation's Python examples run, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = ["user-guide.md", "operators.md", "differences.md"]
"""Pages whose blocks run one after the other, in one namespace."""


@pytest.mark.parametrize("name", RUN)
def test_examples_run(name, capsys) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / name).read_text(), re.DOTALL)
    assert blocks
    namespace: dict = {}
    for block in blocks:
        exec(compile(block, name, "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_readme_names_exactly_two_make_commands_first() -> None:
    text = (ROOT / "README.md").read_text()
    section = text.split("## Two commands")[1].split("## ")[0]
    assert re.findall(r"^make (\w+)", section, re.MULTILINE) == ["demo", "test"]
