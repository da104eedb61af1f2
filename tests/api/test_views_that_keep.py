"""Views that turn or stretch what other views show: what was computed for one is there when it is asked
again, and what is written to the array behind shows through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

BEFORE = {
    "part": lambda x: x[5:],
    "steps": lambda x: x[::3, 1:],
    "reshaped": lambda x: x.reshape(30, -1),
    "line": lambda x: x[7],
    "turned": lambda x: x[1:].T,
    "two": lambda x: x[2:].reshape(-1)[::2],
}
LAST = {
    "stretched": lambda np, v: np.broadcast_to(v, (2, *v.shape)),
    "turned": lambda np, v: np.broadcast_to(v, (2, *v.shape)).T,
    "both": lambda np, v: np.broadcast_to(v.T[..., None], (*v.T.shape, 3)),
}
ASKED: dict[str, Callable[[Any], Any]] = {
    "asarray": numpy.asarray,
    "persist": np.persist,
    "compute": np.compute,
    "with a copy": lambda v: np.compute(v, v.copy()),
    "explained": lambda v: (np.explain(v, v.copy()), np.compute(v, v.copy())),
}
VALUE = numpy.arange(20 * 30.0).reshape(20, 30)


@pytest.fixture(autouse=True)
def lazy() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("before", BEFORE)
def test_what_was_computed_is_not_computed_again(before: str, last: str, asked: str) -> None:
    reads: list[Any] = []

    def read(box: Any) -> Any:
        reads.append(box)
        return VALUE[tuple(slice(lo, hi) for lo, hi in box)]

    shown = LAST[last](np, BEFORE[before](np.from_function(read, VALUE.shape, "f8")))
    expected = LAST[last](numpy, BEFORE[before](VALUE))
    ASKED[asked](shown)
    first = len(reads)
    for again in (numpy.asarray, lambda v: v.compute(), lambda v: (v + 0).compute(), np.sort):
        again(shown)
        numpy.testing.assert_array_equal(shown, expected)
    assert first
    assert len(reads) == first


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("before", BEFORE)
def test_what_is_written_later_shows(before: str, last: str) -> None:
    x, value = np.array(VALUE) * 2, VALUE * 2
    shown, expected = LAST[last](np, BEFORE[before](x)), LAST[last](numpy, BEFORE[before](value))
    for k in range(3):
        x[k::2] += k
        value[k::2] += k
        numpy.testing.assert_array_equal((shown + 1).compute(), expected + 1)
        numpy.testing.assert_array_equal(shown, expected)
        x *= 3
        value *= 3
        np.persist(shown)
        numpy.testing.assert_array_equal(shown, expected)
