"""Loops that read a number of each step, while their state stays lazy: a step computes that step alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import forcing
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.graph import evaluation
from spartan_ng.graph.node import OPERATORS, Op, topological
from tests.test_programs import running_on

_STEPS = 30
_N = 2000
"""Elements: four times what is small in these tests."""


def _descent(xp: Any) -> Iterator[Any]:
    x = xp.random.default_rng(0).random((_N // 5, 5))
    y, w, best = x @ xp.arange(5.0), xp.zeros(5), xp.inf
    while True:
        e = x @ w - y
        if (e * e).mean() < best:
            best = (e * e).mean()
        w = w - 1e-4 * (x.T @ e)
        yield w


def _asked_too_late(xp: Any) -> Iterator[Any]:
    x = xp.random.default_rng(0).random((_N // 5, 5))
    y, w, v, best = x @ xp.arange(5.0), xp.zeros(5), xp.zeros(5), xp.inf
    while True:
        e = x @ w - y
        loss = (e * e).mean()
        v = 0.9 * v - 1e-4 * (x.T @ e)
        w += v
        if loss < best:
            best = loss
        yield w


def _fixed_point(xp: Any) -> Iterator[Any]:
    x, r = xp.linspace(-2, 2, _N), xp.zeros(_N)
    while True:
        r = xp.cos(r * x)
        if (r > 5).any():
            return
        yield r


def _conjugate(xp: Any) -> Iterator[Any]:
    d, b, x = xp.linspace(1, 2, _N), xp.ones(_N), xp.zeros(_N)
    r = b - d * x
    p, rs = r.copy(), r @ r
    while True:
        a = rs / (p @ (d * p))
        x += a * p
        r -= a * d * p
        rn = r @ r
        if rn < 0:
            return
        p, rs = r + (rn / rs) * p, rn
        yield x


def _power(xp: Any) -> Iterator[Any]:
    a, v, old = xp.random.default_rng(0).random((60, 60)), xp.ones(60), 0.0
    while True:
        u = a @ v
        v = u / xp.linalg.norm(u)
        value = v @ a @ v
        if abs(value - old) < -1:
            return
        old = value
        yield v


def _stencil(xp: Any) -> Iterator[Any]:
    u = xp.zeros((60, 60))
    u[20:30] = 100.0
    while True:
        u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] - 2 * u[1:-1, 1:-1])
        if u.max() < 1:
            return
        yield u


def _running_mean(xp: Any) -> Iterator[Any]:
    x = xp.random.default_rng(0).random((_N // 5, 5))
    order, mean, n = xp.random.default_rng(1).permutation(_N // 5), xp.zeros(5), 0
    while True:
        b = x[order[n : n + 8]]
        n += 1
        mean = mean + (b.mean(0) - mean) / n
        if abs(b - mean).max() > 5:
            return
        yield mean


_PROGRAMS = [_descent, _asked_too_late, _fixed_point, _conjugate, _power, _stencil, _running_mean]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("program", _PROGRAMS)
def test_steps_compute_themselves_alone(program: Any, workers: int, monkeypatch: Any) -> None:
    """The nodes of all evaluations of a step are as many in the last third of the steps as in the second."""
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    computed: list[int] = []
    evaluate = evaluation.evaluate

    def counting(nodes: Any, order: Any = None) -> Any:
        computed[-1] += sum(n.op in OPERATORS for n in order or ())
        return evaluate(nodes, order)

    monkeypatch.setattr(forcing, "evaluate", counting)
    with running_on(backend), config.override(small_bytes=_N * 2):
        found, expected = program(np), program(numpy)
        for _ in range(_STEPS):
            computed.append(0)
            ours, theirs = next(found), next(expected)
        computed.append(0)  # what nobody has asked for before
        numpy.testing.assert_allclose(numpy.asarray(ours), theirs, rtol=1e-6)
    third = _STEPS // 3
    assert max(computed[2 * third : -1]) <= max(computed[third : 2 * third]), str(computed)


def test_what_was_built_before_reads_the_value() -> None:
    """A step that was built on one which is evaluated later has nothing to compute again."""
    with running_on(EmbeddedBackend(2)):
        x: Any = np.ones(config.small_bytes) + 1
        y: Any = x * 3
        node = x._node()
        numpy.asarray(x)
        assert node.data is not None
        assert [n for n in y._node().inputs if n.op in OPERATORS] == []
        x[0] = 7
        assert float(y[0]) == 6
        assert float(x[0]) == 7


def test_random_numbers_are_drawn_twice_at_most() -> None:
    """They are no array as long as one pass uses them; what is used again is kept."""
    with running_on(EmbeddedBackend(2)), config.override(kernels="interpret"):  # so that bits are the same
        x: Any = np.random.default_rng(0).random(config.small_bytes)
        first = float(x.sum())
        assert x._cell.value is None
        assert float(x.sum()) == first
        assert x._cell.value is not None


def test_a_view_keeps_nothing_that_was_evaluated() -> None:
    """What it showed before is no reason to copy the array when it is written."""
    with running_on(EmbeddedBackend(2)):
        x: Any = np.ones(config.small_bytes) * 2
        view: Any = x[1:-1]
        assert float(view.sum()) == 2 * (config.small_bytes - 2)
        numpy.asarray(x)
        before = x._cell.value
        x[1] = 7
        assert x._cell.value is before
        assert float(view[0]) == 7


def test_numbers_that_were_written_over_are_not_kept() -> None:
    """The array holds what was written; what it was drawn as has nobody to keep it for."""
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=_N * 2):
        x: Any = np.random.default_rng(0).random(_N * 4)
        drawn = x._node()
        y: Any = x + 1
        x *= 2
        asked = [x._node()]
        for _ in range(3):
            float((y * 3).sum())
            assert drawn not in dict(forcing._worth_keeping(asked, topological(asked)))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape", [(_N * 8,), (_N, 8), (20, _N // 10, 4)])
def test_places_of_true_elements_need_no_index_of_all(shape: tuple[int, ...], workers: int) -> None:
    a = numpy.random.default_rng(3).random(shape)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0):
        for view in (lambda v: v, lambda v: v[1:-1], lambda v: v.T):
            x: Any = view(np.asarray(a))
            found = np.flatnonzero(x > 0.9)
            assert not {n.op for n in topological([found._node()])} & {Op.INDEX}
            numpy.testing.assert_array_equal(found.compute(), numpy.flatnonzero(view(a) > 0.9))
            for ours, theirs in zip(np.nonzero(x > 0.9), numpy.nonzero(view(a) > 0.9), strict=True):
                numpy.testing.assert_array_equal(ours.compute(), theirs)
