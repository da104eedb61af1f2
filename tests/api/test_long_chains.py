"""Steps on small arrays that nobody asks for: they are evaluated where they stand before there are many."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs.tuned import CHAIN_STEPS
from spartan_ng.graph.node import topological
from tests.test_programs import running_on

_LARGE = config.small_bytes // 8 * 2
_NODES = 8 * CHAIN_STEPS
"""Nodes that a chain may have: a step of a program's is several."""


def _steps(name, w):
    if name == "new":
        return w * 0.9 + 1
    if name == "in place":
        w *= 0.9
        w += 1
        return w
    if name == "parts":
        w[1:] = w[:-1] * 0.5 + 1
        return w
    if name == "elements":
        w[2] = w[1] + w[0] * 0.1
        return w
    if name == "numbers":
        return w + w[0] * 1e-3
    return (
        np.sqrt(w.reshape(1, -1).T[:, 0] ** 2 + w.mean() - w.std()) if name == "several" else w.cumsum() / 5
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["new", "in place", "parts", "elements", "numbers", "several", "scanned"])
def test_chains_are_short(name, workers, monkeypatch):
    def run(xp, look=None):
        w = xp.arange(_LARGE * 1.0).reshape(4, -1).mean(1) % 7
        for _ in range(3 * CHAIN_STEPS):
            w = _steps(name, w)
            if look is not None:
                look(w)
        return w

    most = 0

    def look(w):
        nonlocal most
        if w._cell.value is None:
            most = max(most, len(topological([w._node()])))

    expected = run(numpy)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend):
        numpy.testing.assert_allclose(run(np, look).compute(), expected, rtol=1e-6)
    assert most <= _NODES


def test_steps_on_large_arrays_wait():
    """What is fused saves passes; only what is small is evaluated."""
    with running_on(EmbeddedBackend(2)):
        x = np.ones(_LARGE)
        for _ in range(2 * CHAIN_STEPS):
            x = x * 0.9 + 1
        assert x._cell.value is None


@pytest.mark.parametrize("key", ["rows", "both", "columns", "outer", "slices", "new axes", "mask"])
def test_few_elements_of_what_is_at_hand_are_taken_at_once(key):
    x = numpy.random.default_rng(0).random((_LARGE // 5, 5))
    few = numpy.arange(40) * 3 % 17
    keys: dict[str, Any] = {
        "rows": few,
        "both": (few, few % 5),
        "columns": (slice(0, 30), few % 5),
        "outer": numpy.ix_(few, few % 5),
        "slices": (few[:, None], slice(None, None, 2)),
        "new axes": (few, None, ..., slice(1, 3)),
        "mask": (slice(3, 9), numpy.arange(5) % 2 == 0),
    }
    a = np.array(x)
    found = a[keys[key]]
    assert found._cell.value is not None
    numpy.testing.assert_array_equal(found, x[keys[key]])


@pytest.mark.parametrize("key", [(numpy.arange(9), 0, 0), numpy.ones((2, 2, 2), bool), (9, numpy.arange(7))])
def test_keys_that_do_not_fit_say_so(key):
    a = np.ones((_LARGE // 5, 5))
    with pytest.raises(IndexError):
        a[key]
