"""What users' mistakes say, before anything starts."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

from spartan_ng.cli import main


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ssh", "host", "no-such.py"], "there is no script no-such.py"),
        (["ssh", __file__], "on which hosts?"),
        (["ssh"], "on which hosts?"),
        (["slurm", "no-such.py"], "there is no script no-such.py"),
        (["slurm"], "which script?"),
        (["mpi"], "which script?"),
        (["mpi", "--memory", "much", __file__], "'much' is not a number of bytes"),
        (["app", "kmean"], "Did you mean kmeans"),
        (["ap"], "Did you mean app"),
    ],
)
def test_what_is_missing_is_told(words, says):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert says in done.output


@pytest.mark.slow
def test_the_package_is_the_command_where_that_is_not_on_the_path():
    done = subprocess.run(
        [sys.executable, "-m", "spartan_ng", "app", "kmean"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Did you mean kmeans" in done.stderr) == (2, True), done.stderr
    assert done.stderr.startswith("Usage: python -m spartan_ng app")


def test_help_has_no_word_of_what_users_never_call():
    assert "attend" not in CliRunner().invoke(main, ["--help"]).output
