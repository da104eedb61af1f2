"""Workers by mpirun, of MPICH's wheel or of the system."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.launchers.conftest import ARGUMENTS, COMMAND, Place

PLACES = os.pathsep.join([*(str(Path(p) / "bin") for p in (sys.prefix, sys.base_prefix)), os.environ["PATH"]])


def _mpirun() -> str:
    """mpirun of MPICH's kind, "" where there is none."""
    for spec in (find_spec("mpich"), find_spec("mpi4py")):
        for parent in Path(spec.origin).parents if spec is not None and spec.origin else ():
            if (parent / "bin" / "mpiexec.hydra").exists():
                return str(parent / "bin" / "mpiexec.hydra")
    return shutil.which("mpiexec.hydra", path=PLACES) or ""


MPIRUN = _mpirun()
needs_mpirun = pytest.mark.skipif(not MPIRUN, reason="no mpirun of MPICH's kind is here")


@pytest.mark.slow
@needs_mpirun
def test_the_first_process_is_the_program_and_the_others_are_workers(place: Place):
    done = place.call(MPIRUN, "-n", "3", *COMMAND, "mpi", "--threads", "1", place.script(), *ARGUMENTS)
    assert done.returncode == 7, done.stderr
    place.check(done.stdout, 2)


MEETING = """
import os, sys
from spartan_ng.launchers import mpi
meeting = MEETING
said = meeting.gather("é" * 2000 + f" {meeting.rank}")
if meeting.rank == 0:
    assert said == ["é" * 2000 + f" {rank}" for rank in range(3)], said
told = meeting.share("from all=\\n" + "x" * 3000 if meeting.rank == 0 else "")
assert told == "from all=\\n" + "x" * 3000, told
sys.stdout.write(f"rank {meeting.rank} of {meeting.size}\\n")
"""
KINDS = ['ManagedMeeting(int(os.environ["PMI_FD"]))', "LibraryMeeting()"]


@pytest.mark.slow
@needs_mpirun
@pytest.mark.parametrize("kind", KINDS, ids=["managed", "library"])
def test_processes_meet_with_a_library_and_without(place: Place, kind):
    if "Library" in kind:
        pytest.importorskip("mpi4py")
        place.environment["LD_LIBRARY_PATH"] = str(Path(MPIRUN).parents[1] / "lib")
    program = MEETING.replace("MEETING", f"mpi.{kind}")
    done = place.call(MPIRUN, "-n", "3", sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of 3" for rank in range(3)]


@pytest.mark.slow
@needs_mpirun
def test_one_process_is_too_few(place: Place):
    done = place.call(MPIRUN, "-n", "1", *COMMAND, "mpi", place.script())
    assert done.returncode != 0
    assert "one more" in done.stderr
