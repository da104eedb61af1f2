"""The machine's rates: measured once, kept where nobody else can write, and never in the way of a program."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from spartan_ng.costs import measured
from spartan_ng.costs.measured import PROFILE_VARIABLE, assumed, measure, measure_later, rates

ROOM = 1 << 40
"""Memory that a program may take: enough to measure in."""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    there = tmp_path / "folder" / "profile.json"
    monkeypatch.setenv(PROFILE_VARIABLE, str(there))
    return there


def test_a_measurement_stays_within_its_bounds() -> None:
    for threads in (1, 2):
        for found, usual in zip(measure(threads) or assumed(threads), assumed(threads), strict=True):
            assert usual / 8 <= found <= 8 * usual


def test_a_busy_machine_is_not_measured(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "WAITS_S", (0.0, 0.0))
    monkeypatch.setattr(measured, "_QUIET", 0.0)
    thread = measure_later(1, ROOM)
    assert thread is not None
    thread.join()
    assert not path.exists()


@pytest.mark.parametrize("factor", [1e-6, 0.3, 1.0, 2.5, 1e6])
def test_rates_are_rounded_to_steps_near_the_assumed_one(factor: float) -> None:
    found = measured._settled(factor * 10**10, 10**10) / 10**10
    assert 1 / 8 <= found <= 8
    assert factor > 8 or factor < 1 / 8 or 0.8 < found / factor < 1.2


def test_the_next_program_has_what_was_measured(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "WAITS_S", (0.0,))
    monkeypatch.setattr(measured, "measure", lambda threads: (threads * 10**9, threads * 10**10))
    assert rates(3) == assumed(3)
    thread = measure_later(3, ROOM)
    assert thread is not None
    assert thread.daemon
    thread.join()
    assert rates(3) == (3 * 10**9, 3 * 10**10)
    assert rates(4) == assumed(4), "another number of threads is another machine"
    assert path.stat().st_mode & 0o077 == 0


def test_of_several_moments_the_middle_one_counts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([(5, 70), None, (9, 40), (7, 90), (8, 80), (8, 80), (99, 99)])
    monkeypatch.setattr(measured, "measure", lambda threads: next(found))
    monkeypatch.setattr(measured, "WAITS_S", (0.0,) * 4)
    programs = [(7, 70), (8, 80)]
    for usual in programs:  # four moments of the first, of the second as many as are left
        thread = measure_later(2, ROOM)
        assert thread is not None
        thread.join()
        assert rates(2) == usual
    assert measure_later(2, ROOM) is None, "often enough"
    assert next(found) == (99, 99)


def test_what_another_process_measures_counts_for_all(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir(mode=0o700)

    def meanwhile(wait_s: float) -> None:
        path.write_text(json.dumps({measured._identity(2): [[3, 4]]}))
        path.chmod(0o600)

    monkeypatch.setattr(measured, "sleep", meanwhile)
    monkeypatch.setattr(measured, "WAITS_S", (1.0,))
    twice: list[int] = []
    monkeypatch.setattr(measured, "measure", twice.append)
    thread = measure_later(2, ROOM)
    assert thread is not None
    thread.join()
    assert rates(2) == (3, 4)
    assert not twice


FOUND = [
    json.dumps({measured._identity(2): found})
    for found in (5, {"a": 1}, [1, 1], [[1, -1]], [[1, 1], [1, 1, 1]], [[1.5, 2]], [])
]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', *FOUND, "\x00"])
def test_a_broken_file_is_no_profile(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text(text)
    path.chmod(0o600)
    assert rates(2) == assumed(2)


def test_a_file_that_others_may_write_is_no_profile(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text(json.dumps({measured._identity(2): [[1, 1]]}))
    path.chmod(0o666)
    assert rates(2) == assumed(2)
    path.chmod(0o600)
    assert rates(2) == (1, 1)


@pytest.mark.some(1)
@pytest.mark.parametrize("threads", [1, 2, 64])
def test_a_measurement_is_a_small_part_of_what_the_program_may_take(
    path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """It stood beside the blocks of plans that keep to a budget, and took as much as they."""
    taken: list[int] = []
    monkeypatch.setattr(measured, "WAITS_S", (0.0,))
    monkeypatch.setattr(measured, "_QUIET", float("inf"))

    def most(n: int) -> int:
        tracemalloc.start()
        try:
            measure(n)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    monkeypatch.setattr(measured, "measure", lambda n: taken.append(most(n)))
    for budget in (10**8, 10**10):
        thread = measure_later(threads, budget)
        if thread is not None:
            thread.join()
            assert taken.pop() < budget // 4
    assert thread is not None, "any machine of today is measured"


def test_a_busy_machine_is_noticed_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever else is at work is left what there is, and after few rounds."""
    monkeypatch.setattr(measured, "_QUIET", 0.0)
    tracemalloc.start()
    try:
        assert measure(1) is None
        assert tracemalloc.get_traced_memory()[1] < measured._STREAM_BYTES
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_short_program_measures_nothing(path: Path) -> None:
    program = "import spartan_ng as np; np.config.small_bytes = 0; print(float(np.arange(100.0).sum()))"
    subprocess.run([sys.executable, "-c", program], check=True)
    assert not path.exists()


@pytest.mark.slow
def test_a_program_may_end_while_it_is_measured(path: Path) -> None:
    program = (
        "import atexit, threading; from spartan_ng.costs import measured\n"
        "begun, whole = threading.Event(), measured._together\n"
        "def together(*args):\n"
        "    begun.set()\n"
        "    while True: whole(*args)\n"
        "measured._together = together\n"
        "measured.WAITS_S = (0.0,)\n"
        "thread = measured.measure_later(2, 1 << 40)\n"
        "atexit.register(thread.join)\n"
        "begun.wait()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert not done.stderr


def test_assumed_rates_are_neither_read_nor_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROFILE_VARIABLE, "assumed")
    assert measure_later(2, ROOM) is None
    assert rates(2) == assumed(2)
