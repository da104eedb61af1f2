"""The documentation's Python examples run, and its links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import re
from pathlib import Path

import numpy
import pytest

import spartan_ng

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MADE = {
    "adding-an-operation.md": "import numpy as np; from spartan_ng.ops.elementwise import Elementwise",
    "apps.md": "X = numpy.random.default_rng(0).random((50, 3)); y = X @ [1.0, 2.0, 3.0]",
    "optimizer.md": "X = np.array(numpy.random.default_rng(0).random((50_000, 30))); w = np.ones(30);"
    "y = X[:, 0] > 0.5",
}
"""What the examples of a page take as given."""
ELSEWHERE = {"deployment.md"}
"""Pages whose examples need several machines; tests/cluster does what they say. The tutorial's cells are
run by tests/test_site.py."""


def _blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if _blocks(p) and p.name not in ELSEWHERE], ids=lambda p: p.name
)
def test_examples_run(page, capsys, monkeypatch, tmp_path) -> None:
    """The blocks of a page run one after the other, in one namespace; sessions print what they say."""
    monkeypatch.chdir(tmp_path)
    namespace: dict = {"np": spartan_ng, "numpy": numpy}
    exec(MADE.get(page.name, ""), namespace)
    for block in _blocks(page):
        if block.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(block, namespace, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(session).failed == 0, capsys.readouterr().out
        else:
            exec(compile(block, page.name, "exec"), namespace)


def test_examples_of_deployment_name_what_exists() -> None:
    for block in _blocks(ROOT / "docs" / "deployment.md"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom | ast.Import):
                exec(ast.unparse(node), {})


def test_the_architecture_names_every_room_and_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([\w/.]+)` \|.*\|(.*)\|$", text, re.MULTILINE)
    rooms = {p.parent for p in (ROOT / "spartan_ng").glob("*/__init__.py")}
    folders = {f"{p.name}/" if p.is_symlink() else f"spartan_ng/{p.name}/" for p in rooms}
    assert folders <= {name for name, _ in rows}
    for name, files in rows:
        for file in re.findall(r"`([\w.]+)`", files):
            assert (ROOT / name / file).exists(), f"{name}{file}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_readme_names_exactly_two_make_commands_first() -> None:
    text = (ROOT / "README.md").read_text()
    section = text.split("## Two commands")[1].split("## ")[0]
    assert re.findall(r"^make (\w+)", section, re.MULTILINE) == ["demo", "test"]
