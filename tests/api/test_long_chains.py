"""Steps on small arrays that nobody asks for: they are evaluated where they stand before there are many."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import backlog, turns
from spartan_ng.api.core import cell as core_cell
from spartan_ng.api.core.forcing import compute_nodes
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs.tuned import BACKLOG_STEPS, CHAIN_STEPS
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


def test_steps_on_large_arrays_wait(monkeypatch):
    """What is fused saves passes; what is small is evaluated sooner."""
    monkeypatch.setattr(backlog, "BACKLOG_NS", 1 << 62)
    with running_on(EmbeddedBackend(2)):
        x = np.ones(_LARGE)
        for _ in range(BACKLOG_STEPS // 2):
            x = x * 0.9 + 1
        assert x._cell.value is None


def _regression(xp, x, w):
    p = 1 / (1 + xp.exp(-(x @ w)))
    return x, w - x.T @ (p - 0.5) * 1e-3


def _centers(xp, x, w):
    centers = w.reshape(4, -1)[:, :2]
    near = xp.argmin(((x[:, None, :2] - centers) ** 2).sum(2), 1)
    marks = (near[:, None] == xp.arange(4)).astype(float)
    sums, counts = marks.T @ x[:, :2], marks.sum(0)
    return x, xp.concatenate([(sums / xp.maximum(counts, 1)[:, None]).ravel(), w[:1] * 0])[: len(w)]


def _in_place(xp, x, w):
    x = x - x.mean(0)
    x *= 0.5
    x[1:] += x[:-1]
    return x, w


LOOPS = {
    "steps": lambda xp, x, w: (xp.sqrt(abs(x)) * 0.5 + 0.3, w),
    "where": lambda xp, x, w: (xp.where(x > 0.5, x * 0.5, x), w),
    "scaled": lambda xp, x, w: (x / x.max() + 0.1, w),
    "products": lambda xp, x, w: (x @ (x.T @ x) / 1e3, w),
    "scans": lambda xp, x, w: (xp.cumsum(x, 0) / x.sum(), w),
    "sorted": lambda xp, x, w: (xp.sort(x, 0) * 0.5, w),
    "in place": _in_place,
    "regression": _regression,
    "centers": _centers,
    "two": lambda xp, x, w: (x / 2 + xp.sin(x.T[:8, :8].sum(0) / 16 + w), w),
}
"""What a turn makes of a large array and a small one."""


def _turns(xp, name, x, w, turns, seen=lambda x, w: None):
    x, w = xp.array(x), xp.array(w)
    for _ in range(turns):
        x, w = LOOPS[name](xp, x, w)
        seen(x, w)
    return x, w


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_ask_for_nothing_are_caught_up_with(name, workers, monkeypatch):
    """They have a few turns to be computed, at most, and what is evaluated goes from one turn to the next."""
    monkeypatch.setattr(backlog, "BACKLOG_NS", 0)
    random = numpy.random.default_rng(0)
    x, w = random.random((60, 8)), random.random(8)
    expected = _turns(numpy, name, x, w, 30)
    most = 0
    shapes: set[tuple[int, ...]] = set()
    evaluated = turns.due

    def noted(node, cell):
        nodes = evaluated(node, cell)
        shapes.update(n.shape for n in nodes)
        return nodes

    def seen(x, w):
        nonlocal most
        lazy = [a._node() for a in (x, w) if a._cell.value is None]
        most = max(most, len(topological(lazy)))

    monkeypatch.setattr(core_cell, "due", noted)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0):
        found = _turns(np, name, x, w, 30, seen)
        for a, b in zip(found, expected, strict=True):
            numpy.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
        found = _turns(np, name, x, w, 1)
        one = len(topological([a._node() for a in found]))
    carried = {w.shape, (w.size + 1,)} if name in ("regression", "centers") else {x.shape}
    assert shapes
    assert shapes <= carried
    assert most <= 5 * one


@pytest.mark.parametrize("name", LOOPS)
def test_a_single_turn_waits(name, monkeypatch):
    """However long it takes: what is asked for together is made in as few passes as there can be."""
    monkeypatch.setattr(backlog, "BACKLOG_NS", 0)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        found = _turns(np, name, numpy.ones((60, 8)), numpy.ones(8), 2)
        assert all(a._cell.value is None for a in found if a._node().inputs)


def test_a_long_program_without_a_loop_is_cut_where_it_stands():
    """Each line that finds no loop before it would look through all of them."""
    lines = "\n".join(f"x = x * 0.5 + {i}" for i in range(2 * BACKLOG_STEPS))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        found = {"x": np.ones(50)}
        exec(compile(lines, __file__ + ".py", "exec"), found)
        assert len(topological([found["x"]._node()])) <= 3 * BACKLOG_STEPS
        expected = {"x": numpy.ones(50)}
        exec(lines, expected)
        numpy.testing.assert_array_equal(found["x"], expected["x"])


@pytest.mark.parametrize("is_light", [True, False])
def test_light_steps_are_put_together_again_behind_what_was_caught_up_with(is_light, monkeypatch):
    """A plan of each would take longer than they do; where each is work, the plan of a turn comes again."""
    steps, caught = 4 * BACKLOG_STEPS, []

    def computed(nodes):
        caught.extend(nodes)
        return compute_nodes(nodes)

    monkeypatch.setattr(core_cell, "compute_nodes", computed)
    if not is_light:
        monkeypatch.setattr(backlog, "LAUNCH_NS", 0)

    def run(xp):
        x = xp.ones(50)
        for _ in range(steps):
            x = x * 0.5 + 1
        return x

    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        numpy.testing.assert_array_equal(run(np), run(numpy))
    times = len(caught) * BACKLOG_STEPS / (2 * steps)
    assert (times <= 2) is is_light
    assert times >= 0.5


def test_what_no_memory_has_room_for_waits(monkeypatch):
    monkeypatch.setattr(backlog, "BACKLOG_NS", 0)
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, memory_bytes=1 << 16):
        x = np.ones((100, 100))
        for _ in range(9):
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


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("small", [True, False])
def test_what_many_steps_read_is_computed_once_where_it_is_small(small, workers):
    """`labels` of a loop over `labels == k`: each mask that is asked for would find all the labels again."""
    x = numpy.random.default_rng(0).random((2000, 8))
    labels = (x[:, None, :] * x[:5]).sum(2).argmax(1)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    limit = 1 << 14 if small else 1 << 12
    with running_on(backend), config.override(small_bytes=limit):
        a = np.array(x)
        found = (a[:, None, :] * a[:5]).sum(2).argmax(1)
        masks = [found == k % 5 for k in range(4)]
        assert found._node().inputs
        masks += [found == k % 5 for k in range(20)]
        assert (not found._node().inputs) == small
        for k, mask in enumerate(masks):
            numpy.testing.assert_array_equal(mask, labels == (k if k < 4 else k - 4) % 5)
