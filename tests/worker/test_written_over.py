"""Tiles that nobody needs any more are written over by scans and assignments, and no others are."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.worker.memory.store import Store
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((400, 300))


def _assigned(xp: Any, y: Any) -> Any:
    z = xp.array(y)
    z[3:9] = 0.25
    return z


def _read_after(xp: Any, a: Any, over: Any) -> Any:
    """What shows a tile in another shape is read before and after the tile is written over."""
    y = xp.sort(a, axis=0)
    shown = y.reshape(300, 400)
    before = xp.sort(shown.T @ shown, axis=0)
    written = over(xp, y)
    return xp.sort(shown, axis=1) + before.sum() * 0 + written.sum() * 0, written


def _written_often(xp: Any, a: Any) -> Any:
    y = xp.sort(a, axis=0)
    total = y.sum()
    for i in range(20):
        y[i, 5:] = xp.sqrt(total) + i
        y[5:, i] = total * 2
    return y


WRITES = {
    "scan": lambda xp, y: xp.cumsum(y, axis=0),
    "assignment": _assigned,
    "scan of what was assigned": lambda xp, y: xp.cumsum(_assigned(xp, y), axis=1),
}


@pytest.fixture(params=[0, 1, 3], ids=["embedded", "one worker", "workers"])
def backend(request):
    made: Any = SimulatedBackend(request.param) if request.param else EmbeddedBackend(2)
    with running_on(made), config.override(small_bytes=0):
        yield made


@pytest.mark.parametrize("name", WRITES)
def test_what_others_show_in_another_shape_stays(name, backend):
    found = np.compute(*_read_after(np, np.array(VALUE), WRITES[name]))
    for ours, theirs in zip(found, _read_after(numpy, VALUE, WRITES[name]), strict=True):
        numpy.testing.assert_allclose(ours, theirs)


def test_parts_that_are_assigned_one_after_the_other_copy_nothing_else(backend):
    made: list[int] = []
    allocate = Store.allocate

    def counted(store, shape, dtype, place=None):
        found = allocate(store, shape, dtype, place)
        made.append(found.nbytes)
        return found

    with patch.object(Store, "allocate", counted):
        found = np.compute(_written_often(np, np.array(VALUE)))[0]
    numpy.testing.assert_allclose(found, _written_often(numpy, VALUE))
    assert sum(made) < 20 * VALUE.nbytes  # 40 are assigned


def test_what_the_program_has_is_not_written_over(backend):
    a = np.array(VALUE)
    written, b = _assigned(np, a), a * 2
    kept = _assigned(np, b)
    again = _assigned(np, b)
    for found in np.compute(written, kept, again, b, a):
        assert numpy.isfinite(found).all()
    numpy.testing.assert_allclose(a, VALUE)
    numpy.testing.assert_allclose(b, VALUE * 2)
    numpy.testing.assert_allclose(kept, _assigned(numpy, VALUE * 2))
