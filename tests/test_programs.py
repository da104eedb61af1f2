"""NumPy's answer for random programs: embedded, on 1, 2, 3 and 5 workers, in every forced tiling, with each
pass off. Layout never changes an answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import FUSIONS, TILINGS, config
from spartan_ng.costs import Profile
from spartan_ng.optimizer.fusion import select
from spartan_ng.optimizer.fusion.plans import PlanCosts
from spartan_ng.optimizer.fusion.search import Found
from spartan_ng.optimizer.pipeline import NAMES
from tests.programs import NARROW, Program, programs
from tests.sampling import examples

SLOW = examples(100)


@contextmanager
def running_on(backend: Backend) -> Iterator[None]:
    """Evaluate on `backend` inside the block."""
    before = session.current().backend
    session.use(backend)
    try:
        yield
    finally:
        session.use(before)
        backend.close()


def check(program: Program) -> None:
    """Compare a program's results with NumPy's: values, shapes and dtypes."""
    with np.errstate(all="ignore"):
        expected = program.run(np, np.array)
        with config.override(small_bytes=0):
            found = sp.compute(*program.run(sp, sp.array))
    for a, b in zip(expected, found, strict=True):
        assert np.shape(a) == np.shape(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.slow
@SLOW
@given(program=programs())
def test_embedded(program: Program) -> None:
    with running_on(EmbeddedBackend(2)):
        check(program)


@pytest.mark.slow
@SLOW
@given(program=programs(), workers=st.sampled_from([1, 2, 3, 5]), tiling=st.sampled_from([None, *TILINGS]))
def test_workers_and_tilings(program: Program, workers: int, tiling: str | None) -> None:
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling):
        check(program)


@SLOW
@given(
    program=programs(letters="ssc", kinds=NARROW) | programs(),
    workers=st.sampled_from([1, 3]),
    fusion=st.sampled_from(FUSIONS),
)
def test_numexpr(program: Program, workers: int, fusion: str) -> None:
    """Whatever numexpr can run of a program."""
    with running_on(SimulatedBackend(workers)), config.override(kernels="numexpr", fusion=fusion):
        check(program)


@pytest.mark.slow
@SLOW
@given(program=programs(), workers=st.sampled_from([2, 3, 4]))
def test_kept_copies(program: Program, workers: int) -> None:
    """Where messages cost nothing, small arrays are kept twice, too; later programs read the copies."""
    backend = SimulatedBackend(workers, Profile(message_ns=0, flops_s=10**6))
    with running_on(backend), config.override(small_bytes=0):
        kept: dict[int, Any] = {}

        def convert(a: Any) -> Any:
            return kept.setdefault(id(a), sp.array(a))

        for _ in range(3):
            found = sp.compute(*program.run(sp, convert))
            with np.errstate(all="ignore"):
                expected = program.run(np, np.array)
            for a, b in zip(expected, found, strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, equal_nan=True)


@SLOW
@given(
    program=programs(letters="ssc", kinds=NARROW),
    workers=st.sampled_from([1, 3]),
    tiling=st.sampled_from([None, *TILINGS]),
)
def test_narrow_dtypes(program: Program, workers: int, tiling: str | None) -> None:
    """float32 and complex64 keep their dtypes through every kind of step."""
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling):
        check(program)


@SLOW
@given(program=programs(), off=st.sampled_from(sorted(NAMES)), workers=st.sampled_from([1, 3]))
def test_each_pass_off(program: Program, off: str, workers: int) -> None:
    with running_on(SimulatedBackend(workers)), config.override(disabled_passes=frozenset({off})):
        check(program)


@SLOW
@given(program=programs(), fusion=st.sampled_from(FUSIONS), workers=st.sampled_from([1, 3]))
def test_each_way_to_fuse(program: Program, fusion: str, workers: int) -> None:
    with running_on(SimulatedBackend(workers)), config.override(fusion=fusion):
        check(program)


@pytest.mark.slow
@SLOW
@given(program=programs(), seed=st.integers(0, 2**32 - 1), workers=st.sampled_from([1, 1, 3]))
def test_any_choice_of_materialization_points(program: Program, seed: int, workers: int) -> None:
    """What selection chooses is a matter of time only: any assignment gives the same answer."""
    rng = random.Random(seed)

    def choose(costs: PlanCosts, most: int) -> Found:
        return Found(rng.getrandbits(len(costs.partition.points)), 0, 0, False)

    with running_on(SimulatedBackend(workers)), pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "search", choose)
        check(program)


@examples(15)
@given(program=programs(most=12))
def test_two_runs_are_bit_identical(program: Program) -> None:
    def run() -> tuple[Any, ...]:
        with running_on(SimulatedBackend(3)), config.override(small_bytes=0), np.errstate(all="ignore"):
            return tuple(np.asarray(v).tobytes() for v in sp.compute(*program.run(sp, sp.array)))

    assert run() == run()


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
@pytest.mark.parametrize("tiling", TILINGS)
def test_index_functions_do_not_see_the_layout(workers: int, tiling: str) -> None:
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, small_bytes=0):
        a = sp.arange(35).reshape(7, 5) + sp.eye(7, 5, k=1)
        np.testing.assert_array_equal(np.asarray(a), np.arange(35).reshape(7, 5) + np.eye(7, 5, k=1))


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_predicted_bytes_are_the_bytes_moved(workers: int) -> None:
    backend = SimulatedBackend(workers)
    with running_on(backend), config.override(tiling="row", small_bytes=0):
        x = sp.asarray(np.random.default_rng(0).random((60, 40)))
        y = (x + x.T[:40, :40].sum(axis=0)) @ sp.ones((40, 3))
        sp.compute(y.sum(axis=0), (x * 2).cumsum(axis=0), x.mean(), x.std(axis=0))
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    assert [s.bytes_moved for s in stats.stages] == list(plan.predicted_bytes)
    assert stats.bytes_moved > 0
