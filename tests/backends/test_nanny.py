"""A nanny starts its process again, however often it ends, until it says that this is for good."""

import os
import subprocess
import sys

import pytest

from spartan_ng.backends import nanny as nannies
from spartan_ng.backends.nanny import Nanny, Process
from spartan_ng.system.processes import stands_still
from tests.waiting import until

FAREWELL = "os.write({}, b'for good'); "


def runs(code, *descriptors, stdin=subprocess.DEVNULL):
    """A process that runs some code."""
    command = [sys.executable, "-I", "-S", "-c", f"import os; {code}"]
    return subprocess.Popen(command, pass_fds=descriptors, stdin=stdin)


@pytest.mark.parametrize("last", [0, 1])
def test_only_who_says_farewell_is_let_go(monkeypatch, last):
    """No exit code that a user's function may choose, and no signal, is taken for that."""
    monkeypatch.setattr(nannies, "_PAUSE_S", 0.0)
    codes = [0, 1, 90, 91, -9, -15, -2, 3, last]
    left = list(codes)
    seen = []

    def start(descriptor):
        code = left.pop(0)
        words = "" if left else FAREWELL.format(descriptor)
        end = f"os._exit({code})" if code >= 0 else f"os.kill(os.getpid(), {-code})"
        return runs(words + end, descriptor)

    nanny = Nanny(start, lambda before, now: seen.append(before))
    assert nanny.wait() == last
    assert [p.returncode for p in seen] == codes[:-1]


@pytest.mark.parametrize(
    "way",
    ["os.closerange(3, 1000); os._exit(0)", "os.fork() or os.read({}, 1); os._exit(0)"],
    ids=["closes its descriptors", "leaves a child with them"],
)
def test_what_a_process_does_with_its_descriptors_is_no_farewell(monkeypatch, way):
    monkeypatch.setattr(nannies, "_PAUSE_S", 0.0)
    reading, writing = os.pipe()
    ways = [way.format(reading), FAREWELL + "os._exit(7)"]
    seen: list[Process] = []

    def start(descriptor):
        return runs(ways.pop(0).format(descriptor), descriptor, reading)

    nanny = Nanny(start, lambda before, now: seen.append(before))
    assert nanny.wait() == 7
    assert [p.returncode for p in seen] == [0]
    os.close(writing)  # a child ends now
    os.close(reading)


def test_a_process_that_stands_still_is_started_again(monkeypatch):
    """A user's function may stop its process: nobody else would ever hear of it."""
    for name, value in (("_PAUSE_S", 0.0), ("_LOOK_S", 0.01), ("_LOOKS", 3)):
        monkeypatch.setattr(nannies, name, value)
    ways = ["os.kill(os.getpid(), 19)", FAREWELL + "os._exit(5)"]
    seen: list[Process] = []

    def start(descriptor):
        return runs(ways.pop(0).format(descriptor), descriptor)

    nanny = Nanny(start, lambda before, now: seen.append(before))
    assert nanny.wait() == 5
    assert [p.returncode for p in seen] == [-9]


def test_a_process_that_goes_on_in_time_is_left_alone(monkeypatch):
    for name, value in (("_LOOK_S", 0.005), ("_LOOKS", 1 << 30)):
        monkeypatch.setattr(nannies, name, value)

    def start(descriptor):
        return runs("os.kill(os.getpid(), 19); " + (FAREWELL + "os._exit(3)").format(descriptor), descriptor)

    nanny = Nanny(start, lambda before, now: None)
    until(lambda: stands_still(nanny.process.pid))
    nanny.process.send_signal(18)
    assert nanny.wait() == 3


def test_nobody_is_started_after_the_owner_has_said_so():
    reading, writing = os.pipe()
    started: list[Process] = []

    def start(descriptor):
        assert not started
        started.append(runs("os.read(0, 1)", descriptor, stdin=reading))
        return started[0]

    nanny = Nanny(start, lambda before, now: None)
    nanny.leave()
    nanny.process.terminate()
    assert nanny.wait() == -15
    for end in (reading, writing):
        os.close(end)
