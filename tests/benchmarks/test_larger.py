"""The benchmark of files larger than memory: its rows are right, and it knows memory from files."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from benchmarks import larger
from benchmarks.larger_answers import FOUND, WRITTEN, Answers
from benchmarks.larger_floors import FLOORS, floor_s
from benchmarks.larger_sides import SIDES
from tests.waiting import until


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("row", [row for row in larger.ROWS if row != "nothing"])
@pytest.mark.parametrize("on", [on for on in SIDES if on != "2 workers"])
def test_rows_are_right(row: str, on: str, tmp_path: Path) -> None:
    if row in SIDES[on].lacks:
        pytest.skip(f"{on} has none")
    file = larger._made(str(tmp_path), 3_000_000)
    outcome = larger._once(row, file, on, 1_000_000, Answers(file), cold=False, looks=True)
    assert outcome.error == ""
    assert outcome.difference < 1e-9
    assert outcome.seconds > 0


@pytest.mark.some(4)
@pytest.mark.parametrize("row", [row for row in larger.ROWS if row != "nothing"])
def test_wrong_answers_are_found(row: str, tmp_path: Path) -> None:
    """NumPy's own is right; with one element that is another's, or a little off, it is not."""
    file, out, found = larger._made(str(tmp_path), 1_000_000), tmp_path / WRITTEN, tmp_path / FOUND
    answers = Answers(file)
    value = larger.ROWS[row](numpy, numpy.load(file, "r"), str(out))
    if value is not None:
        numpy.save(found, value)
    assert answers.difference(row, str(tmp_path)) < 1e-9
    path = found if value is not None else out
    wrong = numpy.atleast_1d(numpy.load(path))
    place = tuple(n // 3 for n in wrong.shape)
    if row.startswith("sort"):
        wrong[place] = wrong[(place[0] + 1,)]  # still in order
    else:
        wrong[place] += 0.001 * abs(wrong[place])
    numpy.save(path, wrong.reshape(numpy.load(path).shape))
    assert answers.difference(row, str(tmp_path)) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("counted", [larger._own_bytes, larger._about_bytes])
def test_memory_of_files_is_not_counted(counted: Callable[[int], int], tmp_path: Path) -> None:
    nbytes = 1 << 26
    (tmp_path / "x").write_bytes(bytes(nbytes))
    with larger.Watch() as watch, open(tmp_path / "x", "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        before = counted(os.getpid())
        assert sum(numpy.frombuffer(mapped, "u1")[::4096]) == 0
        assert counted(os.getpid()) < before + nbytes // 4
        own = numpy.ones(nbytes, "u1")
        assert counted(os.getpid()) > before + nbytes // 2
        until(lambda: watch.peak_bytes > before + nbytes // 2)  # as soon as it grows
        del own
    with larger.Watch() as watch:
        pass
    assert watch.peak_bytes > before // 2  # also where all is over before the first sample


def test_memory_that_a_process_has_of_its_parent_is_counted_once(tmp_path: Path) -> None:
    """Until it begins a program: here it waits for a pipe before that."""
    pipe, began = tmp_path / "pipe", tmp_path / "began"
    os.mkfifo(pipe)
    program = (
        "import os\n"
        f"waits = [(os.POSIX_SPAWN_OPEN, 0, {str(pipe)!r}, os.O_RDONLY, 0)]\n"
        f"words = ['touch', {str(began)!r}]\n"
        "os.waitpid(os.posix_spawn('/bin/touch', words, os.environ, file_actions=waits), 0)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        task = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until(lambda: task.read_text().split())
        assert [*larger._family(process.pid)] == [process.pid]
        assert process.pid in larger._family(os.getpid())
        pipe.open("w").close()
    assert began.exists()


def test_arithmetic_alone_is_known_of_rows_that_have_some() -> None:
    assert FLOORS.keys() <= larger.ROWS.keys()
    assert all(floor_s(row, 1_000_000) for row in FLOORS)
    assert floor_s("mean", 1_000_000) is None
