"""Users' functions that are interrupted: those of one job."""

from __future__ import annotations

import subprocess
import sys
import threading
from itertools import product
from unittest.mock import Mock

import pytest

from spartan_ng.kernels import user
from spartan_ng.ops.functions import UserFunction


@pytest.mark.parametrize("jobs", list(product(["a", "b", ""], repeat=3)))
def test_functions_of_one_job_are_interrupted(monkeypatch, jobs) -> None:
    calls = {thread: user._UserCall(job, Mock(UserFunction)) for thread, job in enumerate(jobs)}
    raised = Mock()
    monkeypatch.setattr(user, "_calls", calls)
    monkeypatch.setattr(user, "_raise_in", raised)
    assert user.interrupt("a") == jobs.count("a")
    assert [call.hit for call in calls.values()] == [job == "a" for job in jobs]
    hit = [thread for thread, job in enumerate(jobs) if job == "a"]
    assert [call.args for call in raised.call_args_list] == [(thread, user.Interrupted) for thread in hit]


@pytest.mark.parametrize("hit", [False, True])
def test_a_block_within_a_function_takes_no_interrupt_of_it_back(monkeypatch, hit) -> None:
    """One that has not arrived yet: it is the function's, which goes on."""
    call = user._UserCall("a", Mock(UserFunction), hit)
    raised = Mock()
    monkeypatch.setattr(user, "_calls", {threading.get_ident(): call})
    monkeypatch.setattr(user, "_raise_in", raised)
    with user.Acting("b"):
        assert user.current_job() == "a"
    assert user._calls == {threading.get_ident(): call}
    assert not raised.called


PROFILED = """
import sys
from spartan_ng.errors import JobCancelled
from spartan_ng.kernels import user
from spartan_ng.ops.functions import UserFunction

def interrupted():
    user.interrupt("a")
    while True:
        pass

def plain():
    return 1

with user.Acting("a"):
    try:
        user.call_user(UserFunction(interrupted), "map")
    except JobCancelled:
        print("interrupted")
sys.setprofile(lambda *event: None)
plain()
print("profiled")
"""


@pytest.mark.slow
def test_calls_after_an_interrupt_can_be_profiled() -> None:
    """A flag of the interpreter that nobody takes down makes traced calls wait for ever, in C."""
    ran = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["interrupted", "profiled"]
