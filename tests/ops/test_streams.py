"""Parts of a stream of random numbers are parts of NumPy's own array, however they are cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.ops.random import draw
from spartan_ng.plan.stages import Fused
from tests.test_programs import running_on

SIZES = st.sampled_from([1, 2, 3, 7, 40, 1100])


@st.composite
def parts(draw_):
    """A shape and a box in it, more often than not whole along an axis."""
    shape = draw_(st.lists(SIZES, max_size=4).filter(lambda s: np.prod(s, dtype=int) <= 200_000).map(tuple))
    box = []
    for n in shape:
        ends = draw_(st.one_of(st.just((0, n)), st.tuples(st.integers(0, n), st.integers(0, n))))
        box.append((min(ends), max(ends)))
    return shape, tuple(box)


@given(parts(), st.integers(0, 100), st.integers(0, 50))
def test_any_part_is_numpys(part, seed, taken):
    shape, box = part
    generator = np.random.default_rng(seed)
    generator.random(taken)
    whole = np.asarray(generator.random(shape))
    state = np.random.PCG64(seed).state["state"]
    key = ("stream", (state["state"], state["inc"], taken))
    found = draw("random", key, (), shape, np.dtype(float), box)
    np.testing.assert_array_equal(found, whole[tuple(slice(lo, hi) for lo, hi in box)])


@pytest.mark.parametrize("shape", [(4000, 6), (1, 4000, 6), (3, 4000), (40, 30, 20)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_stream_is_cut_along_its_first_axis(shape, axis):
    with running_on(SimulatedBackend(3)), config.override(small_bytes=0):
        found = sp.random.default_rng(1).random(shape).sum(axis=axis).compute()
        last_run = session.current().last_run
        assert last_run is not None
        passes = [s for s in last_run[0].stages if isinstance(s, Fused)]
        drawn = [s for s in passes if any(row.kind == "random" for row in s.rows)]
        longer = next(a for a, n in enumerate(shape) if n > 1)
        for stage in drawn:
            assert [p for a, p in enumerate(stage.grid.parts) if a != longer] == [1] * (len(shape) - 1)
    assert drawn
    np.testing.assert_allclose(found, np.random.default_rng(1).random(shape).sum(axis=axis))
