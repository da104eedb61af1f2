"""The order of folds: NumPy's within units, one tree over them, whatever is cut."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.config import FUSIONS, config
from spartan_ng.errors import OptionError
from spartan_ng.ops import order
from tests.programs import Program, Step, programs
from tests.same_bits import (
    CUTS,
    EXACT,
    FIRST,
    LAYOUTS,
    ROUNDING,
    WORKERS,
    Surface,
    Way,
    bits,
    differing,
    long_lines,
    running,
    small_units,
)
from tests.sampling import examples
from tests.test_programs import check


def add(a: order.State, b: order.State) -> order.State:
    return (a[0] + b[0],)


@examples(300)
@given(data=st.data())
def test_any_cut_between_units_gives_one_result(data: st.DataObject) -> None:
    """Boxes with some of the units, in any memory order; their subtrees; the trees that grow from them."""
    with small_units():
        shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 8, 17]), min_size=1, max_size=3)))
        axes = tuple(data.draw(st.lists(st.sampled_from(range(len(shape))), min_size=1, unique=True)))
        x = np.random.default_rng(data.draw(st.integers(0, 99))).standard_normal(shape)
        lengths = order.units(shape, axes)
        expected = order.ordered_fold(np.add, x, axes, x.dtype)
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
    x = 1 + 0.01 * rng.standard_normal(shape)  # the product of so many stays in range
    x = (x + (0.01j * rng.standard_normal(shape) if dtype[0] == "c" else 0)).astype(dtype)
    for ufunc in (np.add, np.multiply):
        for axes in (*((a,) for a in range(len(shape))), tuple(range(len(shape)))):
            for y in (x, np.asfortranarray(x), x[..., ::-1][..., ::-1]):
                found = order.ordered_fold(ufunc, y, axes, x.dtype)
                assert np.asarray(found).tobytes() == np.asarray(ufunc.reduce(x, axis=axes)).tobytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # of NumPy, where nothing is left to average
@examples(100)
@given(program=programs(most=12, kinds=EXACT, more=ROUNDING), data=st.data())
def test_programs_have_the_same_bits(program: Program, data: st.DataObject) -> None:
    """`python -m tests.same_bits` draws more of them."""
    workers = data.draw(st.sampled_from(WORKERS))
    cuts, layout = data.draw(st.sampled_from(CUTS)), data.draw(st.sampled_from(sorted(LAYOUTS)))
    tier, fusion = data.draw(st.sampled_from(["interpret", "numexpr"])), data.draw(st.sampled_from(FUSIONS))
    with small_units(), config.override(reproducible=True):
        assert not differing(program, [Way(workers, cuts, tier, fusion, layout)])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of lines of nothing but NaN, as NumPy's
@examples(60)
@given(number=st.integers(0, 1 << 30), data=st.data())
def test_the_fuzzers_programs_have_the_same_bits(number: int, data: st.DataObject) -> None:
    way = Way(data.draw(st.sampled_from(WORKERS)), data.draw(st.sampled_from(CUTS)))
    with small_units(), config.override(reproducible=True):
        assert not differing(Surface.draw(number), [way])


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("workers", [4, 5, 6])
@pytest.mark.parametrize("cuts", ["row", "column", "block", "uneven"])
def test_units_of_a_matrix(workers: int, cuts: str) -> None:
    """An axis of one unit, which is not cut, behind one of many."""
    x = np.random.default_rng(7).standard_normal((2000, 300))

    def apply(xp: Any, a: Any) -> Any:
        folds = [f for k in range(1, 7) for f in ((a / k).sum(), (a / k).var())]
        return xp.stack([*folds, a.sum(0).max(), a.std(1).sum(), xp.cumsum(a, 0).sum()])

    program = Program((x,), (Step("folds of a matrix", apply, (0,)),), 1)
    with config.override(reproducible=True):
        assert not differing(program, [Way(workers, cuts, fusion="off")])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_units_as_they_are(workers: int) -> None:
    """Arrays of several units of their own length, in single and double precision, over forced cuts."""
    ways = [
        Way(workers),
        Way(workers, "uneven", "interpret", "cost", "views"),
        Way(workers, "row", "numexpr", "off"),
    ]
    with config.override(reproducible=True):
        assert not differing(long_lines(), ways)


@examples(100)
@given(program=programs(), workers=st.sampled_from(WORKERS), cuts=st.sampled_from(CUTS))
def test_values_are_numpys(program: Program, workers: int, cuts: str | None) -> None:
    with small_units(), config.override(reproducible=True), running(Way(workers, cuts)):
        check(program)


@pytest.mark.parametrize("workers", [1, 3])
def test_values_of_many_units_are_numpys(workers: int) -> None:
    program = long_lines()
    with config.override(reproducible=True), running(Way(workers, "row")):
        found = [np.asarray(v) for v in program.run(sp, sp.asarray)]
    for a, b, rtol in zip(found, program.run(np, np.asarray), (1e-9, 1e-2), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol)


def test_a_program_with_another_order_is_seen() -> None:
    """The comparison is no formality: sums in another order differ."""
    x = np.random.default_rng(0).standard_normal(1000)
    program = Program((x,), (Step("sum", lambda xp, a: a.sum(), (0,)),), 1)
    assert differing(program, [Way(3, "row")])
    with config.override(reproducible=True):
        whole = bits(program, FIRST)
        with small_units():
            assert bits(program, FIRST) != whole


@pytest.mark.parametrize("name", ["exp", "cbrt", "power", "absolute", "arctan2"])
def test_rows_that_are_read_backwards_have_the_same_bits(name: str) -> None:
    """For them NumPy has loops with other last bits, and what a worker is sent lies forwards."""
    x = np.random.default_rng(4).standard_normal(1003)
    x = x + 1j * x[::-1] if name == "absolute" else abs(x)

    def apply(xp: Any, a: Any) -> Any:
        return getattr(xp, name)(*[a[::-1]] * getattr(np, name).nin)

    program = Program((x,), (Step(name, apply, (0,)),), 1)
    with config.override(reproducible=True):
        assert not differing(program, [Way(tier="compile"), Way(3, "row")])


@pytest.mark.some(4)
@pytest.mark.parametrize("name", ["multiply", "square", "divide", "absolute", "sqrt", "exp"])
@pytest.mark.parametrize("workers", [2, 5])
def test_a_single_complex_element_has_the_bits_of_several(name: str, workers: int) -> None:
    """A worker's part may be one element, which NumPy's loops in place take another way with."""
    rng = np.random.default_rng(7)
    operands = tuple(rng.random(5) + 1j * rng.random(5) for _ in range(2))

    def apply(xp: Any, a: Any, b: Any) -> Any:
        x, y = a + 0.5j, b - 0.25j
        return (
            getattr(xp, name)(*(x, y)[: getattr(np, name).nin]) + 0.25
        )  # so that what is before lies in place

    with config.override(reproducible=True):
        for k in range(20):
            turned = tuple(o * (1 + k / 7) for o in operands)
            program = Program(turned, (Step(name, apply, (0, 1)),), 1)
            assert not differing(program, [Way(workers, "row"), Way(workers, "row", fusion="all")])


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("tiling", [None, "uneven", "row", "column", "block"])
def test_what_moves_is_predicted(workers: int, tiling: str | None) -> None:
    """Fragments at the edges of units, and the states of subtrees."""
    x = np.random.default_rng(5).standard_normal((3_001, 40))
    with running(Way(workers, tiling)), config.override(reproducible=True):
        sp.compute(sp.array(x).sum(), (sp.array(x) / 3).sum(0))
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    assert stats.bytes_moved == sum(plan.predicted_bytes)


def test_errors_that_are_raised_change_no_bits() -> None:
    """Where they are, NumPy folds what is gathered."""
    x = np.random.default_rng(6).standard_normal((90, 700))

    def folded(way: Way) -> list[bytes]:
        with running(way):
            here = sp.asarray(LAYOUTS[way.layout](x))
            there = (here * 1).persist()
            with np.errstate(all="raise"):
                folds = [f for a in (here, there) for f in (a.sum(), a.var(0), a.mean(1))]
                return [np.asarray(f).tobytes() for f in folds]

    with config.override(reproducible=True):
        expected = folded(FIRST)
        assert all(folded(Way(w, "row", layout=k)) == expected for w in (1, 3) for k in LAYOUTS)
        assert all(folded(Way(layout=k)) == expected for k in LAYOUTS)


def test_nothing_is_small_while_bits_are_kept() -> None:
    with config.override(reproducible=True):
        assert config.small_bytes == 0
        with pytest.raises(OptionError, match="small_bytes is 0"):
            config.small_bytes = 100
        config.reproducible = False
        assert config.small_bytes > 0
    assert not config.reproducible
