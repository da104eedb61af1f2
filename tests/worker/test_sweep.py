"""Several results of one pass: NumPy's values for every mix of plain and reduced ones."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels import blocks
from spartan_ng.plan.stages import Fused
from tests.sampling import examples
from tests.test_programs import running_on

RESULTS = {
    "sum of all": lambda xp, x: xp.sum(x * 2),
    "column sums": lambda xp, x: (x + 1).sum(axis=0),
    "row minima": lambda xp, x: x.min(axis=1),
    "column maxima": lambda xp, x: (x * x).max(axis=0),
    "first row extremes": lambda xp, x: x.argmax(axis=1),
    "last column extremes": lambda xp, x: x.argmin(axis=0),
    "doubles": lambda xp, x: x * 2,
    "transposed": lambda xp, x: (x - 1).T,
    "softmax": lambda xp, x: xp.exp(x - x.max(axis=1)[:, None]),
    "products": lambda xp, x: x.T @ x,
    "row products": lambda xp, x: x @ xp.arange(x.shape[1] * 1.0),
    "any": lambda xp, x: (x > 0.99).any(axis=0),
}


def values(xp, x, names):
    x = x * 1.5
    return [RESULTS[name](xp, x) for name in names]


@pytest.mark.slow
@examples(60)
@given(
    names=st.lists(st.sampled_from(sorted(RESULTS)), min_size=2, max_size=6, unique=True),
    shape=st.sampled_from([(40, 7), (7, 40), (1, 30), (64, 1), (33, 33)]),
    workers=st.sampled_from([1, 2, 3, 5]),
    cache=st.sampled_from([1 << 9, 1 << 12, 1 << 19]),
    kernels=st.sampled_from(["interpret", "interpret", "compile"]),
)
def test_results_of_one_pass(names, shape, workers, cache, kernels):
    x = np.random.default_rng(0).random(shape)
    expected = values(np, x, names)
    patch = pytest.MonkeyPatch()
    patch.setattr(blocks, "CACHE_BYTES", cache)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0, kernels=kernels):
        found = sp.compute(*values(sp, sp.asarray(x), names))
    patch.undo()
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-12)


def the_stage():
    """The only one of the last run."""
    ran = session.current().last_run
    assert ran is not None
    (stage,) = ran[0].stages
    assert isinstance(stage, Fused)
    return stage


def test_the_shared_operand_is_read_once():
    x = np.random.default_rng(0).random((400, 30))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        a = sp.asarray(x)
        found = sp.compute(a.sum(axis=0), a.min(axis=0), a.max(axis=1), a * 2)
        stage = the_stage()
        ran = session.current().last_run
    assert ran is not None
    assert len(stage.writes) == 4
    assert sum(ran[0].slots[r.slot].shape == (400, 30) for r in stage.reads) == 1
    np.testing.assert_array_equal(found[3], x * 2)


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("tiling", ["row", "column", "block"])
def test_predicted_bytes_are_the_bytes_moved(workers, tiling):
    x = np.random.default_rng(0).random((60, 40))
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, small_bytes=0):
        a = sp.asarray(x)
        sp.compute(a.sum(axis=0), a.min(axis=1), (a * 2).sum(), a.T @ a)
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    assert [s.bytes_moved for s in stats.stages] == list(plan.predicted_bytes)


@pytest.mark.slow
def test_states_of_products_do_not_wait_for_the_end(monkeypatch):
    monkeypatch.setattr(blocks, "CACHE_BYTES", 1 << 14)
    x = np.random.default_rng(0).random((100_000, 100))
    with running_on(EmbeddedBackend(1)), config.override(small_bytes=0, threads=1):
        a = sp.asarray(x)
        sp.compute(a.sum())  # it is copied when it is first read
        tracemalloc.start()
        try:
            sums, products = sp.compute(a.sum(axis=0), a.T @ a)
            held = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        stage = the_stage()
    assert len(stage.writes) == 2
    assert held < 90 * products.nbytes  # with the states of all runs 180
    np.testing.assert_allclose(sums, x.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(products, x.T @ x, rtol=1e-12)


@pytest.mark.parametrize("names", [["column sums", "products"], ["products", "last column extremes"]])
def test_a_product_beside_other_results_has_blocks_of_many_rows(names):
    x = np.random.default_rng(0).random((100_000, 50))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        a = sp.asarray(x)
        found = sp.compute(*(RESULTS[name](sp, a) for name in names))
        stage = the_stage()
    sizes = blocks.block_sizes(stage, tuple((0, n) for n in stage.domain), held=frozenset())
    assert max(sizes) > 5_000  # with fewer, calling BLAS and adding up its results take most of the time
    for a, name in zip(found, names, strict=True):
        np.testing.assert_allclose(a, RESULTS[name](np, x), rtol=1e-10)


BY_ROWS = {
    "sums": lambda xp, x: (x * 2).sum(axis=1),
    "products": lambda xp, x: (x + 0.5).prod(axis=1),
    "minima": lambda xp, x: (x * x).min(axis=1),
    "maxima": lambda xp, x: x.max(axis=1),
    "any": lambda xp, x: (x > 0.9).any(axis=1),
    "all": lambda xp, x: (x > 0.1).all(axis=1),
    "counts": lambda xp, x: (x > 0.5).sum(axis=1),
    "sums of integers": lambda xp, x: (x * 9).astype(int).sum(axis=1),
    "single precision": lambda xp, x: (x * 9).astype("f4").sum(axis=1),
    "sums with masks": lambda xp, x: xp.where(x > 0.5, x, 0).sum(axis=1),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("limit", [1 << 22, 1 << 23])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("seed", range(8))
def test_results_by_rows_are_the_states_that_runs_share(seed, order, limit, tmp_path):
    """Each had a state as large beside its tile, and in the trial of the kernel another two."""
    names = np.random.default_rng(seed).choice([*BY_ROWS], 3, replace=False)
    x = np.random.default_rng(seed).random((500_000, 3))
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    with (
        running_on(EmbeddedBackend(2, limit)),
        config.override(small_bytes=0, kernels="compile", memory_bytes=limit),
    ):
        a = sp.load(tmp_path / "x.npy")
        sp.compute(*(BY_ROWS[name](sp, a[:1000]) for name in names))  # what compiling takes
        made = [BY_ROWS[name](sp, a) for name in names]
        tracemalloc.start()
        try:
            found = sp.persist(*made)
            held = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(the_stage().writes) == 3
        assert held < limit, "tiles are the store's"
        for one, name in zip(found, names, strict=True):
            np.testing.assert_allclose(one, BY_ROWS[name](np, x), rtol=1e-5)
