"""An array whose axes are put together or taken apart is the same memory, where it may be, and nobody else
may write to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.arrays import copying
from spartan_ng.config import config
from spartan_ng.worker.stages import assembling
from tests.sampling import examples

ROWS, COLUMNS = 48, 1024
VALUE = numpy.arange(float(ROWS * COLUMNS))


@pytest.fixture(autouse=True)
def lazy() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


def copied_bytes(make: Callable[[], Any]) -> int:
    """What is copied of reshaped arrays."""
    taken: list[int] = []
    copy_run = copying.copy_run

    def counted(value: Any, first: int, out: Any) -> None:
        taken.append(out.nbytes)
        copy_run(value, first, out)

    with patch.object(assembling, "copy_run", counted):
        numpy.asarray(make())
    return sum(taken)


READS: dict[str, Callable[[Any, Any], Any]] = {
    "tril": lambda xp, x: xp.tril(x.reshape(ROWS, -1)),
    "argmax": lambda xp, x: x.reshape(ROWS, -1).argmax(1),
    "argmax of columns": lambda xp, x: x.reshape(ROWS, -1).argmax(0),
    "reflected": lambda xp, x: xp.pad(x.reshape(ROWS, -1), 1, "reflect"),
    "kron": lambda xp, x: xp.kron(x[:ROWS], x[:COLUMNS]),
    "rows by a mask": lambda xp, x: x.reshape(ROWS, -1)[x.reshape(ROWS, -1)[:, 0] > 9000],
    "sorted": lambda xp, x: xp.sort(x.reshape(ROWS, -1), axis=0),
    "of a scan": lambda xp, x: xp.cumsum(x).reshape(ROWS, -1)[::2].sum(1),
}


@pytest.mark.parametrize("name", READS)
def test_nothing_is_copied_to_have_other_axes(name: str) -> None:
    x = np.array(VALUE)
    assert copied_bytes(lambda: READS[name](np, x)) == 0
    assert numpy.array_equal(numpy.asarray(READS[name](np, x)), READS[name](numpy, VALUE))
    assert numpy.array_equal(numpy.asarray(x), VALUE)


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "flat": lambda xp, a: a.reshape(-1),
    "rows": lambda xp, a: a.reshape(ROWS, -1),
    "cube": lambda xp, a: a.reshape(ROWS // 4, 8, -1),
    "scan": lambda xp, a: xp.cumsum(a, axis=0),
    "scan of all": lambda xp, a: xp.cumsum(a).reshape(a.shape),
    "map": lambda xp, a: a + 1,
    "sort": lambda xp, a: xp.sort(-a, axis=-1),
    "turned": lambda xp, a: a.T,
}


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from([*STEPS])), min_size=1, max_size=7),
    st.lists(st.integers(0, 7), min_size=1, max_size=3),
)
def test_results_have_memory_of_their_own(steps: list[tuple[int, str]], wanted: list[int]) -> None:
    """Each step takes any array that there is; some are stored in one plan, and all are written to."""

    def run(xp: Any) -> list[Any]:
        x = xp.array(VALUE.astype(int))  # sums of which are exact
        made = [x]
        for source, name in steps:
            made.append(STEPS[name](xp, made[source % len(made)]))
        kept = [made[k % len(made)].copy() for k in wanted]
        if xp is np:
            np.compute(*kept)
        for k, a in enumerate(kept):
            a[(0,) * a.ndim] = -5.0 - k
        return [numpy.asarray(a) for a in (x, *kept, *made)]

    for found, expected in zip(run(np), run(numpy), strict=True):
        assert numpy.array_equal(found, expected)
