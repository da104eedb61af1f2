"""Sampling: which functions are seen, inside which others, and that nothing is looked at for nobody."""

import threading

import pytest

from spartan_ng.events import SAMPLE, Event, record
from spartan_ng.kernels.sampling import Sampler
from spartan_ng.kernels.user import call_user
from spartan_ng.ops.functions import UserFunction
from tests.waiting import until


def door(function):
    return function()


@pytest.fixture
def calls():
    return {}


@pytest.fixture
def sampler(calls):
    return Sampler(lambda: dict(calls), lambda: door.__code__)


def test_a_stack_begins_behind_the_outermost_door(sampler, calls):
    def g():
        calls[threading.get_ident()] = "c/1"
        return sampler._look()

    def f():
        return door(g)

    ((job, stack),) = door(f)
    assert job == "c/1"
    names = [part.partition(" (")[0].rpartition(".")[2] for part in stack.split(";")]
    assert names == ["f", "g"]
    assert all("(test_sampling.py:" in part for part in stack.split(";"))


def test_what_has_left_its_function_is_not_seen(sampler, calls):
    calls[threading.get_ident()] = "c/1"
    assert sampler._look() == []
    calls[-1] = "c/2"  # a thread that has ended
    assert sampler._look() == []


def test_a_deep_stack_and_odd_names_can_be_told(sampler, calls):
    def deep(left):
        if left:
            return deep(left - 1)
        calls[threading.get_ident()] = "c/1"
        return sampler._look()

    deep.__code__ = deep.__code__.replace(co_qualname="a;b\n\ud800" + "x" * 1000)
    ((_, stack),) = door(lambda: deep(200))
    parts = stack.split(";")
    assert len(parts) == 48
    assert max(map(len, parts)) < 200
    stack.encode()


@pytest.fixture
def told():
    """What is told of functions in here while somebody looks; a thread of another test's may stand in C."""
    found: list[Event] = []

    def look(worker, events):
        found.extend(e for e in events if e.kind == SAMPLE and "(test_sampling.py:" in e.name)

    record.begin(look)
    yield found
    record.end(look)


@pytest.mark.slow
def test_a_function_that_runs_is_told_with_the_time_that_it_takes(told):
    def waits():
        until(lambda: len(told) > 2)

    call_user(UserFunction(waits), "map")
    names = {event.name.partition(" ")[0].rpartition(".")[2] for event in told}
    assert names == {"waits"}
    assert all(event.end_ns > event.begin_ns for event in told)
    spans = sorted((event.begin_ns, event.end_ns) for event in told)
    assert sum(end - begin for begin, end in spans) <= spans[-1][1] - spans[0][0]  # no moment twice


def test_functions_that_are_called_often_are_seen_too(told):
    def short():
        return sum(range(1000))

    fn = UserFunction(short)
    while not told:
        call_user(fn, "map")
    assert "short (test_sampling.py:" in told[0].name


def test_nobody_is_woken_where_nobody_looks(monkeypatch):
    def woken(self):
        raise AssertionError("the sampler was woken")

    assert not record.is_on
    monkeypatch.setattr(Sampler, "wake", woken)
    assert call_user(UserFunction(lambda: 3), "map") == 3
