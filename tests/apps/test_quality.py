"""Every app's example runs as it is typed, on files of the names it gives, and finds what others find."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import quality
from spartan_ng.apps import samples
from spartan_ng.apps.table import APPS
from spartan_ng.cli import main

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
LIBRARIES = {"lifelines": "lifelines", "statsmodels": "statsmodels", "scikit-learn": "sklearn"}


def run(arguments, folder) -> None:
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == 0, (done.output, done.exception)


def test_every_app_is_measured() -> None:
    assert set(quality.QUALITIES) == set(APPS)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", APPS)
def test_an_example_runs_as_typed_and_finds_what_others_find(name, monkeypatch) -> None:
    pytest.importorskip(LIBRARIES.get(quality.QUALITIES[name].reference, "scipy"))
    monkeypatch.setattr(quality, "SEEDS", 1)
    (row,) = quality.rows([name], run)
    drawn = quality.QUALITIES[name].drawn  # one start tells less than their mean
    assert row.worse <= (0.1 if drawn else quality.WORSE), row


def test_the_commands_of_the_page_run_as_typed(tmp_path) -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "apps.md"
    typed = re.findall(r"^spartan-ng (app .*)$", page.read_text(), re.MULTILINE)
    samples.write(tmp_path)
    for line in typed:
        run(shlex.split(line), tmp_path)
    assert len(typed) == 4


def test_what_is_worse_is_told() -> None:
    less, more, same = (
        quality.Quality("", "", lambda *_: 0.0, lambda *_: 0.0, b) for b in ("less", "more", "same")
    )
    assert less.worse(1.1, 1.0) == pytest.approx(0.1)
    assert less.worse(0.9, 1.0) < 0
    assert more.worse(-2.2, -2.0) == pytest.approx(0.1)
    assert [same.worse(0.9, 1.0), same.worse(1.1, 1.0)] == pytest.approx([0.1, 0.1])
