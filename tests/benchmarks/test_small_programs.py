"""The programs of the study give NumPy's values."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng
from benchmarks.small_programs import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_values_are_numpys(program):
    numpy.testing.assert_allclose(numpy.asarray(program.run(spartan_ng)), program.run(numpy), rtol=1e-9)


def test_comparisons_of_medium_arrays_are_values():
    """And so are their counts; a larger one stays lazy."""
    x = spartan_ng.ones(300_000).persist()
    assert (x > 0.5)._peek() is not None
    assert (x + 1)._peek() is None
    large = spartan_ng.ones(3_000_000).persist()
    assert (large > 0.5)._peek() is None
    assert int(spartan_ng.count_nonzero(large > 0.5)) == 3_000_000
