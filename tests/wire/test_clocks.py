"""Another machine's clock, from messages that go there and back."""

import random

import pytest

from spartan_ng.events import Event
from spartan_ng.wire.clocks import Clock, on_our_clock
from spartan_ng.wire.messages import Happened


@pytest.mark.parametrize("ahead_ns", [0, 10**15, -(10**15)])
def test_the_quickest_trip_bounds_the_error(ahead_ns):
    draw = random.Random(ahead_ns)
    clock, now, quickest = Clock(is_ours=False), 10**16, float("inf")
    for _ in range(200):
        there, held, back = draw.randrange(10**6), draw.randrange(10**9), draw.randrange(10**6)
        heard = now + there
        clock.note(now, heard + ahead_ns, heard + held + ahead_ns, heard + held + back)
        now += 10**9
    for there, back in ((1000, 3000), (900_000, 900_000)):
        clock.note(now, now + there + ahead_ns, now + there + ahead_ns, now + there + back)
        quickest = min(quickest, there + back)
    assert abs(clock.ahead_ns - ahead_ns) <= quickest / 2


def test_a_clock_that_drifts_is_followed():
    clock = Clock(is_ours=False)
    for second in range(1000):
        ahead = 50_000 * second
        clock.note(0, ahead + 10, ahead + 10, 20 + second % 7)
    assert clock.ahead_ns is not None
    assert abs(clock.ahead_ns - 50_000 * 999) <= 50_000 * 32


def test_one_machine_has_one_clock():
    clock = Clock(is_ours=True)
    clock.note(0, 5_000, 5_000, 10)
    assert clock.ahead_ns == 0


def test_events_of_a_clock_that_is_not_known_are_left_out():
    event = Event("stage", "x", 110, 120, 1)
    message = Happened("c/1", (event,))
    clock = Clock(is_ours=False)
    assert on_our_clock(message, clock).events == ()
    clock.note(0, 100, 100, 0)
    assert on_our_clock(message, clock).events == (event._replace(begin_ns=10, end_ns=20),)
    assert on_our_clock(message, Clock(is_ours=True)) is message
