"""The bar: on a terminal and for long work only."""

from __future__ import annotations

import fcntl
import io
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from unittest.mock import patch

import numpy
import pytest

import spartan_ng as np
from spartan_ng import progress
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels import blocks
from tests.test_programs import running_on


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch) -> Terminal:
    """A terminal for stderr (not a fixture: pytest puts its own stderr in place after fixtures)."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_silent_where_stderr_is_no_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.progress() as bar:
        assert bar is None


def test_option_overrules_the_terminal(monkeypatch) -> None:
    terminal(monkeypatch)
    with config.override(progress=False), progress.progress() as bar:
        assert bar is None


def test_option_shows_a_bar_without_a_terminal(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with config.override(progress=True), progress.progress() as bar:
        assert bar is not None


def test_short_work_shows_nothing(monkeypatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY_S", 86_400.0)
    bar = progress.Bar()
    bar(1, 2)
    bar(2, 2)
    bar.close()
    assert stream.getvalue() == ""


def test_long_work_shows_how_far_it_is(monkeypatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    bar = progress.Bar()
    bar(3, 8)
    bar.close()
    shown = stream.getvalue()
    assert "3/8" in shown
    assert "spartan_ng" in shown
    assert shown.endswith("\r")


def test_a_part_of_a_stage_tells_the_time_that_is_left(monkeypatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    bar = progress.Bar()
    bar(0, 2)
    with patch.object(bar._bar, "_time", lambda: bar._bar.start_t + 60):
        bar._shows_from = 0.0
        bar(0.25, 2)
    bar.close()
    assert "0.25/2 stages [01:00<07:00]" in stream.getvalue()


def test_the_time_before_a_bar_is_shown_counts(monkeypatch) -> None:
    """An eighth in 30 seconds that nobody saw, and the same again: three minutes are left."""
    stream = terminal(monkeypatch)
    bar = progress.Bar()
    bar._began -= 30
    bar._shows_from = 0.0
    bar(0.25, 2)
    assert "0.25/2 stages [00:30<03:30]" in stream.getvalue()
    with patch.object(bar._bar, "_time", lambda: bar._bar.start_t + 60):
        bar._shows_from = 0.0
        bar(0.5, 2)
    bar.close()
    assert "0.5/2 stages [01:00<03:00]" in stream.getvalue()


@pytest.mark.parametrize("columns", [0, 60])
@pytest.mark.parametrize("lines", [0, 20])
def test_terminals_of_any_size_show_it(columns: int, lines: int, monkeypatch) -> None:
    """Those that programs make have none unless it is set."""
    there, here = os.openpty()
    fcntl.ioctl(here, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with open(here, "w") as stream, open(there, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(progress, "DELAY_S", 0.0)
        with progress.progress() as bar:
            assert bar is not None
            bar(3, 8)
            shown = b""
            while b"3/8" not in shown:  # for ever, if nothing is drawn: the test's own timeout ends it
                shown += screen.read(1 << 12)


def test_a_bar_never_goes_back(monkeypatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    bar = progress.Bar()
    for done in (0.5, 0.25):
        bar._shows_from = 0.0
        bar(done, 2)
    bar.close()
    assert "0.5/2" in stream.getvalue()
    assert "0.25/2" not in stream.getvalue()


def test_long_stages_are_told_in_parts() -> None:
    told: list[tuple[float, int]] = []
    lock = threading.Lock()

    def report(done: float, total: int) -> None:
        with lock:
            told.append((done, total))

    backend = EmbeddedBackend(2)
    run = backend.run
    with (
        running_on(backend),
        patch.object(backend, "run", lambda plan, inputs, progress: run(plan, inputs, report)),
        patch.object(blocks, "_MOST_ELEMENTS", 1 << 12),
        config.override(small_bytes=0),
    ):
        x = np.random.default_rng(0).random((700, 1000))
        numpy.testing.assert_allclose(x.mean(), numpy.random.default_rng(0).random((700, 1000)).mean())
    stages = {total for _, total in told}
    assert len(stages) == 1
    (total,) = stages
    within = [done for done, _ in told if 0 < done < 0.9 * total]
    assert len(within) >= 8  # nearly all of the work is the first stage's
    assert told[-1][0] == total
    first = sorted({done for done, _ in told if 0 < done < 1})
    each = [first[0] * k for k in range(1, len(first) + 1)]
    assert first == pytest.approx(each), "no part is left out, or told twice"


_RANDOM = """
import sys
import spartan_ng as np

def peak():
    return next(int(l.split()[1]) for l in open("/proc/self/status") if l.startswith("VmHWM")) * 1024

np.config.memory_bytes = 100_000_000
np.config.progress = True
print(float(np.random.default_rng(0).random((10**4, 10**4)).mean()).hex(), flush=True)
print(peak(), flush=True)
try:
    print(np.random.default_rng(0).random((10**6, 10**6)).mean())
except KeyboardInterrupt:
    print(peak(), flush=True)
"""
_LEFT = re.compile(rb"\[[\d:]+<[\d:]+\]")


@pytest.mark.slow
def test_eight_terabytes_of_draws_tell_the_time_left_in_constant_memory() -> None:
    """Stopped once that is told; a ten-thousandth part of it first, to its end."""
    command = [sys.executable, "-c", _RANDOM]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        found = float.fromhex(process.stdout.readline().decode())
        peak = int(process.stdout.readline())
        shown = b""
        while len(_LEFT.findall(shown)) < 5:
            shown += (read := os.read(process.stderr.fileno(), 1 << 16))
            assert read, "it has ended"
            shown = shown[-(1 << 16) :]
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
    assert process.returncode == 0
    draws = numpy.random.default_rng(0)
    assert found == pytest.approx(sum(draws.random(10**6).sum() for _ in range(100)) / 10**8, rel=1e-12)
    assert int(rest) < peak + (32 << 20)
