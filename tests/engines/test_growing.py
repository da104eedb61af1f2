"""Engines whose workers come and go between plans."""

from __future__ import annotations

from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.engines import backend as engine_backend
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.config import config
from tests.engines.inline import InlineEngine
from tests.programs import programs
from tests.sampling import examples
from tests.test_programs import check, running_on

X = numpy.random.default_rng(0).random((120, 30))


class Restless(InlineEngine):
    """Its workers come and go: it has another number of them whenever somebody asks, up to a point."""

    def __init__(self, numbers, several, shared=False):
        super().__init__(1, several, shared)
        self.left = list(numbers)

    def slots(self):
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@examples(60)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
    st.booleans(),
    st.sampled_from([None, "row", "duplicate"]),
)
def test_workers_may_come_and_go_at_any_moment_before_there_are_arrays(numbers, several, tiling):
    """Plans that were made for others are made anew."""
    with running_on(EngineBackend(Restless(numbers, several))), config.override(small_bytes=0, tiling=tiling):
        for seed in range(2):  # the first round's arrays are gone before the second
            x = (np.array(X) + seed).persist()
            y = ((x * 2 + 1) / 2).persist()
            numpy.testing.assert_allclose(y, ((X + seed) * 2 + 1) / 2)
            product = numpy.sort(X + seed, axis=0) @ (X + seed + 0.5).T
            numpy.testing.assert_allclose(np.sort(x, axis=0) @ y.T, product)
            del x, y


@pytest.mark.slow
@examples(80)
@given(
    programs(),
    st.lists(st.integers(1, 6), min_size=1, max_size=9),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "row", "block", "duplicate"]),
)
def test_workers_that_join_are_used_beside_arrays_that_are_cut_for_fewer(
    program, numbers, several, shared, tiling
):
    """The engine has more of them, or fewer, whenever somebody asks."""
    engine = Restless(numbers, several, shared)
    with (
        running_on(EngineBackend(engine)),
        config.override(small_bytes=0, tiling=tiling),
        mock.patch.object(engine_backend, "_LOOK_S", -1.0),
    ):
        held = [(np.array(X) * 2).persist(), np.array(X[:, :3]).persist()]
        check(program)
        numpy.testing.assert_array_equal(held[0] - held[1][:, :1], X * 2 - X[:, :1])


def test_the_next_plan_is_cut_for_the_workers_that_have_joined():
    def parts() -> int:
        last = session.current().last_run
        assert last is not None
        return last[0].workers

    engine = InlineEngine(2)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, tiling="row"):
        held = (np.array(X) * 2).persist()
        engine._slots = 5
        with mock.patch.object(engine_backend, "_LOOK_S", -1.0):
            made = (held + 1).persist()
            assert parts() == 5
            engine._slots = 1  # who leaves does not matter: tasks go to who is there
            numpy.testing.assert_array_equal(np.sort(made, axis=0), numpy.sort(X * 2 + 1, axis=0))
            assert parts() == 5
