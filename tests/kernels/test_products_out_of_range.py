"""Products near the ends of the range, however factors are cut into blocks: what is decided stays so, and so
does what is within range as factors come one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.direct import run_direct
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.products import _apart
from tests.sampling import examples
from tests.test_programs import running_on


def _decided(dtype: str) -> np.ndarray:
    """Columns whose first factors make them zero or infinite, and later ones that overflow, underflow or do
    neither; behind zeros some have infinities and NaNs, which undo them."""
    rng = np.random.default_rng(7)
    large = float(np.finfo(dtype).max) ** 0.3
    x = np.exp(rng.normal(rng.choice([-1, 0, 1], 60), 1, (3000, 60))) * rng.choice([-1, 1], (3000, 60))
    x[:5] = np.where(np.arange(60) % 2, -large, 1)
    x[2, :40:2] = rng.choice([0.0, -0.0], 20)
    x[2700, :10] = rng.choice([np.inf, -np.inf, np.nan], 10)
    return x.astype(dtype)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("reproducible", [False, True])
def test_what_is_decided_stays(kernels, workers, dtype, reproducible):
    x = _decided(dtype)
    kept = np.random.default_rng(8).random(x.shape) < 0.9
    kept[:5] = True
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    settings = {"small_bytes": 0, "kernels": kernels, "reproducible": reproducible}
    with running_on(backend), config.override(**settings), np.errstate(all="ignore"):
        for axis, array, mask in ((0, x, kept), (1, np.ascontiguousarray(x.T), kept.T)):
            a = sp.asarray(array)
            found = sp.compute(a.prod(axis), (a + a).prod(axis), a.prod(axis, where=sp.asarray(mask)))
            expected = [array.prod(axis), (array + array).prod(axis), array.prod(axis, where=mask)]
            for f, e in zip(found, expected, strict=True):
                _assert_same(f, e)


def _wandering(dtype: str, seed: int, shape: tuple[int, int]) -> np.ndarray:
    """Columns whose products go up and down within nine tenths of the range, so that those of some of their
    factors would leave it."""
    rng = np.random.default_rng(seed)
    bound = -0.9 * float(np.log(np.finfo(dtype).tiny))
    steps = rng.normal(0, bound * rng.choice([0.01, 0.1, 0.3], shape[1]), shape).clip(-bound, bound)
    places = np.abs((steps.cumsum(0) + bound) % (4 * bound) - 2 * bound) - bound
    x = np.exp(np.diff(places, axis=0, prepend=0).astype(np.longdouble)) * rng.choice([-1, 1], shape)
    x = x * np.exp(1j * rng.uniform(0, 6, shape)) if dtype in ("c8", "c16") else x
    return x.astype(dtype)


def _is_quiet(x: np.ndarray) -> bool:
    """Whether NumPy reports nothing; a part of a complex product may be too small where that is not."""
    try:
        with np.errstate(all="raise"):
            np.prod(x, axis=0)
    except FloatingPointError:
        assert x.dtype.kind == "c"
        return False
    return True


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "c8", "c16"])
@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 300), st.data())
def test_parts_leave_the_range(dtype: str, seed: int, n: int, data: st.DataObject) -> None:
    """In any cut and tree, and without a report, as NumPy has none."""
    x = _wandering(dtype, seed, (n, 5))
    fold = FOLDS["multiply"]
    cuts = sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=9))) if n > 1 else []
    with np.errstate(all="ignore"):
        expected = np.prod(x, axis=0)
    with np.errstate(all="raise" if _is_quiet(x) else "ignore"):
        states = [fold.block(p, (0,), x.dtype, None, 0) for p in np.split(x, cuts)]
        while len(states) > 1:
            at = data.draw(st.integers(0, len(states) - 2))
            states[at : at + 2] = [fold.combine(*states[at : at + 2])]
        found = fold.finalize(states[0])
    np.testing.assert_allclose(found, expected, rtol=(n + 9) * 4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "c8", "c16"])
@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 300), st.booleans(), st.data())
def test_blocks_that_know_what_lies_before(
    dtype: str, seed: int, n: int, is_decided: bool, data: st.DataObject
) -> None:
    """They need not have what NumPy has of their factors alone: the first one decides, in any cut."""
    rng = np.random.default_rng(seed)
    if is_decided and dtype in ("f4", "f8"):
        x = _decided(dtype)[rng.integers(0, 6) :: rng.integers(1, 99), rng.integers(0, 60)].copy()
    else:
        x = _wandering(dtype, seed, (n, 5))[:, 2].copy()
    fold, n = FOLDS["multiply"], len(x)
    starts = [0, *sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=9)))] if n > 1 else [0]
    with np.errstate(all="ignore"):
        expected = np.prod(x)
        parts = np.split(x, starts[1:])
        states = [fold.block(p, (0,), x.dtype, None, at) for p, at in zip(parts, starts, strict=True)]
        while len(states) > 1:
            at = data.draw(st.integers(0, len(states) - 2))
            states[at : at + 2] = [fold.combine(*states[at : at + 2])]
        found = fold.finalize(states[0])
    assert np.asarray(found).dtype == x.dtype
    np.testing.assert_allclose(found, expected, rtol=(n + 9) * 4 * float(np.finfo(dtype).eps))
    if x.dtype.kind == "f" and not np.isnan(expected):
        assert np.signbit(found) == np.signbit(expected)


def test_what_leaves_the_range_is_reported() -> None:
    """Once it is known to, as NumPy reports it."""
    fold = FOLDS["multiply"]
    for x in (np.full(40, 1e20), np.full(40, 1e-20)):
        states = [fold.block(p, (0,), x.dtype, None, 0) for p in np.split(x, [10])]
        state = fold.combine(*states)
        with np.errstate(over="raise", under="raise"):
            with pytest.raises(FloatingPointError):
                np.prod(x)
            with pytest.raises(FloatingPointError):
                fold.finalize(state)
            np.testing.assert_allclose(fold.finalize(states[0]), x[0] ** 10)


@pytest.mark.slow
@pytest.mark.some(8)
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_blocks_leave_the_range(kernels, workers, reproducible, dtype):
    settings = {"small_bytes": 0, "kernels": kernels, "reproducible": reproducible}
    for shape in ((100, 3000), (20_000, 40), (500_000, 1)):
        x = _wandering(dtype, 3, shape)
        backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
        with running_on(backend), config.override(**settings):
            for axis, array in ((0, x), (1, np.ascontiguousarray(x.T))):
                a = sp.asarray(array)
                expected = [np.prod(array, axis), np.prod(-array, axis)]
                for f, e in zip(sp.compute(a.prod(axis), (-a).prod(axis)), expected, strict=True):
                    np.testing.assert_allclose(f, e, rtol=shape[0] * 4 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("first", [0.0, -0.0, 1e200, -1e200, 1.0])
@pytest.mark.parametrize("later", [1e3, -1e-3, 1.0])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_long_lines(first, later, dtype):
    with np.errstate(all="ignore"):
        x = np.full(500_001, later, dtype)
        x[:2] = first
        expected = np.prod(x)
        with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
            found = sp.prod(sp.asarray(x)).compute()
    if dtype != "c16" or np.isfinite(expected):  # the parts of complex infinities depend on the order
        _assert_same(found, expected)


def test_integers_wrap():
    x = np.arange(1, 1_000_000) * 2 + 1
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0), np.errstate(over="ignore"):
        assert sp.prod(sp.asarray(x)).compute() == np.prod(x)
        assert sp.prod(sp.asarray(x), dtype=float).compute() == np.inf


def _assert_same(found, expected):
    rtol = 1e-4 if np.asarray(expected).dtype == "f4" else 1e-10
    np.testing.assert_allclose(found, expected, rtol=rtol)
    if np.asarray(expected).dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


def test_no_exponents_are_asked_for_where_nothing_is_combined(monkeypatch):
    x = np.random.default_rng(0).random((1000, 50))
    monkeypatch.setattr("spartan_ng.ops.products._unbounded", None)
    with config.override(small_bytes=0, kernels="interpret"), running_on(EmbeddedBackend(2)):
        a = sp.asarray(x)
        for axis in (None, 0, 1):  # by a program of one step
            found = run_direct([a.prod(axis)._node()], 1 << 25)
            assert found is not None
            _assert_same(found[0], x.prod(axis))
        _assert_same((a + 0.0).prod(1).compute(), x.prod(1))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
def test_few_factors_are_taken_apart(axes, monkeypatch):
    """Of a block that leaves the range: the others are multiplied before."""
    taken = []

    def apart(x):
        taken.append(np.size(x))
        return _apart(x)

    monkeypatch.setattr("spartan_ng.ops.products._apart", apart)
    x = np.random.default_rng(0).random((1000, 500))
    FOLDS["multiply"].block(x, axes, x.dtype, None, 0)
    assert sum(taken) <= x.size // 8
