"""Cumulative aggregates, and what is built on them, against row-by-row NumPy."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.errors import NotAssociative, ShapeError
from spartan_ng.plan.stages import Fused, ScanTile

RNG = numpy.random.default_rng(11)
X = RNG.standard_normal((40, 6))
W = numpy.where(RNG.random((40, 6)) < 0.2, 0, RNG.standard_normal((40, 6)))


def equal(got, wanted, tolerance=1e-10):
    assert got.shape == numpy.shape(wanted)
    numpy.testing.assert_allclose(got.compute(), wanted, rtol=tolerance, atol=tolerance)


def rows(step, y, w):
    out = numpy.array(y)
    for i in range(1, len(y)):
        out[i] = step(y[i], w[i], out[i - 1])
    return out


def test_extremes(mode):
    x = X.copy()
    x[3, 2] = numpy.nan
    a = np.array(x)
    equal(np.cummin(a), numpy.minimum.accumulate(x))
    equal(np.cummax(a, 1), numpy.maximum.accumulate(x, 1))
    equal(np.nancummin(a), numpy.fmin.accumulate(x))
    equal(np.nancummax(a, 1), numpy.fmax.accumulate(x, 1))


@pytest.mark.parametrize("name", ["gcd", "lcm", "bitwise_xor", "logaddexp2"])
def test_accumulate_of_more_ufuncs(mode, name):
    x = RNG.integers(1, 6, (9, 4))
    y = x if name != "logaddexp2" else x.astype(float)
    equal(getattr(np, name).accumulate(np.array(y), 0), getattr(numpy, name).accumulate(y, 0))


def test_recurrences(mode):
    expected = rows(lambda y, w, z: y + w * z, X, W)
    equal(np.cumsumprod(np.array(X), np.array(W)), expected)
    equal(np.cumsumprod(np.array(X.T), np.array(W.T), 1), expected.T)
    equal(np.cumsumprod(np.array(X), 0.5), rows(lambda y, w, z: y + 0.5 * z, X, W))
    expected = rows(lambda y, w, z: numpy.maximum(y, w + z), X, W)
    equal(np.recurrence(numpy.maximum, numpy.add, np.array(X), np.array(W)), expected)
    assert np.cumsumprod(np.zeros((0, 3)), 1.0).shape == (0, 3)
    with pytest.raises(ShapeError, match="cumsumprod"):
        np.cumsumprod(np.array(X), np.array(W[:5]))


def test_frames_are_exact(mode):
    y, w = X[:, 0].copy(), W[:, 0].copy()
    y[4], w[6], w[5] = numpy.inf, 0.0, 1.0
    got = np.cumsumprod(np.array(y), np.array(w)).compute()
    assert numpy.isinf(got[4:6]).all()
    assert numpy.isfinite(got[6:]).all()
    assert got[6] == y[6]


def test_compensated(mode):
    x = numpy.tile([1e16, 1.0, -1e16], 30)
    equal(np.cumsum_compensated(np.array(x)), numpy.cumsum(x.astype(numpy.longdouble)).astype(float), 0)


def test_checked_functions(mode):
    a = np.array(X)
    equal(np.scan(lambda p, q: p + q, a, 0, check=True), numpy.cumsum(X, 0))
    with pytest.raises(NotAssociative, match=r"difference\(difference\(.*\) is .*, but difference\("):
        np.scan(difference, a, 0, check=True)
    with pytest.raises(numpy.exceptions.AxisError):
        np.cumsumprod(a, a, 2)
    with pytest.raises(numpy.exceptions.AxisError):
        np.scan(lambda p, q: p + q, a, 2)


def difference(p, q):
    return p - q


def test_averages_and_windows(mode):
    alpha = 0.3
    powers = [(1 - alpha) ** numpy.arange(i, -1, -1) for i in range(40)]
    weighted = numpy.array([p @ X[: i + 1] / p.sum() for i, p in enumerate(powers)])
    equal(np.ewma(np.array(X), alpha), weighted)
    plain = rows(lambda y, w, z: alpha * y + (1 - alpha) * z, X, W)
    equal(np.ewma(np.array(X), alpha, adjust=False), plain)
    windows = numpy.lib.stride_tricks.sliding_window_view(X, 5, 0)
    equal(np.rolling_sum(np.array(X), 5), windows.sum(-1))
    equal(np.rolling_mean(np.array(X.T), 5, 1), windows.mean(-1).T)
    with pytest.raises(ValueError, match="alpha"):
        np.ewma(np.array(X), 0)
    with pytest.raises(ValueError, match="window of 41"):
        np.rolling_sum(np.array(X), 41)


@pytest.mark.parametrize("name", ["subtract", "divide", "power", "floor_divide", "arctan2", "hypot"])
def test_accumulate_of_what_does_not_associate(mode, name):
    y = RNG.random((9, 4)) + 0.5
    for axis in (0, 1):
        expected = getattr(numpy, name).accumulate(y, axis)
        got = getattr(np, name).accumulate(np.array(y), axis)
        assert got.dtype == expected.dtype
        numpy.testing.assert_array_equal(got.compute(), expected)
    with pytest.raises(numpy.exceptions.AxisError):
        getattr(np, name).accumulate(np.array(y), 2)


@pytest.mark.parametrize(
    "name", ["add", "multiply", "minimum", "fmax", "logical_or", "bitwise_xor", "logaddexp"]
)
def test_reduceat_of_many_segments(mode, name):
    floats = RNG.standard_normal((60, 5))
    x = RNG.integers(1, 6, (60, 5)) if name == "bitwise_xor" else floats
    starts = numpy.sort(RNG.choice(numpy.arange(2, 60), 25, replace=False))
    expected = getattr(numpy, name).reduceat(x, starts)
    got = getattr(np, name).reduceat(np.array(x), starts)
    assert got.dtype == expected.dtype
    equal(got, expected)
    equal(getattr(np, name).reduceat(np.array(x.T), starts, 1), expected.T)
    unsorted = numpy.append(starts, [0, 3])
    equal(getattr(np, name).reduceat(np.array(x), unsorted), getattr(numpy, name).reduceat(x, unsorted))


def test_maps_join_the_scan(mode):
    """Maps before and behind a scan run in its stage, but not what others ask for, or another layout."""
    x, y = np.array(X), np.array(X * 2)
    counts = np.arange(1, 41).reshape(40, 1)
    wanted = numpy.cumsum(X * X * 2, 0) / numpy.arange(1, 41).reshape(40, 1) - X
    equal(np.cumsum(x * y, 0) / counts - x, wanted)
    equal(np.cumsum(np.sin(x), 1) * X[0], numpy.cumsum(numpy.sin(X), 1) * X[0])
    scanned = np.cumsum(x, 0)
    doubled = scanned * 2
    np.persist(scanned, doubled)
    equal(doubled, numpy.cumsum(X, 0) * 2)
    equal(np.cumsum(x.T, 1).T + np.cumsum(x, 0), 2 * numpy.cumsum(X, 0))
    equal(np.cumsum(np.cumsum(x, 0) + 1, 1), numpy.cumsum(numpy.cumsum(X, 0) + 1, 1))
    equal(np.cumsum(x - x.mean(0), 0), numpy.cumsum(X - X.mean(0), 0), 1e-9)
    equal(np.cumsum(x, 0) @ np.array(X.T), numpy.cumsum(X, 0) @ X.T)
    equal((np.cumsum(x, 0) / counts).max(0), (numpy.cumsum(X, 0) / numpy.arange(1, 41).reshape(40, 1)).max(0))


def test_one_stage_for_maps_around_a_scan(mode):
    with config.override(small_bytes=0):
        x, y = np.array(X), np.array(X * 2)
        for program in (np.cumsum(x * y, 0), np.cumsum(x, 0) / np.arange(1, 41).reshape(40, 1)):
            stages = session.current().plan([program._node()])[0].plan.stages
            assert sum(isinstance(s, ScanTile) for s in stages) == 1
            assert not any(isinstance(s, Fused) and s.rows for s in stages)


@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize(
    ("folds", "stored"),
    [([("max", None)], False), ([("max", 0), ("min", 0)], False), ([("min", None), ("argmax", 1)], True)],
)
def test_folds_join_the_scan(folds, stored, divided):
    """What is folded of a scan is folded in its pass, and stored only where somebody asks for it."""
    counts = numpy.arange(1, 41).reshape(40, 1)
    sums = numpy.cumsum(X, 0) / counts if divided else numpy.cumsum(X, 0)
    with config.override(small_bytes=0):
        value = np.cumsum(np.array(X), 0)
        value = value / np.array(counts) if divided else value
        programs = [getattr(value, name)(axis) for name, axis in folds] + [value] * stored
        wanted = [getattr(sums, name)(axis) for name, axis in folds] + [sums] * stored
        stages = session.current().plan([p._node() for p in programs])[0].plan.stages
        found = np.compute(*programs)
    if not stored and not divided:
        assert not any(isinstance(s, ScanTile) for s in stages)  # the rewrite has a better state
    else:
        (tile,) = stages
        assert isinstance(tile, ScanTile)
        assert sum(w.reducer is None for w in tile.writes) == stored
        assert len(tile.writes) == len(programs)
    for got, expected in zip(found if len(programs) > 1 else [found], wanted, strict=True):
        numpy.testing.assert_allclose(got, expected, rtol=1e-12)


def test_segments_and_runs(mode):
    starts = numpy.array([0, 3, 4, 20])
    equal(np.segment_sum(np.array(X), starts), numpy.add.reduceat(X, starts))
    equal(np.segment_sum(np.array(X), [1, 4], 1), numpy.add.reduceat(X, [1, 4], 1))
    x = numpy.array([2, 2, 2, 5, 1, 1, 2])
    values, lengths = np.run_lengths(np.array(x))
    assert values.tolist() == [2, 5, 1, 2]
    assert lengths.tolist() == [3, 1, 2, 1]
    with pytest.raises(ShapeError, match="ascend"):
        np.segment_sum(np.array(X), [3, 1])


def test_remove_empty(mode):
    x = X.copy()
    x[[0, 5, 39]] = 0
    x[:, 4] = 0
    kept = (x != 0).any(1)
    equal(np.remove_empty(np.array(x)), x[kept])
    equal(np.remove_empty(np.array(x), 1), x[:, (x != 0).any(0)])
    chosen = RNG.random(40) < 0.5
    equal(np.remove_empty(np.array(x), select=np.array(chosen)), x[chosen])
    with pytest.raises(ShapeError, match="remove_empty"):
        np.remove_empty(np.array(x), select=[True])


def test_ecdf(mode):
    x = RNG.integers(0, 9, 100)
    values, fractions = np.ecdf(np.array(x))
    assert values.tolist() == sorted(set(x.tolist()))
    equal(fractions, [numpy.mean(x <= v) for v in values.tolist()])


@pytest.mark.parametrize("small", [0, 1 << 20])
@pytest.mark.parametrize("name", ["add", "maximum", "multiply", "logical_or", "subtract"])
@pytest.mark.filterwarnings("ignore::spartan_ng.FallbackWarning")
def test_segments_of_any_indices(small, name):
    rng = numpy.random.default_rng(0)
    several: list[object] = [
        [0, 3, 1, 5],
        [0],
        [],
        [5, 4, 3, 2, 1, 0],
        range(20),
        [1, 1, 1],
        [1.5],
        [-1],
        [40],
        "a",
        [[0]],
    ]
    several += [numpy.array([2], "u8"), numpy.array([1.5]), numpy.arange(0, 40, 2), rng.integers(0, 40, 1500)]
    for dtype in ("f8", "i4", "?", "c16"):
        for indices in several:
            said = []
            for xp in (np, numpy):
                try:
                    with config.override(small_bytes=small):
                        x = (xp.arange(40) % 7).astype(dtype)
                        said.append(numpy.asarray(getattr(xp, name).reduceat(x, indices)).tolist())
                except (TypeError, ValueError, IndexError) as error:
                    said.append(next(c for c in (TypeError, IndexError, ValueError) if isinstance(error, c)))
            assert said[0] == said[1], (dtype, indices)
