"""The variance in one pass: NumPy's values for every axis and layout, and nothing cancels."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.compiled import deviations
from spartan_ng.kernels.compiled.deviations import sum_and_deviations
from spartan_ng.ops.folds import FOLDS, DeviationFold
from tests.test_programs import running_on


@pytest.mark.some(30)
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_variances(kernels, workers, axis, dtype):
    x = (np.random.default_rng(0).random((60, 30, 17)) * 100).astype(dtype)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0, kernels=kernels):
        a = sp.asarray(x)
        found = sp.compute(a.var(axis), a.std(axis, ddof=1), (a.T + 0).var(axis), a.var(axis, keepdims=True))
    expected = [x.var(axis), x.std(axis, ddof=1), x.T.var(axis), x.var(axis, keepdims=True)]
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == e.dtype
        np.testing.assert_allclose(f, e, rtol=1e-4 if dtype == "f4" else 1e-10)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
def test_a_large_mean_cancels_nothing(kernels):
    x = np.random.default_rng(0).random((50_000, 3)) + 1e9
    x[0] = -1e9
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, kernels=kernels):
        a = sp.asarray(x)
        np.testing.assert_allclose(a[1:].var(0).compute(), x[1:].var(0), rtol=1e-9)
        np.testing.assert_allclose(a.var(0).compute(), x.var(0), rtol=1e-9)


def test_special_values():
    x = np.ones((400, 4))
    x[7, 1], x[9, 2] = np.nan, np.inf
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0), np.errstate(all="ignore"):
        np.testing.assert_array_equal(sp.asarray(x).var(0).compute(), x.var(0))


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_what_overflows_is_infinite_where_numpys_is(kernels, workers, dtype):
    """Columns whose squares, sums or distances overflow, with and without infinities and NaNs."""
    rng = np.random.default_rng(5)
    large = float(np.finfo(dtype).max)
    values = [0.0, 1.0, -3.0, large**0.6, -3 * large**0.6, 0.9 * large, np.inf, -np.inf, np.nan]
    chances = np.exp(rng.normal(0, 3, (len(values), 40)))
    chances[6:] *= rng.random(40) < 0.3
    x = np.stack([rng.choice(values, 3000, p=c / c.sum()) for c in chances.T], 1).astype(dtype)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0, kernels=kernels), np.errstate(all="ignore"):
        for axis, array in ((0, x), (1, np.ascontiguousarray(x.T))):
            found, expected = sp.asarray(array).var(axis).compute(), array.var(axis)
            np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype == "f4" else 1e-9)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_sum_beside_deviations_is_made_on_the_way(kernels, workers, axis):
    x = np.random.default_rng(1).integers(-1000, 1000, (3000, 40)).astype(float)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0, kernels=kernels):
        a = sp.asarray(x)
        total, mean, var, other = sp.compute(
            a.sum(axis), a.mean(axis), a.var(axis), a.sum(1 if axis != 1 else 0)
        )
    np.testing.assert_array_equal(total, x.sum(axis))  # whole numbers: no rounding may change them
    np.testing.assert_array_equal(other, x.sum(1 if axis != 1 else 0))
    np.testing.assert_allclose(mean, x.mean(axis), rtol=1e-15)
    np.testing.assert_allclose(var, x.var(axis), rtol=1e-12)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("first", [np.inf, np.nan, 1.7e308, -1.7e308])
def test_a_first_row_that_is_no_origin(kernels, first):
    x = np.ones((4000, 3))
    x[0, 1] = first
    x[1, 1] = -first / 2 if np.isfinite(first) else 1.0
    with (
        running_on(EmbeddedBackend(2)),
        config.override(small_bytes=0, kernels=kernels),
        np.errstate(all="ignore"),
    ):
        total, var = sp.compute(sp.asarray(x).sum(0), sp.asarray(x).var(0))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(total, x.sum(0), rtol=1e-12)
        np.testing.assert_array_equal(var[[0, 2]], 0)
        assert not np.isfinite(var[1])


SHAPES = [
    ((5001,), (0,)),
    ((4099, 1), (0,)),
    ((4099, 3), (0,)),
    ((20_001, 50), (0,)),
    ((9, 500), (0,)),
    ((15, 300), (0,)),
    ((701, 511), (0,)),
    ((101, 1300), (0,)),
    ((2, 5000), (0,)),
    ((700, 50), (1,)),
    ((7, 90, 41), (1,)),
    ((3, 11, 600), (1,)),
    ((40, 30, 7), (0, 1)),
    ((40, 30, 7), (1, 2)),
]


@pytest.mark.some(10)
@pytest.mark.parametrize("mean", [0, 1e3, 1e9, "equal"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES)
def test_compiled_blocks_of_every_shape(shape, axes, dtype, mean):
    if mean == "equal":  # all but the first: each addition to a large sum is rounded alike
        x = np.full(shape, 0.1)
        x[tuple(slice(1) if axis in axes else slice(None) for axis in range(len(shape)))] = 1.5
    else:
        x = np.random.default_rng(3).standard_normal(shape) + mean
    if mean == 1e3:
        x[(0,) * len(shape)] = -mean  # no good origin
    x = x.astype(dtype)
    with config.override(kernels="compile"):
        found = sum_and_deviations(x, axes, x.dtype)
    assert found is not None
    (total,), (count, middle, rest, squares) = found
    exact = x.astype(np.longdouble)
    eps = np.finfo(dtype).eps
    rows = x.size // squares.size
    alike = min(rows, 1024) / 4 if mean == "equal" else 1  # roundings of one run all go the same way
    most = 2 * rows * eps * abs(exact).max() * alike
    np.testing.assert_allclose(total, exact.sum(axes), rtol=20 * eps, atol=most)
    assert (count == rows).all()
    np.testing.assert_allclose(
        middle.astype(np.longdouble) + rest, exact.mean(axes), rtol=2 * eps, atol=500 * eps * exact.std()
    )
    np.testing.assert_allclose(squares, exact.var(axes) * count, rtol=100 * eps)


def test_whole_numbers_far_from_zero_sum_exactly():
    x = np.random.default_rng(4).integers(-9, 9, (30_000, 6)) + 2.0**37
    with config.override(kernels="compile"):
        found = sum_and_deviations(x, (0,), x.dtype)
    assert found is not None
    np.testing.assert_array_equal(found[0][0], x.sum(0))


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (1, 2)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_pieces_of_a_block_by_numpy(axes, order):
    fold = FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold)
    x = np.asarray(np.random.default_rng(5).standard_normal((70, 3000, 3)) + 1e9, order=order)
    (total,), (count, middle, rest, squares) = fold.block_and_sum(x, axes, x.dtype)
    exact = x.astype(np.longdouble)
    np.testing.assert_allclose(total, exact.sum(axes), rtol=1e-14)
    assert (count == x.size // squares.size).all()
    np.testing.assert_allclose(middle.astype(np.longdouble) + rest - exact.mean(axes), 0, atol=1e-8)
    np.testing.assert_allclose(squares, exact.var(axes) * count, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (5,), (3, 1500)])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 32])
def test_states_of_many_blocks(shape, count):
    fold = FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold)
    x = np.random.default_rng(count).normal(1e6, 1.0, (count, 40, *shape))
    states = [fold.block(block, (0,), x.dtype, None, 0) for block in x]
    total = fold.combine_all(states)
    assert [np.shape(part) for part in total] == [shape] * 4
    expected = x.reshape(count * 40, *shape).var(axis=0) * count * 40
    np.testing.assert_allclose(fold.finalize(total), expected, rtol=1e-10)
    np.testing.assert_array_equal(total[0], count * 40.0)


@pytest.mark.parametrize("piece", [1 << 12, 1 << 17])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("mean", [0.0, 1e9])
def test_columns_of_an_array_are_folded_by_the_same_kernel(monkeypatch, piece, axes, mean):
    monkeypatch.setattr(deviations, "_PIECE", piece)
    x = np.random.default_rng(0).random((1000, 6, 9))[..., 2:7] + mean
    fold = FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold)
    (total,), states = fold.block_and_sum(x, axes, x.dtype)
    with config.override(kernels="compile"):
        found = sum_and_deviations(x, axes, x.dtype)
    assert found is not None
    np.testing.assert_allclose(found[0][0], total, rtol=1e-13)
    np.testing.assert_array_equal(found[1][0], states[0])
    np.testing.assert_allclose(found[1][1] + found[1][2], states[1] + states[2], rtol=1e-13)
    np.testing.assert_allclose(found[1][3], states[3], rtol=1e-9)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((65_536, 100), (1,)),
        ((100, 65_536), (1,)),
        ((65_536, 100), (0,)),
        ((40, 3000, 20), (0, 2)),
        ((3, 200_000, 2), (0, 2)),
        ((300_000,), (0,)),
        ((200_000, 3), (0, 1)),
        ((0, 3), (1,)),
        ((3, 0), (1,)),
    ],
)
def test_a_block_takes_little_beside_its_states(shape, axes):
    """Many short lines are gone through some at a time, not element by element of all."""
    x = np.random.default_rng(0).random(shape) + 5
    fold = FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold)
    tracemalloc.start()
    try:
        (total,), state = fold.block_and_sum(x, axes, x.dtype)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * total.nbytes + (4 << 20)
    np.testing.assert_allclose(total, x.sum(axis=axes))
    folded = math.prod(shape[a] for a in axes)
    expected = (
        np.square(x - x.mean(axis=axes, keepdims=True)).sum(axis=axes) if folded else np.zeros(total.shape)
    )
    np.testing.assert_allclose(state[-1], expected, rtol=1e-10)
    np.testing.assert_allclose(fold.finalize(state), expected, rtol=1e-10)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_short_lines_that_lie_apart(axis, dtype):
    """A block of a fold over few planes: each piece has some lines, and not one element of all of them."""
    x = (np.random.default_rng(0).random((10, 40, 3000)) + 1).astype(dtype)[:, :30]
    axes = axis if isinstance(axis, tuple) else (axis,)
    with config.override(kernels="compile"):
        found = sum_and_deviations(x, axes, x.dtype)
    assert found is not None
    (total,), (count, mean, rest, squares) = found
    close = 1e-4 if dtype == "f4" else 1e-10
    np.testing.assert_allclose(total, x.sum(axis), rtol=close)
    np.testing.assert_allclose(mean + rest, x.mean(axis), rtol=close)
    np.testing.assert_allclose(squares / count, x.var(axis), rtol=close)
