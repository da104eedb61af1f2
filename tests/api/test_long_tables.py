"""Few points are interpolated between those of a long table as they lie."""

from __future__ import annotations

import tracemalloc

import numpy

import spartan_ng as np
from spartan_ng.config import config


def test_few_points_in_a_long_table_copy_none_of_it() -> None:
    knots, heights = numpy.arange(300_000.0), numpy.random.default_rng(0).random(300_000)
    points = numpy.linspace(-5, 400_000, 50)
    mine = [np.array(a) for a in (points, knots, heights)]
    np.interp(*mine)
    tracemalloc.start()
    found = np.interp(*mine)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < knots.nbytes // 4
    assert numpy.array_equal(numpy.asarray(found), numpy.interp(points, knots, heights))


def test_a_table_that_is_written_to_afterwards_was_read_before() -> None:
    """Many points are a step that comes later."""
    with config.override(small_bytes=0):
        knots, heights = np.array(numpy.arange(50.0)), np.array(numpy.arange(50.0))
        points = np.array(numpy.linspace(0, 49, 600))
        found = np.interp(points, knots, heights)
        heights[:] = -1
        knots[3:] += 1
        assert numpy.allclose(numpy.asarray(found), numpy.asarray(points))
