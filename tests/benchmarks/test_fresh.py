"""New processes that first runs are measured in."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import fresh

TELL = "import os, sys; print('PYTHONDONTWRITEBYTECODE' in os.environ, os.environ.get('A'), sys.argv[1:])"


@pytest.fixture(autouse=True)
def touches_little(monkeypatch):
    """The memory of this machine is for other tests, too."""
    monkeypatch.setattr(fresh, "_TOUCHED_BYTES", 1 << 20)


def test_a_process_keeps_byte_code_and_gets_what_it_is_given(monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert fresh.run_fresh(["-c", TELL, "x"], {"A": "b"}) == "False b ['x']\n"


def test_memory_is_touched_by_a_process_that_ends_before(monkeypatch):
    ran, run = [], subprocess.run

    def noted(command, **options):
        ran.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", noted)
    fresh.run_fresh(["-c", "pass"])
    assert [command[-1] for command in ran] == [str(1 << 20), "pass"]


def test_what_fails_says_so():
    with pytest.raises(subprocess.CalledProcessError) as caught:
        fresh.run_fresh(["-c", "raise SystemExit('no')"])
    assert caught.value.stderr == "no\n"


def test_what_is_not_done_in_time_says_so():
    with pytest.raises(subprocess.TimeoutExpired):
        fresh.run_fresh(["-c", "while True: pass"], limit_s=1.0)


def test_the_sides_of_numpy_import_nothing_of_the_package():
    """Which would have the heap keep memory for its arrays."""
    look = "import sys, benchmarks.programs, benchmarks.npbench; print('spartan_ng' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"
