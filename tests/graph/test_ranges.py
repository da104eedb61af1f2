"""Ranges of places, against the numbers that they are computed to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
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
