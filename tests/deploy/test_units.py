"""systemd's units and the image's recipe, by the tools that check them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spartan_ng.cli import main

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
HADOLINT = shutil.which(
    "hadolint", path=f"{Path(sys.executable).parent}:{Path(pytest.__file__).parents[4] / 'bin'}"
)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_takes_its_units(unit, tmp_path):
    """All but the program's place, which is here another."""
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/opt/spartan-ng/bin/spartan-ng", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_name_options_that_there_are(unit):
    (command,) = (line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))
    _, role, *options = command.removeprefix("ExecStart=").split()
    told = CliRunner().invoke(main, [role, "--help"]).output
    assert all(option in told for option in options if option.startswith("--"))


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not here")
def test_the_image_has_a_recipe_that_hadolint_takes():
    done = subprocess.run(
        [str(HADOLINT), ROOT / "deploy" / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_recipe_runs_is_there():
    recipe = (ROOT / "deploy" / "Dockerfile").read_text()
    assert '"/opt/spartan-ng/deploy/start"' in recipe
    assert "COPY . /opt/spartan-ng" in recipe
    subprocess.run(["/bin/sh", "-n", ROOT / "deploy" / "start"], check=True)
