"""A nanny starts its process again, however often it ends, until it is told to stop."""

import subprocess
import sys

import pytest

from spartan_ng.backends import nanny as nannies
from spartan_ng.backends.nanny import FAILED, STOPPED, Nanny


def ends(code):
    """A process that ends with a code, or by a signal."""
    how = f"os._exit({code})" if code >= 0 else f"os.kill(os.getpid(), {-code})"
    return subprocess.Popen([sys.executable, "-I", "-S", "-c", f"import os; {how}"])


@pytest.mark.parametrize("last", [STOPPED, FAILED])
def test_only_who_was_told_to_stop_or_cannot_work_is_let_go(monkeypatch, last):
    monkeypatch.setattr(nannies, "_PAUSE_S", 0.0)
    codes = [0, 1, -9, -15, -2, 3, 0, 0, 1, -11, last]
    left = iter(codes)
    seen = []
    nanny = Nanny(ends(next(left)), lambda: ends(next(left)), lambda before, now: seen.append(before))
    assert nanny.wait() == last
    assert [p.returncode for p in seen] == codes[:-1]


def test_nobody_is_started_after_the_owner_has_said_so():
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE)
    nanny = Nanny(process, lambda: pytest.fail("started again"), lambda before, now: None)
    nanny.leave()
    process.terminate()
    assert nanny.wait() == -15
    assert process.stdin is not None
    process.stdin.close()
