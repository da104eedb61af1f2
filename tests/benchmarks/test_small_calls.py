"""The calls of the study do what NumPy's do, and a row says so in its text."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng
from benchmarks.small_calls import STATEMENTS, Row, operands, text


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_do_what_numpys_do(statement):
    ours, theirs = operands(spartan_ng, 20), operands(numpy, 20)
    found: list[Any] = []
    for names in (ours, theirs):
        exec(statement, names)
        if "= " not in statement.replace("out=", "") and not statement.startswith("for"):
            given = eval(statement, names)
            found.append(numpy.zeros(0) if given is None else numpy.asarray(given))
    for name in "abcmi":
        numpy.testing.assert_array_equal(numpy.asarray(ours[name]), theirs[name], err_msg=name)
    if found:
        numpy.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_a_row_says_the_ratio_and_the_difference():
    shown = text([Row("a + b", {"80 B": 500.0}, {"80 B": 1_000.0})], {"80 B": 10})
    assert "| `a + b` | 0.50 µs × 2.00 (+0.50) |" in shown
    assert "| mean | × 2.00 (+0.50) |" in shown
