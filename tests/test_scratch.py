"""Copies that memory has no room for lie in files, in the order that they had."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.config import config
from spartan_ng.scratch import own_copy

VIEWS: dict[str, Any] = {
    "as it is": lambda x: x,
    "turned": lambda x: x.T,
    "planes": lambda x: x.reshape(30, 10, 40).transpose(1, 2, 0),
    "backwards": lambda x: x[::-1],
    "every other": lambda x: x[::2, ::3],
    "swapped": lambda x: x.astype(">f8"),
    "a line": lambda x: x.reshape(-1),
    "texts": lambda x: x.astype("S8"),
    "long rows": lambda x: x.reshape(3, -1)[:, ::2],
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("budget", [10_000, 10_000_000])
def test_a_copy_lies_as_numpys(view: str, budget: int) -> None:
    x = VIEWS[view](numpy.arange(12_000.0).reshape(300, 40))
    with config.override(memory_bytes=budget):
        found = own_copy(x)
    expected = x.copy("K")
    assert found.strides == expected.strides
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(found, expected)
    assert is_mapped(found) == (budget == 10_000 and x.size > 0)
    assert found.flags.writeable
    found[...] = x[:1]
    numpy.testing.assert_array_equal(x, expected)


WRITES: dict[str, Any] = {
    "diagonal": lambda m, x: m.fill_diagonal(x, 7),
    "put": lambda m, x: m.put(x, [5, 700], 7),
    "masked": lambda m, x: m.putmask(x, x > 11_000, 7),
    "output": lambda m, x: m.sqrt(x, out=x),
    "element": lambda m, x: x.__setitem__((3, 4), 7),
    "row of a view": lambda m, x: x[3].__setitem__(4, 7),
    "by a buffer": lambda m, x: m.frombuffer(x).__setitem__(5, 7),
    "as another class": lambda m, x: x.view(numpy.recarray).__setitem__((5, 5), 7),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_file_that_is_written_to_in_memory_stays_as_it_is(write: str, tmp_path: Any) -> None:
    file = tmp_path / "x.npy"
    x = numpy.arange(12_000.0).reshape(300, 40)
    numpy.save(file, x)
    expected = x.copy()
    WRITES[write](numpy, expected)
    with config.override(memory_bytes=40_000, small_bytes=1000):
        found = np.load(file)
        total = found.sum()  # of what it was
        WRITES[write](np, found)
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)
        numpy.testing.assert_allclose(float(found.sum()), expected.sum())
        numpy.testing.assert_allclose(float(total), x.sum())
    numpy.testing.assert_array_equal(numpy.load(file), x)
