"""The memory of tiles: sizes, reuse, segments and their descriptors."""

import gc
import os
import resource

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse import random as random_csr

from spartan_ng.errors import OutOfResources
from spartan_ng.worker.memory import pool as pool_module
from spartan_ng.worker.memory.pool import SHARED_BYTES, BufferPool, size_class
from spartan_ng.worker.memory.store import Store
from tests.worker.test_store import filled, nameless

F8 = np.dtype(np.float64)
MB = 1 << 17
"""Float64 elements of a megabyte."""


@given(st.integers(1, 1 << 40))
def test_size_classes_waste_little(n):
    size = size_class(n)
    assert n <= size <= max(n * 1.25, n + 4096)
    assert size % 4096 == 0
    assert size_class(size) == size


def test_a_buffer_is_reused_when_its_last_view_dies():
    pool = BufferPool()
    store = Store(pool)
    first = filled(store, MB, 1.0)
    address = first.ctypes.data
    view = first[10:]
    del first
    assert store.allocate((MB,), F8).ctypes.data != address
    gc.collect()
    del view
    assert store.allocate((MB,), F8).ctypes.data == address


def test_small_tiles_are_not_shared():
    pool = BufferPool()
    assert pool.locate(Store(pool).allocate((4,), F8)) is None


def test_a_region_of_a_tile_is_found_in_its_segment():
    pool = BufferPool()
    tile = Store(pool).allocate((100, 1000), F8)
    found = pool.locate(tile[3:, 7:])
    assert found is not None
    segment, offset = found
    assert offset == 3 * 8000 + 56
    assert os.fstat(segment.descriptor).st_size == segment.size


def test_used_bytes_return_to_zero():
    pool = BufferPool(10 << 20)
    store = Store(pool)
    for i in range(5):
        store.put(("c", i), filled(store, MB, i))
    store.put(("c", 9), csr_array(random_csr(1000, 1000, 0.1, random_state=0, format="csr")))
    assert pool.used_bytes > 5 << 20
    store.drop_owner("c")
    pool.collect()
    assert pool.used_bytes == 0


def test_free_segments_give_their_pages_back_beyond_the_budget():
    pool = BufferPool(10 << 20)
    store = Store(pool)
    tiles = [filled(store, MB, i) for i in range(8)]
    del tiles
    pool.collect()
    assert pool.free_bytes <= 2 << 20


def test_a_busy_pool_keeps_the_pages_of_its_last_result_and_an_idle_one_gives_them_back(monkeypatch):
    monkeypatch.setattr(pool_module, "_MAX_FREE_BYTES", 0)
    pool = BufferPool()
    store = Store(pool)
    first = filled(store, MB, 1)
    for _ in range(3):
        del first
        pool.rest()
        assert pool.free_bytes >= 8 * MB
        first = filled(store, MB, 2)
        assert pool.free_bytes == 0
    second = filled(store, MB, 3)
    del first, second
    pool.collect()
    assert 16 * MB <= pool.free_bytes <= pool.peak_bytes
    pool.rest()
    pool.rest()
    assert pool.free_bytes == 0


def test_shared_bytes_is_a_page_multiple():
    assert SHARED_BYTES % 4096 == 0


@pytest.mark.parametrize("count", [1, 7, 300])
def test_a_segment_has_one_descriptor_and_free_ones_are_bounded(count):
    pool = BufferPool()
    before = nameless()
    tiles = [pool.allocate((SHARED_BYTES,), np.dtype("u1"), lambda n: False) for _ in range(count)]
    assert len(nameless() - before) == count
    del tiles
    pool.collect()
    assert len(nameless() - before) == min(count, pool_module._MAX_FREE_SEGMENTS)
    pool.close_free()
    assert nameless() <= before


def test_a_segments_memory_lives_as_long_as_the_last_view_of_it():
    pool = BufferPool()
    tile = filled(Store(pool), MB, 7.0)
    views = [tile[::2], tile.view("i8").reshape(8, -1)[3], tile[5:].T]
    del tile
    pool.collect()
    pool.close_free()
    assert (views[0] == 7.0).all()
    del views[:2]
    pool.collect()
    pool.close_free()
    assert (views[0] == 7.0).all()


def test_too_many_files_is_a_named_error_and_the_next_tile_is_had():
    pool = BufferPool()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(int(n) for n in os.listdir("/proc/self/fd")) + 1, hard))
    try:
        with pytest.raises(OutOfResources, match=r"no shared memory of [\d,]+ bytes .*Too many open files"):
            [pool.allocate((SHARED_BYTES,), np.dtype("u1"), lambda n: False) for _ in range(2000)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    again = pool.allocate((SHARED_BYTES,), np.dtype("u1"), lambda n: False)
    assert again.nbytes == SHARED_BYTES
    assert pool.used_bytes == SHARED_BYTES


@pytest.mark.parametrize("threads", [1, 4, 64])
@pytest.mark.parametrize("memory_bytes", [1, 20_000_000, 1 << 30, 1 << 40])
def test_blocks_have_a_part_of_a_workers_memory(memory_bytes: int, threads: int) -> None:
    found = pool_module.tiles_bytes(memory_bytes, threads)
    assert 3 * memory_bytes <= 4 * found <= 4 * memory_bytes
    assert memory_bytes - found <= threads << 23
