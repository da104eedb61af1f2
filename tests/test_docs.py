"""The documentation's Python examples run, and its links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import shlex
from functools import reduce
from pathlib import Path
from typing import get_args

import click
import numpy
import pytest

import spartan_ng
from spartan_ng.cli import main
from spartan_ng.ops.by_ufunc import Fold
from spartan_ng.ops.folds import FOLDS, AnyFold, ArgFold

pytestmark = pytest.mark.every

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
    monkeypatch.setitem(FOLDS, "range", None)  # which a page adds, and which is taken out again
    del FOLDS["range"]
    for block in _blocks(page):
        if block.startswith(">>>"):
            session = doctest.DocTestParser().get_doctest(block, namespace, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            assert runner.run(session).failed == 0, capsys.readouterr().out
        else:
            exec(compile(block, page.name, "exec"), namespace)


def test_a_fold_has_what_the_page_says() -> None:
    """The members of each class of folds, with their parameters."""
    text = (ROOT / "docs" / "adding-an-operation.md").read_text()
    said = dict(re.findall(r"^\| `(\w+)\(([\w, ]+)\)` \|", text, re.MULTILINE))
    assert {*said} == {name for name, _ in inspect.getmembers(Fold, inspect.isfunction) if name[0] != "_"}
    for kind in get_args(AnyFold):
        for name, parameters in said.items():
            if (kind, name) != (ArgFold, "units"):
                own = [*inspect.signature(getattr(kind, name)).parameters][1:]
                assert ", ".join(own) == parameters, (kind, name)


_OTHERS = {".venv", ".tox", "build"}
EVERYWHERE = [p for p in sorted(ROOT.rglob("*.md")) if not _OTHERS & {*p.relative_to(ROOT).parts}]
KNOWN = {"python", "{code-cell} python", "", "sh", "yaml", "{eval-rst}", "{toctree}"}
"""What begins a block: Python's run here, cells when the site is built; commands are read below."""


def _fences(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^ *```([^`\n]*)\n(.*?)^ *```$", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_python_is_left_out(page) -> None:
    """Each block of Python is one that runs: under its name, and on a page that is looked at."""
    fences = _fences(page)
    assert {kind for kind, _ in fences} <= KNOWN
    assert page.read_text().count("```") == 2 * len(fences)
    others = [text for kind, text in fences if "python" not in kind]
    assert not [text for text in others if re.search(r"^(>>> |import |from )", text, re.MULTILINE)]
    assert page in PAGES or not _blocks(page)


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_are_there_with_their_options(page) -> None:
    """What a page says to type is taken by the command, as far as names of commands and options go."""
    typed = [text.replace("\\\n", " ") for kind, text in _fences(page) if kind in ("", "sh")]
    typed += [text.replace("\n", " ") for text in re.findall(r"(?<!`)`([^`]+)`", page.read_text())]
    for line in re.findall(r"^(?:.* )?spartan-ng .*", "\n".join(typed), re.MULTILINE):
        words = shlex.split(re.split(r" # |  ", line)[0].replace("…", ""))
        _parse(words[words.index("spartan-ng") + 1 :])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_names_are_there(page) -> None:
    """What a page calls by the package's name."""
    said = re.findall(r"`np((?:\.[a-zA-Z]\w*)+)", page.read_text())
    for name in {name.rstrip("_") for name in said}:
        reduce(getattr, name.split(".")[1:], spartan_ng)


def _parse(words: list[str]) -> None:
    command: click.Command = main
    context = click.Context(main)
    while isinstance(command, click.Group) and words:
        _, words, _ = command.make_parser(context).parse_args(words)
        if words:
            name, *words = words
            found = command.get_command(context, "kmeans" if name == "NAME" else name)
            assert found is not None, name
            command, context = found, click.Context(found, context, **found.context_settings)
    command.make_parser(context).parse_args(words)


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
