"""Buffers that come back: used again, never together more than was in use at once."""

from __future__ import annotations

import weakref
from unittest import mock

import numpy as np

import spartan_ng as sp
from spartan_ng.config import config
from spartan_ng.worker.memory import recycle
from spartan_ng.worker.memory.recycle import LEAST_BYTES, Recycler

F8 = np.dtype(float)
N = LEAST_BYTES // 8


def address(a: np.ndarray) -> int:
    return int(a.__array_interface__["data"][0])


def test_a_dead_buffer_serves_the_next_of_its_size() -> None:
    r = Recycler(1 << 30)
    a = r.allocate((N,), F8)
    a[:] = 1
    first, view = address(a), a[5:]
    del a
    b = r.allocate((N,), F8)
    assert address(b) != first, "a view still looks at it"
    assert (view == 1).all()
    del view
    c = r.allocate((2, N // 2), F8)
    assert address(c) == first
    assert c.flags.writeable
    assert c.flags.c_contiguous


def test_a_result_in_such_a_buffer_is_written_in_place() -> None:
    """No copy before the first write: nobody else sees the memory."""
    with config.override(small_bytes=0):
        a = sp.ones((N,)) + sp.arange(N)
        a.persist()
        before = address(sp.asarray(a)._cell.value)
        a[0] = 5.0
        assert address(a._cell.value) == before
        assert a[:3].tolist() == [5.0, 2.0, 3.0]
        b = a * 2
        b.persist()
        a[1] = 7.0
        assert b[:2].tolist() == [10.0, 4.0]


def test_no_more_than_was_in_use_at_once() -> None:
    r = Recycler(1 << 30)
    a = r.allocate((4 * N,), F8)
    del a
    assert r.free_bytes >= 4 * N * 8
    b = r.allocate((N,), F8)
    assert r.free_bytes + r.used_bytes <= r.peak_bytes
    c = r.allocate((5 * N,), F8)
    assert r.free_bytes == 0
    assert r.used_bytes == r.peak_bytes
    del b, c
    assert r.free_bytes <= r.peak_bytes


def test_no_more_than_its_share() -> None:
    r = Recycler(3 * N * 8)
    a = [r.allocate((N,), F8) for _ in range(5)]
    del a
    assert 0 < r.free_bytes <= 3 * N * 8
    small = r.allocate((10,), F8)
    assert small.base is None
    objects = r.allocate((N,), np.dtype(object))
    assert objects[0] is None


def test_only_what_lies_in_its_buffers_is_its_own() -> None:
    r = Recycler(1 << 30)
    own, small = r.allocate((N,), F8), r.allocate((N // 2,), F8)
    assert r.owns(own)
    assert r.owns(own[3:].reshape(-1, 1))
    assert not r.owns(small), "the allocator's"
    assert not r.owns(np.empty(N)), "large, but not from here"
    assert not r.owns(np.empty(3))


def test_what_is_not_kept_goes_at_once() -> None:
    """And not when the next result is made: a process that an engine has stopped makes none."""
    r = Recycler(6 * N * 8)
    held = [r.allocate((4 * N,), F8) for _ in range(3)]
    gone = [weakref.ref(array.base.base.obj) for array in held]  # type: ignore[union-attr]
    del held
    assert sum(ref() is None for ref in gone) == 2, "one is kept"


def test_what_comes_back_while_another_is_taken_is_kept_for_later() -> None:
    """A finalizer runs anywhere."""
    r = Recycler(1 << 30)
    a = r.allocate((N,), F8)
    with r._lock:
        del a
    assert r.free_bytes >= N * 8


def test_what_outlives_its_recycler_is_whole() -> None:
    a = Recycler(1 << 30).allocate((N,), F8)
    a[:] = 1
    assert a.sum() == N
    del a


def test_what_is_expected_is_there_for_the_next_of_its_size() -> None:
    r = Recycler(8 * N * 8)
    r.expect([3 * N * 8, N * 8, 100])
    assert r.free_bytes == r.peak_bytes == 4 * N * 8
    ready = {address(storage) for storage in r._free}
    a, b, c = r.allocate((N,), F8), r.allocate((3, N), F8), r.allocate((2 * N,), F8)
    assert {address(a), address(b)} == ready
    assert address(c) not in ready
    a[:], b[:] = 1, 2
    assert (a.sum(), b.sum()) == (N, 6 * N), "also of what the system might have taken back"
    assert r.free_bytes == 0


def test_no_more_is_expected_than_may_be_kept() -> None:
    r = Recycler(3 * N * 8)
    r.expect([2 * N * 8, 2 * N * 8, N * 8])
    assert r.free_bytes == 2 * N * 8
    with mock.patch.object(recycle, "available_bytes", return_value=N * 8):
        r.expect([N * 8])
    assert r.free_bytes == 2 * N * 8


def test_what_others_need_in_place_of_what_is_expected_is_let_go() -> None:
    r = Recycler(1 << 30)
    r.expect([2 * N * 8])
    a = r.allocate((N,), F8)
    assert r.free_bytes + a.nbytes <= r.peak_bytes
    assert r.free_bytes == 0
