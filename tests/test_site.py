"""The site of the documents is built without a warning, and fetches nothing from others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import spartan_ng

pytest.importorskip("myst_nb", reason="notebooks are not installed here")

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
FETCHED = re.compile(
    r'<(?:script|img|iframe|link rel="(?:stylesheet|preload|preconnect)")[^>]*(?:src|href)="(https?:[^"]+)'
)


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing_from_others(tmp_path) -> None:
    """One test, since a build takes a while; a warning of Sphinx's is an error."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "docs",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    contents = (tmp_path / "index.html").read_text()
    for name in PAGES:
        text = (tmp_path / f"{name}.html").read_text()
        assert name == "index" or f'href="{name}.html"' in contents, name
        assert FETCHED.findall(text) == [], name
    check_reference((tmp_path / "reference.html").read_text())
    check_tutorial((tmp_path / "tutorial.html").read_text())


def check_reference(text: str) -> None:
    """It has what is not NumPy's, and what docstrings say behind their parameters is none of these."""
    entries = set(re.findall(r'id="spartan_ng\.(\w+)"', text))
    ours = {"cluster", "compute", "connect", "explain", "from_zarr", "join_update", "page", "tracing"}
    assert ours <= entries
    assert all(hasattr(spartan_ng, name) for name in entries)
    assert "MasterUnreachable" in text
    _, _, rest = text.partition('id="spartan_ng.cluster"')
    said, _, parameters = rest.partition("</dl>")[0].partition("Parameters")
    assert "may live across a notebook" in said
    assert "may live across a notebook" not in parameters


def check_tutorial(text: str) -> None:
    """It is a notebook that was executed: what its cells gave stands under them, and nobody complained."""
    shown = re.findall(r'<div class="cell_output.*?(?=<section|<div class="cell |</section)', text, re.DOTALL)
    said = [re.sub(r"<[^>]+>", "", part).strip() for part in shown]
    assert "not computed" in said[0]
    assert "1 stage on 1 worker" in "".join(said)
    assert "".join(shown).count("<svg xmlns") == 2
    assert any(part.startswith("array([1499998.5, 1499999.5, 1500000.5])") for part in said)
    assert "stderr" not in "".join(shown)
