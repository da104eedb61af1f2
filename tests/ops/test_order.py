"""The order of folds: NumPy's within units, one tree over them, whatever is cut."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.arrays import Tiling, cut, step_of
from spartan_ng.config import config
from spartan_ng.ops import order
from tests.programs import Program, programs
from tests.same_bits import KINDS, WORKERS, bits, differing, running, small_units

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def add(a: order.State, b: order.State) -> order.State:
    return (a[0] + b[0],)


@SETTINGS
@given(data=st.data())
def test_any_cut_between_units_gives_one_result(data: st.DataObject) -> None:
    """Boxes with some of the units, in any memory order; their subtrees; the trees that grow from them."""
    with small_units():
        shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 8, 17]), min_size=1, max_size=3)))
        axes = tuple(data.draw(st.lists(st.sampled_from(range(len(shape))), min_size=1, unique=True)))
        x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape)
        lengths = order.units(shape, axes)
        expected = order.fold(np.add, x, axes, x.dtype)
        np.testing.assert_allclose(expected, x.sum(axes), rtol=1e-12, atol=1e-12)
        x = data.draw(st.sampled_from([x, np.asfortranarray(x), np.repeat(x, 2, 0)[::2]]))
        spans = [
            _parts(data, n, dict(zip(axes, lengths, strict=True)).get(a, 1)) for a, n in enumerate(shape)
        ]
        counts = [
            len(_units(n, dict(zip(axes, lengths, strict=True)).get(a, 1))) for a, n in enumerate(shape)
        ]
        state = np.empty(counts)
        for box in product(*spans):
            part = x[tuple(slice(lo, hi) for (lo, hi), _ in box)]
            place = tuple(slice(*units) for _, units in box)
            state[place] = order.unit_states(np.add, part, axes, x.dtype, shape, lengths)
        found: order.State = (state,)
        for a in sorted(axes, reverse=True):
            n = found[0].shape[a]
            cuts = [units for _, units in _parts(data, n, 1)]
            parts = [order.climb(add, order._part(found, a, lo, hi), a, lo, n) for lo, hi in cuts]
            every = [s for lo, hi in cuts for s in order.subtrees(lo, hi, n)]
            found = order.grow(add, (np.concatenate([p[0] for p in parts], a),), a, every)
        assert np.array_equal(found[0], expected)


def _units(n: int, length: int) -> range:
    return range(0, max(n, 1), max(length, 1))


def _parts(data: st.DataObject, n: int, length: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """An axis cut between units: intervals, and the units in them."""
    count = len(_units(n, length))
    points = sorted({0, count, *data.draw(st.lists(st.integers(0, count), max_size=2))})
    return [((lo * length, min(hi * length, n)), (lo, hi)) for lo, hi in pairwise(points)]


@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (32768,), (40, 30), (5, 1, 9), (30, 2), (12, 7, 5)])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16"])
def test_one_unit_is_numpys_own_sum(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = (rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if dtype[0] == "c" else 0)).astype(
        dtype
    )
    for ufunc in (np.add, np.multiply):
        for axes in (*((a,) for a in range(len(shape))), tuple(range(len(shape)))):
            for y in (x, np.asfortranarray(x), x[..., ::-1][..., ::-1]):
                found = order.fold(ufunc, y, axes, x.dtype)
                assert np.asarray(found).tobytes() == np.asarray(ufunc.reduce(x, axis=axes)).tobytes()


@given(n=st.integers(1, 1 << 24), parts=st.integers(1, 40))
def test_long_axes_are_cut_at_multiples(n: int, parts: int) -> None:
    parts = min(parts, n)
    cuts = [cut(n, parts, i) for i in range(parts)]
    assert cuts[0][0] == 0
    assert cuts[-1][1] == n
    assert all(a[1] == b[0] for a, b in pairwise(cuts))
    assert all(hi > lo and abs(hi - lo - n / parts) <= max(n / parts / 4, 1) for lo, hi in cuts)
    assert all(lo % step_of(n, parts) == 0 for lo, _ in cuts)


@given(n=st.integers(1, 5000), parts=st.integers(1, 9), data=st.data())
def test_tiles_of_a_range_are_those_that_meet_it(n: int, parts: int, data: st.DataObject) -> None:
    tiling = Tiling.grid(min(parts, n))
    lo = data.draw(st.integers(0, n - 1))
    hi = data.draw(st.integers(lo + 1, n))
    met = [
        i
        for i in range(min(parts, n))
        if cut(n, min(parts, n), i)[0] < hi and cut(n, min(parts, n), i)[1] > lo
    ]
    assert [rank for rank, _ in tiling.tiles((n,), ((lo, hi),))] == met


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(most=12, kinds=KINDS), data=st.data())
def test_programs_have_the_same_bits(program: Program, data: st.DataObject) -> None:
    """`python -m tests.same_bits` draws more of them."""
    workers = data.draw(st.sampled_from(WORKERS))
    forced = data.draw(st.sampled_from([None, "row", "column", "block"]))
    with small_units(), config.override(reproducible=True):
        assert not differing(program, [(workers, forced, "interpret", "cost")])


def test_a_program_with_another_order_is_seen() -> None:
    """The comparison is no formality: sums in another order differ."""
    x = np.random.default_rng(0).standard_normal(1000)

    def run(xp: Any, convert: Any) -> list[Any]:
        return [xp.asarray(convert(x)).sum()]

    program: Any = type("Drawn", (), {"run": staticmethod(run)})
    with small_units():
        tree = bits(program, (0, None, "interpret", "cost"))
    assert tree != bits(program, (0, None, "interpret", "cost"))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_compiled_folds_have_the_bits_of_interpreted_ones(dtype: str) -> None:
    """All loops of one kernel: lines that join and lines that do not, rows, masks, stored values beside
    them."""
    x = np.random.default_rng(2).standard_normal((700, 9, 40)).astype(dtype)
    w = np.random.default_rng(3).standard_normal(40).astype(dtype)

    def run(tier: str) -> list[bytes]:
        with running((0, None, tier, "cost")):
            y = (sp.array(x) - sp.array(w)) * 2
            folds = [y.sum(a) for a in (None, 0, 1, 2, (0, 2), (1, 2))]
            found = sp.compute(*folds, y.prod(1), y.sum(where=y > 0), y.max(0))
            return [np.asarray(v).tobytes() for v in found]

    assert run("compile") == run("interpret")
