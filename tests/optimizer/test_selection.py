"""Places of a sorted line, found without sorting it: NumPy's answers, ties and NaN included."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.joins import short_end
from spartan_ng.ops.line_states import Between, Distinct, Ends
from spartan_ng.optimizer.rewrite.duplicates import merge_duplicates
from spartan_ng.optimizer.rewrite.selection import select_places
from tests import reference
from tests.sampling import examples
from tests.test_programs import running_on

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]
DTYPES = ("f8", "f4", "f2", "i8", "i1", "u1", "u8", "?")


def line(seed: int, n: int, dtype: str) -> Any:
    """Few distinct numbers, the extremes of the dtype among them; of floats some are not finite."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, rng.choice([2, 5, 100]), n).astype(dtype)
    some = rng.random(n) < rng.choice([0, 0.1, 1])
    if dtype[0] == "f":
        x[some] = rng.choice(SPECIAL, some.sum())
    elif dtype != "?":
        x[some] = rng.choice(np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype), some.sum())
    return x


lines = st.builds(line, st.integers(0, 2**32), st.integers(1, 60), st.sampled_from(DTYPES))


@examples(200)
@given(
    x=lines,
    function=st.sampled_from(["sort", "argsort"]),
    last=st.booleans(),
    share=st.floats(0, 1),
    cuts=st.lists(st.floats(0, 1), max_size=5),
)
def test_states_of_parts_make_the_ends_of_the_line(
    x: Any, function: str, last: bool, share: float, cuts: list[float]
) -> None:
    count = max(1, round(share * len(x)))
    ends = Ends(function, count, last)
    bounds = sorted({0, len(x), *(round(c * len(x)) for c in cuts)})
    states = [ends.state(x[lo:hi], lo) for lo, hi in pairwise(bounds)]
    while len(states) > 1:
        states[:2] = [ends.combine(*states[:2])]
    whole = np.sort(x) if function == "sort" else np.argsort(x, kind="stable")
    expected = whole[len(x) - count :] if last else whole[:count]
    np.testing.assert_array_equal(ends.value(states[0]), expected)


@examples(100)
@given(x=lines, count=st.integers(1, 8), cuts=st.lists(st.floats(0, 1), max_size=5))
def test_states_of_parts_make_the_distinct_elements(x: Any, count: int, cuts: list[float]) -> None:
    line = Distinct(count)
    bounds = sorted({0, len(x), *(round(c * len(x)) for c in cuts)})
    states = [line.state(x[lo:hi], lo) for lo, hi in pairwise(bounds)]
    while len(states) > 1:
        states[:2] = [line.combine(*states[:2])]
    found, expected = np.unique(line.value(states[0])), np.unique(x)
    if len(expected) < count:
        np.testing.assert_array_equal(found, expected)
    assert len(found) == min(len(expected), count)
    assert np.isin(found[found == found], expected).all()


@pytest.mark.some(4)
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("distinct", [1, 100, 127, 128, 129, 5000])
def test_unique_of_few_and_of_many(distinct: int, workers: int) -> None:
    rng = np.random.default_rng(distinct)
    numbers = [rng.permutation(np.arange(40_000) % distinct) - 7]
    numbers += [np.where(numbers[0] % 9 == 0, np.nan, numbers[0]), numbers[0].reshape(200, 200).T]
    asked: list[dict[str, bool]] = [
        {},
        {"return_counts": True},
        {"return_inverse": True, "return_counts": True},
        {"return_index": True},
        {"return_counts": True, "equal_nan": False},
    ]
    with config.override(small_bytes=0), running_on(SimulatedBackend(max(workers, 1))):
        for x in numbers:
            for options in asked:
                found, expected = (xp.unique(a, **options) for xp, a in ((sp, sp.asarray(x)), (np, x)))
                both = zip(found, expected, strict=True) if options else [(found, expected)]
                for a, b in both:
                    assert a.dtype == b.dtype
                    np.testing.assert_array_equal(np.asarray(a), b)


def selected(*roots: Node) -> tuple[list[Node], int]:
    """The roots after the pass, and how many sorts are left."""
    found = select_places(roots)
    return found, sum(n.fn == "along_axis" for n in topological(found))


@st.composite
def slices(draw: st.DrawFn, n: int) -> tuple[int, int, int]:
    """Start, step and length of a slice within n places, often near an end."""
    start = draw(st.one_of(st.integers(0, n - 1), st.sampled_from([0, n - 1])))
    step = draw(st.sampled_from([1, 1, -1, 2, -3]))
    room = ((n - 1 - start) if step > 0 else start) // abs(step) + 1
    return start, step, draw(st.integers(1, min(room, max(n // 6, 1))))


@examples(200)
@given(data=st.data(), x=lines, function=st.sampled_from(["sort", "argsort"]))
def test_what_is_read_is_the_same(data: st.DataObject, x: Any, function: str) -> None:
    n = len(x)
    node = build.constant(x)
    whole = build.along_axis(function, [node], 0, dtype=x.dtype if function == "sort" else build.INTP)
    parts = [
        build.slice_(whole, (start,), (step,), (m,))
        for start, step, m in data.draw(st.lists(slices(n), min_size=1, max_size=3))
    ]
    found, _ = selected(*parts)
    for a, b in zip(reference.evaluate(found), reference.evaluate(parts), strict=True):
        np.testing.assert_array_equal(a.value, b.value)


@examples(200)
@given(
    data=st.data(), x=lines, function=st.sampled_from(["partition", "argpartition"]), share=st.floats(0, 0.99)
)
def test_a_partition_has_the_same_end_alone(data: st.DataObject, x: Any, function: str, share: float) -> None:
    n = len(x)
    k = data.draw(st.sampled_from([int(share * n), min(2, n - 1), max(n - 3, 0)]))
    node = build.constant(x)
    dtype = x.dtype if function == "partition" else build.INTP
    whole = build.along_axis(function, [node], 0, dtype=dtype, keywords=(("kth", k),))
    (given_,) = reference.evaluate([whole])
    order = np.argsort(x, kind="stable")
    expected = x[order] if function == "partition" else order
    np.testing.assert_array_equal(np.sort(given_.value), np.sort(expected))
    np.testing.assert_array_equal(
        x[order][k], given_.value[k] if function == "partition" else x[given_.value[k]]
    )
    end = short_end(n, k)
    if end is not None:
        places = slice(n - end[0], n) if end[1] else slice(end[0])
        np.testing.assert_array_equal(given_.value[places], expected[places])
    parts = [
        build.slice_(whole, (start,), (step,), (m,))
        for start, step, m in data.draw(st.lists(slices(n), min_size=1, max_size=2))
    ]
    found, _ = selected(*parts)
    for a, b in zip(reference.evaluate(found), reference.evaluate(parts), strict=True):
        np.testing.assert_array_equal(a.value, b.value)


PARTITIONS = {
    "greatest": (lambda xp, x: xp.partition(x, -10)[-10:], lambda x: np.sort(x)[-10:]),
    "least": (lambda xp, x: xp.partition(x, 9)[:10], lambda x: np.sort(x)[:10]),
    "one": (lambda xp, x: xp.partition(x, 9)[9], lambda x: np.sort(x)[9]),
    "indices": (lambda xp, x: xp.argpartition(x, 9)[:9], lambda x: np.argsort(x, stable=True)[:9]),
    "as a method": (lambda xp, x: x.argpartition(-9)[-9:], lambda x: np.argsort(x, stable=True)[-9:]),
}


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", PARTITIONS)
def test_short_ends_of_partitions_are_found_in_a_pass(name: str, workers: int) -> None:
    """Of large arrays that are here, too, of which NumPy would partition a copy."""
    run, sorted_ = PARTITIONS[name]
    for dtype in ("f8", "i8", "u1"):
        x = line(3, 500, dtype)
        with config.override(small_bytes=100), running_on(SimulatedBackend(max(workers, 1))):
            found = run(sp, sp.array(x))
            assert found._peek() is None, "nothing is partitioned before it is known what is read"
            _, left = selected(found._node())
            assert not left
            np.testing.assert_array_equal(found, sorted_(x))


MIDDLES = {
    "median": lambda xp, x: xp.median(x),
    "quantiles": lambda xp, x: xp.quantile(x, [0.1, 0.5, 0.9]),
    "percentile by a rule": lambda xp, x: xp.percentile(x, 37, method="hazen"),
    "a run": lambda xp, x: xp.sort(x)[180:190],
    "a run backwards, and another": lambda xp, x: (s := xp.sort(x))[200:190:-1] + s[240:250],
    "nested": lambda xp, x: xp.sort(x - xp.sort(x)[250])[200:203],
}


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", MIDDLES)
def test_places_in_the_middle_merge_nothing(name: str, workers: int) -> None:
    run = MIDDLES[name]
    for seed, dtype in ((3, "f8"), (4, "f4"), (5, "i8"), (6, "u1")):
        x = line(seed, 500, dtype)
        with config.override(small_bytes=0), np.errstate(all="ignore"):
            root = run(sp, sp.asarray(x))._node()
            _, left = selected(*merge_duplicates([root]))
            assert not left
            with running_on(SimulatedBackend(max(workers, 1))):
                for disabled in (frozenset[str](), frozenset({"select_places"})):
                    with config.override(disabled_passes=disabled):
                        found = np.asarray(run(sp, sp.asarray(x)).compute())
                        np.testing.assert_array_equal(found, run(np, x))


PROGRAMS = {
    "least": lambda xp, x: xp.sort(x)[:7],
    "greatest, backwards": lambda xp, x: xp.sort(x)[::-1][:7],
    "indices of the greatest": lambda xp, x: xp.argsort(x, stable=True)[-5:],
    "indices of the least": lambda xp, x: xp.argsort(x, stable=True)[:5],
    "of what is made in the pass": lambda xp, x: xp.sort(x * 2)[-3:],
    "one element": lambda xp, x: xp.sort(x)[-1],
    "both ends": lambda xp, x: (s := xp.sort(x))[:3] + s[-3:],
}


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_ends_of_sorts_sort_nothing(name: str, workers: int) -> None:
    run = PROGRAMS[name]
    for dtype in ("f8", "i8", "u1"):
        x = line(3, 500, dtype)
        with config.override(small_bytes=0):
            root = run(sp, sp.asarray(x))._node()
            _, left = selected(root)
            assert not left
            with running_on(SimulatedBackend(max(workers, 1))):
                for disabled in (frozenset[str](), frozenset({"select_places"})):
                    with config.override(disabled_passes=disabled):
                        np.testing.assert_array_equal(run(sp, sp.asarray(x)).compute(), run(np, x))


@pytest.mark.parametrize(
    "run",
    [
        lambda xp, x: (xp.sort(x)[:3], xp.sort(x)),
        lambda xp, x: ((s := xp.sort(x))[:3], s * 2),
        lambda xp, x: (xp.sort(x)[: len(x) // 2],),
        lambda xp, x: (xp.sort(x)[::7],),
        lambda xp, x: (xp.sort(x.reshape(4, -1))[:, :2],),
        lambda xp, x: (xp.sort(x * 1j)[:3],),
    ],
    ids=["the whole too", "another reader", "half", "all along", "many lines", "complex"],
)
def test_what_needs_more_is_sorted(run: Any) -> None:
    x = line(3, 400, "f8")
    with config.override(small_bytes=0):
        _, left = selected(*merge_duplicates([a._node() for a in run(sp, sp.asarray(x))]))
    assert left


def test_a_select_is_one_reduction_a_part() -> None:
    """Nothing but states moves, and nothing is stored of what is sorted."""
    x = np.random.default_rng(0).random(10_000)
    with config.override(small_bytes=0), running_on(SimulatedBackend(4)):
        root = sp.sort(sp.asarray(x) * 2)[:4]._node()
        (found,), _ = selected(root)
        assert [n.op for n in topological([found]) if n.fn == "ends"] == [Op.JOIN_UPDATE]
        kinds = [s["kind"] for s in sp.explain(sp.sort(sp.asarray(x) * 2)[:4]).to_dict()["stages"]]
        assert {*kinds} <= {"fused", "combine"}


@examples(80)
@given(
    seed=st.integers(0, 1 << 16),
    shape=st.sampled_from([(1,), (200,), (50, 7), (6, 5, 9)]),
    dtype=st.sampled_from(["f8", "f4", "i8", "i1", "u8"]),
    bounds=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=4, unique=True),
    room=st.sampled_from([0, 3, 1000]),
    workers=st.sampled_from([1, 2, 3]),
    data=st.data(),
)
def test_elements_between_bounds(seed, shape, dtype, bounds, room, workers, data):
    bounds = sorted(bounds)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    x = line(seed, int(np.prod(shape)), dtype).reshape(shape)
    node = build.between(build.constant(x), bounds, wanted, room)
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
        here = session.current()
        (ref,) = here.evaluate([node])
        found = here.backend.gather(ref, ((0, node.size),)) if ref.value is None else ref.value
    counts, elements = Between(*node.params).opened(found)
    expected, wanted_elements = Between(*node.params).opened(reference.evaluate([node])[0].value)
    np.testing.assert_array_equal(counts, expected)
    if wanted_elements is None:
        assert elements is None
    else:
        np.testing.assert_array_equal(np.sort(elements), wanted_elements)
