"""When a job that runs is stopped for workers that have joined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.backends.protocol import Way
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph.node import topological
from spartan_ng.joining import pays, remaining_s
from spartan_ng.ops.functions import users_of
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings

SLOW = Profile(workers=2, memory_bytes_s=10_000, flops_s=10_000)
"""Of whom a megabyte takes a minute."""


def planned(build) -> Plan:
    """A program for two workers."""
    with config.override(small_bytes=0):
        root = build(sp.array(np.ones((4000, 8))))._node()
    return lower(topological([root]), [root], Settings(SLOW), "a plan")


def sorts(x):
    for axis in (0, 1, 0):
        x = sp.sort(x + 1, axis=axis)
    return x


def of_a_function(x):
    for _ in range(4):
        x = sp.map(lambda block: block + 1, sp.sort(x, axis=0), dtype=float)
    return x


def test_a_long_rest_is_planned_for_who_has_joined():
    plan = planned(sorts)
    assert pays(plan, Way(), 4, SLOW)
    assert not pays(plan, Way(), 2, SLOW), "nobody has joined"
    assert not pays(plan, Way(len(plan.stages), 100.0, 100.0), 4, SLOW), "nothing is left"
    assert not pays(plan, Way(1, 1e-3, 1e-3), 4, SLOW), "it goes faster than was predicted"


def test_a_stage_that_has_run_for_long_is_not_begun_again():
    plan = planned(sorts)
    whole_s = remaining_s([s.seconds(plan.slots, 0, SLOW) for s in plan.stages], Way())
    assert not pays(plan, Way(0, 0.0, whole_s), 4, SLOW)


def test_of_users_functions_progress_tells_alone():
    plan = planned(of_a_function)
    quick = Profile(workers=2)
    assert not pays(plan, Way(0, 0.0, 1e4), 4, quick), "nobody knows how long one takes"
    half = len(plan.stages) // 2
    assert all(users_of(part) for part in (plan.stages[:half], plan.stages[half:]))
    assert pays(plan, Way(half, 100.0, 100.0), 4, quick), "they take long"
    assert not pays(plan, Way(half, 0.01, 0.01), 4, quick), "they do not"


def test_nothing_is_left_of_stages_that_were_to_take_no_time() -> None:
    assert remaining_s([1e-308], Way(1, 2.0)) == 0.0
    assert remaining_s([1e-308, 0.0], Way(1, 2.0)) == 0.0


seconds = st.floats(0.0, 1e3)
stages = st.lists(st.none() | seconds, min_size=1, max_size=6)


@given(predicted=stages, done_s=seconds, factor=st.sampled_from([0.5, 2.0]), data=st.data())
def test_the_rest_is_in_the_measure_of_what_was_done(predicted, done_s, factor, data):
    done = data.draw(st.integers(0, len(predicted)))
    rest_s = remaining_s(predicted, Way(done, done_s))
    assert rest_s >= 0.0
    assert remaining_s(predicted, Way(len(predicted), done_s)) == 0.0
    if done == 0:
        assert rest_s == pytest.approx(sum(s for s in predicted if s is not None))
    if all(s is not None for s in predicted):
        assert remaining_s(predicted, Way(done, done_s * factor)) == pytest.approx(
            rest_s * (factor if sum(predicted[:done]) > 0 else 1)
        )
    if all(s is None for s in predicted) and done:
        assert rest_s == pytest.approx(done_s / done * (len(predicted) - done))
