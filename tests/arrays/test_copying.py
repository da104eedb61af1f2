"""Copies by several threads: NumPy's elements and order of axes, in memory of their own."""

from __future__ import annotations

import threading
from itertools import permutations

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.arrays import copying
from spartan_ng.arrays.copying import copy_run, private_copy
from spartan_ng.config import config

N = 1200
MATRIX = np.arange(N * N, dtype=float).reshape(N, N)
VALUES = {
    "rows": MATRIX,
    "columns": MATRIX.T,
    "steps": MATRIX[::-1, ::2],
    "three axes": MATRIX.reshape(4, 300, N).transpose(1, 2, 0),
    "few rows": MATRIX.reshape(2, -1),
    "one row": MATRIX.reshape(1, -1),
    "stretched": np.broadcast_to(np.arange(N * 1.0), (N, N)),
    "dates": MATRIX.astype("datetime64[s]"),
    "objects": np.full(700_000, None),
    "records": np.zeros(600_000, [("a", "i4"), ("b", "f8")]),
    "one long text": np.array(b"a" * 5_000_000),
    "few elements": np.arange(5),
    "none": MATRIX[:0],
}


@pytest.mark.parametrize("name", VALUES)
def test_numpys_copy(name, monkeypatch):
    value = VALUES[name]
    monkeypatch.setattr(copying, "_PART_BYTES", 1 << 21)
    with config.override(threads=3):
        made = private_copy(value)
    plain = value.copy(order="K")
    assert (made.dtype, made.strides) == (plain.dtype, plain.strides)
    assert not np.shares_memory(made, value)
    assert made.flags.writeable
    np.testing.assert_array_equal(made, plain)


def test_what_one_thread_has_copied_before_another_begins_is_its_alone(monkeypatch):
    """Up to 32 MB are memory that is used again, in which the threads' start takes longer than the copy."""

    def start(self):
        raise AssertionError("a thread is started")

    monkeypatch.setattr(threading.Thread, "start", start)
    with config.override(threads=3, small_bytes=1 << 25):
        for value in (MATRIX, MATRIX.T):
            np.testing.assert_array_equal(private_copy(value), value)
            np.testing.assert_array_equal(sp.array(value), value)


@pytest.mark.parametrize("axes", list(permutations(range(3))))
def test_runs_of_elements_in_any_layout(axes):
    value = np.arange(4 * 5 * 6).reshape(4, 5, 6).transpose(axes)
    for steps in ((1, 1, 1), (1, -1, 2), (2, 1, 1)):
        part = value[tuple(slice(None, None, s) for s in steps)]
        flat = part.reshape(-1)
        for first in range(0, part.size, 3):
            for count in {0, 1, 7, 31, part.size - first}:
                out = np.full(min(count, part.size - first), -1)
                copy_run(part, first, out)
                np.testing.assert_array_equal(out, flat[first : first + len(out)])
