"""Ranges of places, against the numbers that they are computed to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.core import keys
from spartan_ng.graph import ranges
from spartan_ng.graph.ranges import range_of
from tests.sampling import examples

N = 50
INTEGERS = "bBhHiIlL"


def source(dtype: str, asked: list[Any] | None = None) -> Any:
    """Numbers that are not here yet."""
    low, high = (max(numpy.iinfo(dtype).min, -99), min(numpy.iinfo(dtype).max, 99))
    value = numpy.random.default_rng(3).integers(low, high, (N, 4)).astype(dtype)

    def read(box: Any) -> Any:
        if asked is not None:
            asked.append(box)
        return value[tuple(slice(*ends) for ends in box)]

    return np.from_function(read, value.shape, dtype)


STEPS: dict[str, Callable[[Any, int], Any]] = {
    "clip": lambda x, k: np.clip(x, -k, k),
    "clip the other way round": lambda x, k: np.clip(x, k, -k),
    "minimum": lambda x, k: np.minimum(x, k),
    "maximum": lambda x, k: np.maximum(x, k),
    "remainder": lambda x, k: x % max(k, 1),
    "remainder of less": lambda x, k: x % -max(k, 1),
    "and": lambda x, k: x & k,
    "floor": lambda x, k: x // max(k, 1),
    "floor of less": lambda x, k: x // -max(k, 1),
    "add": lambda x, k: x + k,
    "subtract": lambda x, k: k - x,
    "where": lambda x, k: np.where(x > 0, x, k),
    "cast": lambda x, k: x.astype("bhil"[k % 4]),
    "unsigned": lambda x, k: x.astype("BHIL"[k % 4]),
    "bool": lambda x, k: (x > k).astype(int),
    "argmax": lambda x, k: x.argmax(axis=0)[None, :],
    "argsort": lambda x, k: x.argsort(axis=0),
    "least": lambda x, k: x.min(axis=0, keepdims=True),
    "counts": lambda x, k: (x > k).sum(axis=0, keepdims=True),
    "sum": lambda x, k: x.sum(axis=0, keepdims=True),
    "turned": lambda x, k: x[::-1],
    "chosen": lambda x, k: x[x[:, 0] > 0],
    "product": lambda x, k: x * k,
}


@examples(300)
@given(
    st.sampled_from(INTEGERS),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 90)), max_size=5),
)
def test_numbers_lie_in_their_range(dtype: str, steps: list[tuple[str, int]]) -> None:
    with np.config.override(small_bytes=0), numpy.errstate(all="ignore"):
        x = source(dtype)
        for name, k in steps:
            try:
                x = STEPS[name](x, k)
            except OverflowError:  # a number that the dtype has not
                continue
            if not x.size:  # nothing was chosen, and nothing has no least
                break
        found = range_of(x._node())
        value = numpy.asarray(x)
    if value.size:
        assert found is not None
        assert found[0] <= int(value.min()), (found, value.min())
        assert int(value.max()) <= found[1], (found, value.max())


PLACES: dict[str, Callable[[Any], Any]] = {
    "clipped": lambda x: np.clip(x, 0, 9),
    "from the end": lambda x: np.clip(x, -10, -1),
    "of both sides": lambda x: np.clip(x, -10, 9),
    "least and most": lambda x: np.maximum(np.minimum(x, 9), 0),
    "remainders": lambda x: x % 10,
    "halves": lambda x: (x % 20) // 2,
    "bits": lambda x: x & 7,
    "truths": lambda x: (x > 3).astype(int),
    "one of two": lambda x: np.where(x > 3, 1, 9),
    "counts": lambda x: (x[:, :3] > 3).sum(axis=1),
    "draws": lambda x: np.random.default_rng(1).integers(0, 10, 3_000_000),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_must_be_there_are_not_looked_at_before(name: str) -> None:
    asked: list[Any] = []
    table = numpy.arange(10.0) ** 2
    with np.config.override(small_bytes=0):
        x = source("l", asked)
        places = PLACES[name](x)
        found = np.asarray(table)[places]
        assert not asked, "nothing is read before somebody asks"
        numpy.testing.assert_array_equal(numpy.asarray(found), table[numpy.asarray(places)])


@pytest.mark.parametrize("name", PLACES)
def test_places_that_may_not_be_there_are_checked(name: str) -> None:
    with np.config.override(small_bytes=0):
        places = PLACES[name](source("l"))
        short = int(numpy.asarray(places).max())
        if name != "from the end":
            with pytest.raises(IndexError, match="out of bounds"):
                np.arange(float(max(short, 0)))[places]


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda np, x: np.arange(12.0)[x],
    "take of rows": lambda np, x: np.arange(24.0).reshape(12, 2)[x.reshape(-1)],
    "take of a view": lambda np, x: np.arange(12.0)[x[::-2]],
    "take of another": lambda np, x: np.arange(12.0)[x[1:3]],
    "take of what is made of it": lambda np, x: np.arange(12.0)[x + 1],
    "count": lambda np, x: np.bincount(x.reshape(-1), minlength=5),
    "weigh": lambda np, x: np.bincount(x[0], weights=np.arange(float(x.shape[1])), minlength=3),
}
WRITES: dict[str, Callable[[Any, Any, int], Any]] = {
    "one": lambda np, x, k: x.__setitem__((k % 3, 1), k),
    "a row": lambda np, x, k: x.__setitem__(k % 3, k),
    "through a view": lambda np, x, k: x[::2].__setitem__((0, k % 4), k),
    "in place": lambda np, x, k: x.__iadd__(1),
    "into out": lambda np, x, k: np.subtract(x, 1, out=x),
    "through its memory": lambda np, x, k: numpy.asarray(x).__setitem__((0, 0), k),
    "by places": lambda np, x, k: x.__setitem__(np.array([0, 2]), k),
    "by a function": lambda np, x, k: np.put(x, [k % 9], k),
    "fill": lambda np, x, k: x.fill(k),
}


@examples(200)
@given(
    st.lists(
        st.sampled_from(sorted(WAYS)) | st.tuples(st.sampled_from(sorted(WRITES)), st.integers(-13, 13)),
        min_size=2,
        max_size=9,
    ),
    st.booleans(),
    st.sampled_from(["small", "large", "lazy", "NumPy's"]),
)
def test_what_was_found_about_places_ends_with_a_write(
    steps: list[str | tuple[str, int]], keeps: bool, kind: str
) -> None:
    """Whatever is written between two looks, and however, each answer and each error is NumPy's."""
    start = numpy.arange(12).reshape(3, 4) % 7
    kept = []
    with np.config.override(small_bytes=np.config.small_bytes if kind == "small" else 0):
        theirs, ours = start.copy(), np.array(start)
        if kind == "lazy":
            ours = np.array(start) + np.array(start) * 0
        elif kind == "NumPy's":
            ours = np.asarray(start)
        for step in steps:
            found: list[Any] = []
            for space, x in ((numpy, theirs), (np, ours)):
                try:
                    if isinstance(step, tuple):
                        WRITES[step[0]](space, x, step[1])
                        found.append(None)
                    else:
                        found.append(WAYS[step](space, x))
                except (IndexError, ValueError) as error:
                    found.append(type(error))
            expected, answer = found
            if isinstance(expected, numpy.ndarray):
                kept += [(expected, answer)] if keeps else []
                numpy.testing.assert_array_equal(numpy.asarray(answer), expected)
            else:
                assert answer == expected
        for expected, answer in kept:
            numpy.testing.assert_array_equal(numpy.asarray(answer), expected)


@pytest.mark.parametrize("kind", ["here", "views", "sums"])
def test_a_loop_looks_once_at_places_that_nobody_writes_to(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Any] = []
    remember = ranges.remember

    def counted(node: Any, found: Any) -> None:
        looks.append(found)
        remember(node, found)

    monkeypatch.setattr(keys, "remember", counted)
    rng = numpy.random.default_rng(0)
    links = rng.integers(0, 100, (2, 5000))
    with np.config.override(small_bytes=0):
        given_ = np.array(links)
        ends = given_ if kind == "views" else [np.array(links[0]), np.array(links[1])]
        if kind == "sums":
            ends = [np.array(links[0]) + 0, np.array(links[1]) + 0]
        rank = np.full(100, 0.01)
        for _ in range(6):
            rank = 0.85 * np.bincount(ends[1], weights=rank[ends[0]], minlength=100) + 0.15 / 100
            float(rank[0])
        expected = numpy.full(100, 0.01)
        for _ in range(6):
            expected = 0.85 * numpy.bincount(links[1], weights=expected[links[0]], minlength=100) + 0.15 / 100
        numpy.testing.assert_allclose(numpy.asarray(rank), expected, rtol=1e-12)
    assert len(looks) == 2


def test_what_lies_in_a_file_is_looked_at_each_time(tmp_path: Any) -> None:
    numpy.save(tmp_path / "places.npy", numpy.arange(5000) % 9)
    with np.config.override(small_bytes=0):
        places = np.load(tmp_path / "places.npy", mmap_mode="r")
        table = np.arange(9.0)
        float(table[places].sum())
        stored = numpy.load(tmp_path / "places.npy", mmap_mode="r+")
        stored[7] = 9
        stored.flush()
        with pytest.raises(IndexError, match="out of bounds"):
            float(table[places].sum())
