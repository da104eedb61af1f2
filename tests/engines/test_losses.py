"""What an engine gives up, or has been had forget, is computed again from what it was made of."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.backends.engines.protocol import Forgotten, TaskKilled
from spartan_ng.backends.protocol import Losing
from spartan_ng.config import config
from spartan_ng.errors import GivenUp, MasterUnreachable, UserFunctionError, WorkerLost
from spartan_ng.graph import build
from spartan_ng.worker.tasks import Made
from tests.engines.inline import InlineEngine, Object
from tests.engines.test_plans import PROGRAMS, I, S, X
from tests.test_programs import running_on

LARGE = numpy.random.default_rng(1).random((3000, 30))
"""More than comes to the program with the end of a job, also where a third of it is chosen."""
LOST = {"forgotten": Forgotten, "given up": TaskKilled}


class LosingEngine(InlineEngine):
    """An engine that can be had lose what it has made."""

    def __init__(self, slots, several=False, shared=False):
        super().__init__(slots, several, shared)
        self.made: list[Object] = []

    def submit(self, name, function, *args, rank=None):
        self.made.append(super().submit(name, function, *args, rank=rank))
        return self.made[-1]

    def submit_several(self, name, count, function, *args):
        made = super().submit_several(name, count, function, *args)
        self.made += made
        return made

    def lose(self, random, share, how):
        """Lose some objects, drawn, as an engine that was restarted, or that has given up tasks."""
        for one in self.made:
            if random.random() < share:
                one.error = LOST[how]("gone")


class SayingEngine(LosingEngine):
    """One that says at once what it knows no more."""

    def is_known(self, handle):
        return not isinstance(handle.error, Forgotten)


def steps(xp, x, s):
    """Arrays of which each is made of those before, by every kind of stage."""
    y = (x * 2 + 1).persist() if xp is np else x * 2 + 1
    keep = (lambda a: a.persist()) if xp is np else (lambda a: a)
    sums = keep(xp.cumsum(y, axis=0))
    order = keep(xp.argsort(sums[:, 0] * -1))
    ordered = keep(sums[order])
    chosen = keep(ordered[ordered[:, 1] > 100])
    sparse = keep(s * 2.0)
    product = keep(sparse @ y[:70])
    drawn = keep(xp.sort(ordered.reshape(-1)))
    return [y, sums, order, ordered, chosen, product, drawn, keep(y.T @ y)], sparse


@pytest.mark.slow
@pytest.mark.some(10)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("kind", [LosingEngine, SayingEngine])
def test_arrays_that_are_lost_are_computed_again(kind, how, share, seed):
    random = numpy.random.default_rng(seed)
    engine = kind(int(random.integers(1, 5)), bool(seed & 1), bool(seed & 2))
    tiling = [None, "row", "column", "duplicate"][random.integers(4)]
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, tiling=tiling):
        ours, sparse = steps(np, np.array(LARGE), np.asarray(S))
        theirs, _ = steps(numpy, LARGE, S)
        for _ in range(2):
            engine.lose(random, share, how)
            for at in random.permutation(len(ours)):
                found = ours[at] * 1 if random.random() < 0.5 else ours[at]
                numpy.testing.assert_allclose(numpy.asarray(found), theirs[at], rtol=1e-9)
            numpy.testing.assert_allclose((sparse @ np.array(X[:70])).compute(), (S * 2.0) @ X[:70])


@pytest.mark.some(5)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("then", ["in this process", "on another engine"])
def test_what_an_engine_had_that_was_closed_is_computed_where_programs_run_now(then, seed):
    """Not before: as long as nobody has moved, it is said to be closed."""
    random = numpy.random.default_rng(seed)
    engine = InlineEngine(int(random.integers(1, 5)), bool(seed & 1), bool(seed & 2))
    left = EngineBackend(engine)
    ours: list[Any] = []
    with running_on(left), config.override(small_bytes=0):
        ours, sparse = steps(np, np.array(LARGE), np.asarray(S))
        theirs, _ = steps(numpy, LARGE, S)
        lazy = ours[0] + 1
        adopted = ArrayRef((2, 3), numpy.dtype(float))
        left.adopt(adopted, Tiling.grid(2, 1), [engine.submit("theirs", ones) for _ in range(2)])
        engine.closed = True
        with pytest.raises(MasterUnreachable, match="inline was closed"):
            ours[0].compute()
        other = EmbeddedBackend(2) if then == "in this process" else EngineBackend(InlineEngine(3))
        with running_on(other):
            left.retire()
            order = random.permutation(len(ours)).tolist()
            for at in order:
                found = ours[at] * 1 if random.random() < 0.5 else ours[at]
                numpy.testing.assert_allclose(numpy.asarray(found), theirs[at], rtol=1e-9)
            numpy.testing.assert_allclose(numpy.asarray(lazy), LARGE * 2 + 2, rtol=1e-12)
            numpy.testing.assert_allclose((sparse @ np.array(X[:70])).compute(), (S * 2.0) @ X[:70])
            with pytest.raises(MasterUnreachable, match="inline was closed"):  # nobody else can make it
                wrap_node(build.data(adopted)).compute()


@pytest.mark.some(5)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("how", LOST)
def test_a_program_over_a_lost_array_gives_numpys_answer(name, how):
    engine = LosingEngine(3)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        every = (np.array(LARGE) * 2).persist()
        x = every[: len(X)]
        engine.lose(numpy.random.default_rng(0), 1.0, how)
        found = numpy.asarray(PROGRAMS[name](np, x, np.array(I), np.asarray(S)))
    numpy.testing.assert_allclose(found, PROGRAMS[name](numpy, LARGE[: len(X)] * 2, I, S), rtol=1e-12)


def test_no_more_than_what_is_lost_is_computed_again():
    engine = LosingEngine(4)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, tiling="row"):
        x = np.array(LARGE)
        y = (x * 2).persist()
        ref = y._leaf()
        backend = session.current().backend
        assert ref is not None
        assert isinstance(backend, EngineBackend)
        tiles = backend.tiles(ref)
        tiles[1].handle.error = TaskKilled("gone")
        numpy.testing.assert_array_equal(y, LARGE * 2)
        amount = session.current().recovered
    assert len(tiles) > 1
    assert amount.lost == amount.computed == x.size // len(tiles)


def test_what_kills_each_process_is_given_up_as_its_engine_gives_it_up():
    """It is not tried again and again, where all that it reads is there."""

    class Killing(InlineEngine):
        tries = 0

        def wait(self, handles):
            self.tries += 1
            raise TaskKilled("the last one")

    engine = Killing(3)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x = np.array(LARGE)
        with pytest.raises(GivenUp, match="the last one"):
            np.sort(x * 2, axis=1).persist()
        with pytest.raises(UserFunctionError, match="copies"):
            np.map(copies, x, dtype=float).persist()
    assert engine.tries == 2


def copies(block):
    return block.copy()


def test_what_nobody_can_make_again_is_said_to_be_lost():
    """What the engine's own programs have made, and we have taken from it."""
    engine = LosingEngine(2)
    backend = EngineBackend(engine)
    assert isinstance(backend, Losing)
    with running_on(backend), config.override(small_bytes=0):
        ref = ArrayRef((2, 3), numpy.dtype(float))
        backend.adopt(ref, Tiling.grid(2, 1), [engine.submit("theirs", ones) for _ in range(2)])
        taken = wrap_node(build.data(ref))
        made = (taken + 1).persist()
        numpy.testing.assert_array_equal(made, numpy.full((2, 3), 2.0))
        engine.lose(numpy.random.default_rng(0), 1.0, "forgotten")
        numpy.testing.assert_array_equal(made * 2, numpy.full((2, 3), 4.0))
        for asks in (taken.compute, (taken * 2).compute):
            with pytest.raises(WorkerLost, match="inline was restarted, or has cancelled futures"):
                asks()


def ones():
    return Made({0: numpy.ones((1, 3))})
