"""The programs of the study give NumPy's values."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng
from benchmarks.small_programs import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_values_are_numpys(program):
    numpy.testing.assert_allclose(numpy.asarray(program.run(spartan_ng)), program.run(numpy), rtol=1e-9)


def test_small_arrays_are_worked_on_at_once():
    """Comparisons and their counts, too; a larger one stays lazy."""
    x = spartan_ng.ones(spartan_ng.config.small_bytes // 16).persist()
    assert (x > 0.5)._peek() is not None
    assert (x + 1)._peek() is not None
    large = spartan_ng.ones(spartan_ng.config.small_bytes // 4).persist()
    assert (large > 0.5)._peek() is None
    assert int(spartan_ng.count_nonzero(large > 0.5)) == large.size
