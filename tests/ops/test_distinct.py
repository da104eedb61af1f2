"""What is found of distinct elements takes no more memory than the elements."""

from __future__ import annotations

import tracemalloc

import numpy
import pytest

from spartan_ng.ops.line_states import Distinct


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u2", "i4", "f4"])
def test_narrow_elements_are_no_indices(kind: str) -> None:
    """All of a block was made indices, eight times as wide as its bytes."""
    x = (numpy.arange(1 << 20) % 100 - (0 if kind[0] == "u" else 50)).astype(kind)
    tracemalloc.start()
    try:
        (found,) = Distinct(200).state(x, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * x.nbytes + (1 << 20)
    numpy.testing.assert_array_equal(numpy.unique(found), numpy.unique(x))
