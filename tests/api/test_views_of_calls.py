"""Calls whose results NumPy lays over their operand's memory: what is written to one is seen in the other."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

CALLS = {
    "real_if_close": lambda np, a: np.real_if_close(a),
    "meshgrid, one": lambda np, a: np.meshgrid(a, copy=False)[0],
    "meshgrid, ij": lambda np, a: np.meshgrid(a, a, copy=False, indexing="ij")[0],
    "meshgrid, sparse": lambda np, a: np.meshgrid(a, a, copy=False, sparse=True)[1],
    "broadcast_arrays, alike": lambda np, a: np.broadcast_arrays(a, a)[0],
    "broadcast_arrays": lambda np, a: np.broadcast_arrays(a, np.ones((3, 1)))[0],
    "getfield, whole": lambda np, a: a.getfield(a.dtype),
    "getfield, half": lambda np, a: a.getfield(f"u{a.itemsize // 2}", a.itemsize // 2),
    "getfield, bytes": lambda np, a: a.getfield("u1", 1),
    "from_dlpack": lambda np, a: np.from_dlpack(a),
    "squeeze": lambda np, a: np.squeeze(a),
    "ravel": lambda np, a: np.ravel(a),
    "atleast_2d": lambda np, a: np.atleast_2d(a),
    "asanyarray": lambda np, a: np.asanyarray(a),
}
KEYS = {
    "all": lambda a: ...,
    "one": lambda a: (0,) * a.ndim,
    "some": lambda a: (..., slice(None, None, 2)),
    "mask": lambda a: numpy.arange(a.size).reshape(a.shape) % 3 == 1,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(50)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("name", CALLS)
def test_writes_go_both_ways(mode, name, key):
    for dtype in ("c16", "i4"):
        found = []
        for xp in (numpy, np):
            a = xp.arange(5).astype(dtype)
            seen = CALLS[name](xp, a)
            seen[KEYS[key](seen)] = 7
            after = numpy.array(a)
            a[1] = 3
            found.append((after, numpy.array(seen), numpy.array(a)))
        for wanted, got in zip(*found, strict=True):
            numpy.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["i8", "f4", "c16", "U3"])
def test_operands_themselves(mode, dtype):
    a = np.asarray(numpy.array(["1", "2"]).astype(dtype)) + (0 if dtype != "U3" else "")
    assert np.broadcast_arrays(a, a)[1] is a
    assert np.squeeze(a) is a
    assert a.squeeze() is a
    assert np.real_if_close(a + 1j if dtype == "c16" else a) is not None
    assert dtype == "c16" or np.real_if_close(a) is a


def test_memory_of_others_is_seen(mode):
    theirs = numpy.arange(4.0)
    ours = np.from_dlpack(theirs)
    ours[1] = 9
    theirs[2] = 8
    assert (ours + 0).tolist() == theirs.tolist() == [0, 9, 8, 3]
    np.from_dlpack(theirs, copy=True)[0] = 5
    assert theirs[0] == 0


def test_a_written_broadcast_warns_as_numpys_does(mode):
    seen = np.broadcast_arrays(np.arange(3), np.ones((2, 3)))[0]
    with pytest.warns(DeprecationWarning, match="overlapping memory"):
        seen[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        np.broadcast_to(np.arange(3), (2, 3))[0] = 1
