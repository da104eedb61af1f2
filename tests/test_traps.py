"""The traps that the original system fell into, one test each (two more need daemons: `tests/cluster`)."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import UserFunctionError
from spartan_ng.graph import build
from spartan_ng.graph.node import Op, topological
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings
from tests.test_programs import running_on

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("tiling", ["row", "column", "block"])
def test_1_tiling_does_not_change_index_functions(tiling: str) -> None:
    with running_on(SimulatedBackend(4)), config.override(tiling=tiling, small_bytes=0):
        a = sp.arange(24).reshape(4, 6)
        np.testing.assert_array_equal(sp.asarray(a * 1).compute(), np.arange(24).reshape(4, 6))


def test_2_a_random_array_is_drawn_once() -> None:
    for fuse_off in (frozenset(), frozenset({"fuse"})):
        with running_on(SimulatedBackend(3)), config.override(small_bytes=0, disabled_passes=fuse_off):
            x = sp.random.default_rng().standard_normal((50, 7))
            assert float((x - x).sum()) == 0
            assert float(x.sum()) == pytest.approx(float(x.T.sum()), rel=1e-12)


def test_3_a_failing_function_leaves_the_workers_well() -> None:
    def fails(block: np.ndarray) -> np.ndarray:
        raise KeyError("no such thing")

    with running_on(SimulatedBackend(3)), config.override(small_bytes=0):
        x = sp.asarray(RNG.random((9, 4)))
        with pytest.raises(UserFunctionError, match=r"(?s)no such thing.*test_traps\.py"):
            sp.map(fails, x, dtype=float).compute()
        np.testing.assert_allclose((x + 1).compute(), x.compute() + 1)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (1, 7), (3, 1)])
def test_4_dimensions_smaller_than_the_number_of_workers(shape: tuple[int, ...]) -> None:
    value = RNG.random(shape)
    with running_on(SimulatedBackend(5)), config.override(small_bytes=0):
        x = sp.asarray(value)
        np.testing.assert_allclose((x @ x.T + x.sum()).compute(), value @ value.T + value.sum())


def test_5_a_line_is_sorted_across_tiles() -> None:
    value = RNG.permutation(1000)
    with running_on(SimulatedBackend(4)), config.override(tiling="row", small_bytes=0):
        np.testing.assert_array_equal(sp.sort(sp.asarray(value)).compute(), np.arange(1000))


def test_6_indexing_in_every_form() -> None:
    value = RNG.random((6, 5))
    with running_on(SimulatedBackend(3)), config.override(small_bytes=0):
        x = sp.asarray(value)
        for key in (slice(None, None, 2), -1, (2, 3), ..., [0, 2, -1], value > 0.5, (..., -1), (None, 1)):
            np.testing.assert_array_equal(np.asarray(x[key]), value[key])


# How long planning takes here is no matter.
@pytest.mark.filterwarnings("ignore::spartan_ng.errors.PerformanceWarning")
@pytest.mark.some(1)
@pytest.mark.parametrize("length", [400, 10_000, pytest.param(100_000, marks=pytest.mark.whole)])
def test_8_long_chains(length: int) -> None:
    with config.override(small_bytes=0):
        x = sp.zeros(10)
        for _ in range(length):
            x = x + 1
        assert float(x.sum()) == 10 * length


def test_9_costs_above_two_to_the_31() -> None:
    with running_on(SimulatedBackend(4)):
        x = sp.random.default_rng().random((1 << 20, 1 << 20)).cumsum(axis=0)
        explanation = sp.explain((x + x.T).sum())
        assert explanation.predicted_bytes > 1 << 31


def test_10_a_duplicate_lies_on_every_worker() -> None:
    backend = SimulatedBackend(3)
    with running_on(backend), config.override(tiling="duplicate", small_bytes=0):
        leaf = sp.asarray(RNG.random((8, 2)))
        x = (leaf + leaf).persist()
        assert backend.tiles == 2 * 3, "the leaf and the result, on each of three workers"
        assert np.asarray(x).shape == (8, 2)


def test_11_the_truth_of_an_array() -> None:
    assert not bool(sp.asarray([0]))
    with pytest.raises(ValueError, match="ambiguous"):
        bool(sp.asarray([0, 1]))


def test_12_plans_do_not_grow_with_the_number_of_tiles() -> None:
    x = build.constant(RNG.random((4096, 64)))
    root = build.fold("add", build.map_("exp", x), (0,))
    sizes = {
        w: len(repr(lower(topological([root]), [root], Settings(Profile(workers=w)), "p").stages))
        for w in (4, 64, 1024)
    }
    assert sizes[1024] <= sizes[4] * 1.05


def test_13_optimizing_changes_no_node() -> None:
    x = build.constant(RNG.random((8, 8)))
    shared = build.map_("exp", x)
    roots = [build.slice_(shared, (0, 0), (2, 1), (4, 8)), build.fold("add", shared, (0,))]
    before = {n: structs.astuple(structs.replace(n, inputs=(), data=None)) for n in topological(roots)}
    first = [r.value for r in session.evaluate(roots)]
    second = [r.value for r in session.evaluate(roots[::-1])][::-1]
    assert before == {
        n: structs.astuple(structs.replace(n, inputs=(), data=None)) for n in topological(roots)
    }
    assert all(n.op is not Op.DATA or n is x for n in topological(roots))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_14_a_block_tiling_is_not_its_own_transpose() -> None:
    value = RNG.random((8, 8))
    with running_on(SimulatedBackend(4)), config.override(tiling="block", small_bytes=0):
        x = sp.asarray(value)
        np.testing.assert_allclose((x + x.T).compute(), value + value.T)
        np.testing.assert_allclose((x @ x.T).T.compute(), value @ value.T)
