"""Which jobs a program waits for, and which tasks for others: engines that only count."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.config import config
from spartan_ng.events import record as happened
from tests.test_programs import running_on

rng = numpy.random.default_rng(0)


class Deferred:
    """Implements `Engine`: a task is only how many others come one after the other before it ends."""

    name, several, shared, ahead = "deferred", False, False, 8

    def __init__(self):
        self.depths = []
        self.waits = 0

    def slots(self):
        return 4

    def submit(self, name, function, *args, rank=None):
        self.depths.append(1 + max((a for a in args if isinstance(a, Depth)), default=-1))
        return Depth(self.depths[-1])

    def is_known(self, handle):
        return True

    def wait(self, handles):
        self.waits += 1

    def __getattr__(self, name):
        return lambda *_: None


class Depth(int):
    __hash__ = object.__hash__
    __eq__ = object.__eq__


@pytest.mark.slow
def test_a_step_of_a_factorization_waits_for_others_twice():
    """Of h: a task a rank, and one that puts together both products of theirs, the little one without tasks
    that cut it out. Of w: a task a rank, which makes what it needs of h by itself."""
    engine = Deferred()
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        draw = np.random.default_rng(0).random
        v, w, h = draw((10_000, 4000)), np.array(rng.random((10_000, 20))), np.array(rng.random((20, 4000)))
        v, w, h = v.persist(), w.persist(), h.persist()
        for _ in range(3):
            before = max(engine.depths)
            engine.depths.clear()
            h = (h * (w.T @ v) / (w.T @ w @ h)).persist()
            w = (w * (v @ h.T) / (w @ (h @ h.T))).persist()
    assert max(engine.depths) == before + 3
    assert len(engine.depths) == 4 + 1 + 4


def waits_of(program, x):
    """How often a program waits that persists six arrays, each made of the one before."""
    engine = Deferred()
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x = np.array(x).persist()
        for _ in range(6):
            x = program(x).persist()
    return engine.waits


def twice(block):
    return block * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "waits"),
    [
        (lambda x: x * 2 + x.mean(axis=0), 0),
        (lambda x: np.cumsum(x, axis=0) / 2, 0),
        (lambda x: x @ (x.T @ x), 0),
        (lambda x: np.map(twice, x, dtype=float), 6),
        (lambda x: np.sort(x, axis=1) * 2, 6),
        (lambda x: (x.astype(int) ** (x > 2).astype(int)).astype(float), 6),
    ],
)
def test_a_program_goes_on_while_a_job_runs_that_cannot_raise(program, waits):
    assert waits_of(program, rng.random((3000, 30))) == waits


@pytest.mark.parametrize("looks", ["explains", "debugs", "traces"])
def test_who_is_told_what_a_run_takes_waits_for_its_end(looks):
    engine = Deferred()
    look: Any = lambda *_: None  # noqa: E731
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, debug=int(looks == "debugs")):
        x = np.array(rng.random((3000, 30))).persist()
        assert engine.waits == 0
        if looks == "explains":
            np.explain(x * 2, run=True)
        elif looks == "debugs":
            (x * 2).persist()
        else:
            happened.begin(look)
            try:
                (x * 2).persist()
            finally:
                happened.end(look)
        assert engine.waits == 1
        (x * 3).persist()
        assert engine.waits == (2 if looks == "debugs" else 1)
