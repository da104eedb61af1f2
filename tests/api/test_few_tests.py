"""Whether elements are among few numbers is found by comparing them, in one pass, with NumPy's answers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.graph.node import topological

LINE = numpy.random.default_rng(0).integers(-9, 9, 3_000)
FAR = 1_000_003
TESTS: dict[str, Any] = {
    "two": numpy.array([0.5, 3.0]),
    "one, and nothing": numpy.array([numpy.nan, -2.0]),
    "many": numpy.arange(-16, 16) / 4,
    "integers far apart": numpy.array([1, -4 * FAR, 2**62]),
    "of no sign": numpy.array([1, 2**63], numpy.uint64),
    "complex": numpy.array([1j, 2, 0]),
    "truth": numpy.array([True]),
    "half precision": numpy.array([0.1, 3], numpy.float16),
}
KINDS = ("i8", "i1", "u1", "u8", "?", "f8", "f4", "f2", "c16")


def elements(kind: str) -> Any:
    made = abs(LINE).astype(kind) if kind[0] == "u" else LINE.astype(kind)
    if made.dtype.kind in "fc":
        made[::7], made[1::9], made[::11] = numpy.nan, 0.5, -0.0
    return made


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("of", TESTS)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_numpys(kind: str, of: str, invert: bool) -> None:
    a, tests = elements(kind), TESTS[of]
    expected = numpy.isin(a, tests, invert=invert)
    with config.override(small_bytes=1_000):
        found = numpy.asarray(np.isin(np.array(a), np.array(tests), invert=invert))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("of", TESTS)
def test_nothing_is_searched_for(of: str) -> None:
    """Each element took as long as twenty comparisons."""
    with config.override(small_bytes=1_000):
        node = np.isin(np.array(elements("f8")), np.array(TESTS[of]))._node()
    functions = {n.fn for n in topological([node])}
    assert "equal" in functions
    assert not functions & {"search", "along_axis", "take"}


def test_among_many_numbers_there_is_a_search() -> None:
    with config.override(small_bytes=1_000):
        node = np.isin(np.array(elements("f8")), np.arange(100.0) / 3)._node()
    assert "search" in {n.fn for n in topological([node])}
