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
from spartan_ng.ops.random import draw, part_key
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


@st.composite
def views(draw_, shape):
    """A first place, a step and a length along each axis of a shape."""
    found = []
    for n in shape:
        step = draw_(st.sampled_from([1, 1, 2, 3, 17, 300, -1, -2, -300]))
        places = range(n)[draw_(st.integers(0, n - 1)) :: step]
        found.append((places[0], step, draw_(st.integers(1, len(places)))))
    return found


@given(parts(), st.data(), st.sampled_from(["random", "uniform", "normal", "integers"]), st.booleans())
def test_a_part_of_a_part_is_one_of_the_whole(part, data, name, is_stream):
    """Of streams and of logical blocks, in any steps, read in any boxes."""
    shape, _ = part
    if is_stream and name in ("normal", "integers"):
        name = "random"  # others have no places in a stream
    state = np.random.PCG64(3).state["state"]
    key = ("stream", (state["state"], state["inc"], 2)) if is_stream else ("blocks", 5)
    parameters = {"random": (), "uniform": (-1.0, 2.0), "normal": (), "integers": (0, 100)}[name]
    if name == "normal":
        parameters = (0.0, 1.0)
    dtype = np.dtype(int if name == "integers" else float)
    whole = draw(name, key, parameters, shape, dtype, tuple((0, n) for n in shape))
    for _ in range(2):
        view = data.draw(views(whole.shape))
        key = part_key(key, shape, [(start, step) for start, step, _ in view])
        for axis, (start, step, n) in enumerate(view):
            whole = whole.take([start + step * k for k in range(n)], axis)
        ends = [data.draw(st.tuples(st.integers(0, n), st.integers(0, n))) for n in whole.shape]
        box = tuple((min(e), max(e)) for e in ends)
        found = draw(name, key, parameters, whole.shape, dtype, box)
        np.testing.assert_array_equal(found, whole[tuple(slice(lo, hi) for lo, hi in box)])
        shape = whole.shape


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
