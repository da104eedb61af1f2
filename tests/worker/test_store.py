"""Tiles: parking, counted reads, the budget, and spilling."""

import errno
import os
import random
import stat
import tempfile
import threading
from contextlib import suppress
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse import random as random_csr

from spartan_ng import scratch
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError, OutOfResources
from spartan_ng.system import mapping, segments
from spartan_ng.worker.memory.pool import BufferPool
from spartan_ng.worker.memory.store import Store
from tests.disks import small_disk

__all__ = ["small_disk"]

F8 = np.dtype(np.float64)
MB = 1 << 17
"""Float64 elements of a megabyte."""


def filled(store, n, value):
    tile = store.allocate((n,), F8)
    tile[...] = value
    return tile


def nameless():
    """Files without a name that this process has open, by descriptor: segments, and what lies on disk. Others
    come and go, like what tests before have left to be collected."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the folder's own
            status = os.fstat(int(name))
            found |= {(name, status.st_ino)} if segments.is_nameless(status) else set()
    return found


def test_reads_park_until_the_tile_is_there():
    store, seen = Store(), []
    store.when_ready(("c", 1), lambda: seen.append("a"))
    assert seen == []
    store.put(("c", 1), np.zeros(3))
    store.when_ready(("c", 1), lambda: seen.append("b"))
    assert seen == ["a", "b"]


@given(
    st.sets(st.integers(0, 9)),
    st.sets(st.integers(0, 9)),
    st.integers(-1, 10),
    st.integers(-1, 4),
    st.booleans(),
)
def test_what_is_retained(kept, parked, last, last_job, decimal):
    """Of an owner, and of nobody else, what comes later or is named; of its jobs, those that come later."""
    store = Store()
    jobs = [f"c/{n}" if decimal else f"c/{n}x" for n in range(5)]
    keys = [(owner, n) for owner in ("c", "d", *jobs, "d/1", "cc") for n in range(10)]
    for key in keys:
        if key[0] != "c" or key[1] not in parked:
            store.put(key, np.zeros(3))
    told: set[int] = set()
    for n in parked:
        store.when_ready(("c", n), partial(told.add, n))
    store.retain("c", kept, last, last_job)
    here = set(store.complete())
    stays = {n for n in range(10) if n > last or n in kept}
    assert {n for owner, n in here if owner == "c"} == stays - parked
    assert {owner for owner, _ in here if owner.startswith("c/")} == {
        job for n, job in enumerate(jobs) if decimal and n > last_job
    }
    assert all(key in here for key in keys if key[0] in ("d", "d/1", "cc"))
    for n in parked:
        store.put(("c", n), np.zeros(3))
    assert told == stays & parked


def test_counted_reads_drop_the_tile_after_the_last():
    store = Store()
    store.put(("c/1", 1), np.zeros(3), reads=2)
    for _ in range(2):
        store.release(("c/1", 1))
        store.get(("c/1", 1))
    store.release(("c/1", 1))
    with pytest.raises(KeyError):
        store.get(("c/1", 1))
    store.release(("c/1", 1))


def test_a_pinned_owners_tiles_stay_whoever_has_read_them():
    store = Store()
    store.put(("c/1", 1), np.zeros(3), reads=1)
    store.put(("c/2", 1), np.zeros(3), reads=0)
    assert store.pin("c/1") == [("c/1", 1)]
    for key in (("c/1", 1), ("c/2", 1)) * 3:
        store.release(key)
    assert store.complete() == [("c/1", 1)]
    store.drop_owner("c/1")
    assert store.complete() == []


def test_uncounted_tiles_stay():
    store = Store()
    tile = np.zeros(3)
    store.put(("c", 1), tile)
    store.release(("c", 1))
    assert store.get(("c", 1)) is tile


def test_owners_go_with_their_jobs_and_nobody_elses():
    store, seen = Store(), []
    for owner in ("c1", "c1/3", "c11", "c2"):
        store.put((owner, 1), np.zeros(1))
    store.when_ready(("c1/4", 1), lambda: seen.append(1))
    store.drop_owner("c1")
    assert {k[0] for k in store.complete()} == {"c11", "c2"}
    store.put(("c1/4", 1), np.zeros(1))
    assert seen == []


def test_tiles_beyond_the_budget_come_back_from_disk():
    pool = BufferPool(4 << 20)
    store = Store(pool)
    for i in range(12):
        store.put(("c", i), filled(store, MB, i))
    assert store.spilled_bytes >= 8 << 20
    assert pool.used_bytes <= 4 << 20
    for i in (0, 11, 5, 0, 3):
        tile = store.get(("c", i))
        assert (tile == i).all()
        del tile
    assert pool.used_bytes <= 4 << 20


def test_the_least_recently_used_tile_goes_first():
    store = Store(BufferPool(3 << 20))
    for i in range(3):
        store.put(("c", i), filled(store, MB, i))
    store.get(("c", 0))
    store.put(("c", 3), filled(store, MB, 3))
    assert [store.is_spilled(("c", i)) for i in range(4)] == [False, True, False, False]


def test_tiles_that_somebody_looks_at_are_not_spilled():
    store = Store(BufferPool(3 << 20))
    for i in range(3):
        store.put(("c", i), filled(store, MB, i))
    views = [store.get(("c", i))[5:] for i in range(2)]
    store.put(("c", 3), filled(store, MB, 3))
    assert [store.is_spilled(("c", i)) for i in range(3)] == [False, False, True]
    assert all((v == i).all() for i, v in enumerate(views))


@pytest.mark.parametrize("made", [lambda: np.ones(MB), lambda: csr_array(np.ones((1, MB // 2)))])
def test_what_is_lent_goes_to_no_disk(made):
    """Its owner has it still: what was read back was there twice."""
    store, lent = Store(BufferPool(3 << 20)), made()
    store.put(("c", 0), lent, lent=True)
    for i in range(1, 5):
        store.put(("c", i), filled(store, MB, i))
    assert [store.is_spilled(("c", i)) for i in range(5)] == [False, True, True, False, False]
    assert store.get(("c", 0)) is lent


def test_csr_tiles_spill_too():
    store = Store(BufferPool(3 << 20))
    array = csr_array(random_csr(1000, 1000, 0.1, random_state=0, format="csr"))
    store.put(("c", 0), array)
    for i in range(1, 4):
        store.put(("c", i), filled(store, 3 * MB // 4, i))
    assert store.is_spilled(("c", 0))
    assert (store.get(("c", 0)) != array).nnz == 0


def test_a_csr_tile_that_cannot_fit_goes_to_disk_too():
    """And comes back when there is room: what is made of one sparse operand, which is still looked at."""
    store, n = Store(BufferPool(6 << 20)), 1_000_000
    operand = csr_array(([1.0], [0], np.repeat(np.arange(2, dtype=np.int32), [1, n])), (n, 1))
    store.put(("c", 0), operand)
    store.put(("c", 1), operand * 2)
    store.put(("c", 2), operand * 3)
    store.drop(("c", 0))
    for tile, factor in ((1, 2), (2, 3)):
        assert (store.get(("c", tile)) != operand * factor).nnz == 0


def test_what_does_not_fit_lies_on_disk(tmp_path):
    pool, before = BufferPool(4 << 20), nameless()
    store = Store(pool)
    with config.override(disk_folder=tmp_path):
        large = filled(store, 8 * MB, 1)
        store.put(("c", 1), large)
        held = [filled(store, MB, i) for i in range(4)]
        other = filled(store, MB, 2)
        assert is_mapped(large)
        assert is_mapped(other)
        assert not any(map(is_mapped, held))
        assert pool.used_bytes == 4 << 20
        assert store.spilled_bytes == 9 << 20
        np.testing.assert_array_equal(store.get(("c", 1)), np.ones(8 * MB))
    del held
    assert not is_mapped(store.allocate((4 * MB,), F8))
    assert os.listdir(tmp_path) == []
    del large, other
    store.drop_owner("c")
    pool.collect()
    pool.close_free()
    assert nameless() <= before


def test_a_full_disk_is_an_error_that_says_where():
    with (
        patch.object(scratch, "set_aside", side_effect=OSError(errno.ENOSPC, "No space left on device")),
        pytest.raises(OutOfResources, match=r"8,388,608 bytes,.*disk_folder.*No space left"),
    ):
        Store(BufferPool(4 << 20)).allocate((8 * MB,), F8)


def test_what_others_made_and_cannot_fit_goes_to_disk():
    """Also what comes in a segment; what is lent stays where it is, and objects have no bytes to write."""
    before = nameless()
    pool = BufferPool(4 << 20)
    store, lent = Store(pool), np.full(8 * MB, 3.0)
    store.put(("c", 1), np.arange(8.0 * MB))
    store.put(("c", 2), lent, lent=True)
    segment = segments.create(8 * MB * 8)
    os.pwrite(segment, np.full(8 * MB, 2.0).data, 0)
    store.put(("c", 3), store.adopt(segment, 8 * MB * 8, (8 * MB,), F8))
    assert is_mapped(store.get(("c", 1)))
    assert is_mapped(store.get(("c", 3)))
    assert store.get(("c", 2)) is lent
    np.testing.assert_array_equal(store.get(("c", 1)), np.arange(8.0 * MB))
    np.testing.assert_array_equal(store.get(("c", 3)), np.full(8 * MB, 2.0))
    assert pool.used_bytes == 0
    with pytest.raises(MemoryBudgetError, match=r"8,388,608 bytes.*4,194,304 bytes"):
        store.put(("c", 4), np.full(MB * 8, None))
    store.drop_owner("c")
    pool.close_free()
    assert nameless() <= before


def test_a_tile_that_two_read_back_may_go_to_disk_between():
    """While one reader loads it, another one brings it back, leaves it, and it makes room for a third."""
    store = Store(BufferPool(4 << 20))
    for i in range(5):
        store.put(("c", i), filled(store, MB, i))
    spilled = store._tiles[("c", 0)].spilled
    assert spilled is not None

    load, between = type(spilled).load, []
    tiles: list[np.ndarray] = []

    def slow(self, allocate):
        tile = load(self, allocate)
        if self is spilled and not tiles:
            tiles.append(tile)
            between.append(store.get(("c", 0)).sum())
            store.put(("c", 5), filled(store, 2 * MB, 5))
            store.put(("c", 6), filled(store, MB, 6))
            assert store.is_spilled(("c", 0))
        return tile

    with patch.object(type(spilled), "load", slow):
        np.testing.assert_array_equal(store.get(("c", 0)), np.zeros(MB))
    assert between == [0.0]
    np.testing.assert_array_equal(store.get(("c", 0)), np.zeros(MB))


def test_a_dropped_spilled_tile_leaves_no_file():
    before = nameless()
    pool = BufferPool(2 << 20)
    store = Store(pool)
    for i in range(6):
        store.put(("c", i), filled(store, MB, i))
    store.drop_owner("c")
    pool.collect()
    pool.close_free()
    assert nameless() <= before


def test_many_threads_within_a_small_budget():
    store = Store(BufferPool(6 << 20))
    wrong = []

    def work(t):
        rng = np.random.default_rng(t)
        for step in range(40):
            i = int(rng.integers(4))
            key = (f"c{t}", i)
            if step < 4:
                key = (f"c{t}", step)
                store.put(key, filled(store, MB // 2, t * 10 + step))
            elif not (store.get(key) == t * 10 + i).all():
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
    assert store.spilled_bytes > 0


def test_a_full_disk_names_the_folder_and_the_bytes_and_loses_nothing(small_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    pool = BufferPool(4 << 20)
    store = Store(pool)
    stored: list[int] = []

    def fill():
        for i in range(12):
            store.put(("c", i), filled(store, MB, i))
            stored.append(i)

    with pytest.raises(
        OutOfResources,
        match=rf"1,048,576 bytes, .* cannot be written to {small_disk}.*No space",
    ):
        fill()
    assert len(stored) >= 4
    for i in stored[:2]:  # what has gone to disk is there, and makes room
        store.drop(("c", i))
    tile = filled(store, MB, 99)
    store.put(("c", 99), tile)
    del tile
    for i in [*stored[2:], 99]:
        assert (store.get(("c", i)) == i).all()


def test_what_goes_to_disk_is_for_nobody_else():
    store = Store(BufferPool(4 << 20))
    for i in range(6):
        store.put(("c", i), filled(store, MB, i))
    (spilled, *_) = [t.spilled for t in store._tiles.values() if t.spilled is not None]
    status = os.fstat(spilled._descriptor)
    assert status.st_nlink == 0
    assert stat.S_IMODE(status.st_mode) == 0o600


def test_what_an_owner_has_made_since_it_said_what_it_holds_is_retained():
    store = Store()
    keys = [("c", 1), ("c", 2), ("c", 9), ("c/3", 1), ("c/4", 1), ("c/x", 1), ("other", 1), ("other/1", 1)]
    for key in keys:
        store.put(key, np.ones(3))
    asked: list[object] = []
    for key in (("c", 3), ("c", 10), ("c/2", 5), ("c/5", 5)):
        store.when_ready(key, partial(asked.append, key))
    store.retain("c", (2,), 5, 3)
    assert store.complete() == [("c", 2), ("c", 9), ("c/4", 1), ("other", 1), ("other/1", 1)]
    for key in (("c", 3), ("c", 10), ("c/2", 5), ("c/5", 5)):
        store.put(key, np.ones(3))
    assert asked == [("c", 10), ("c/5", 5)]


@pytest.mark.parametrize("described", [1, 1 << 40])
def test_what_is_put_into_an_array_on_disk_is_there(described, monkeypatch):
    """Through its file or its map: whatever part, layout and dtype, also where it is looked at already."""
    monkeypatch.setattr(mapping, "_DESCRIBED", described)
    draw = random.Random(described)
    for dtype in ("f8", "i2", "?", "M8[s]", "c16"):
        expected = np.zeros((40, 30), dtype)
        found = scratch.on_disk(expected.shape, expected.dtype)
        view = found[3:]
        for _ in range(60):
            (a, b), (c, d) = (sorted(draw.sample(range(n + 1), 2)) for n in expected.shape)
            part = (slice(a, b), slice(None)) if draw.random() < 0.5 else (slice(a, b), slice(c, d))
            if draw.random() < 0.2:
                part = (part[0], slice(None, None, -1))
            data = np.array(draw.choices(range(7), k=expected[part].size)).astype(dtype)
            data = (
                data.reshape(expected[part].shape[::-1]).T
                if draw.random() < 0.5
                else data.reshape(expected[part].shape)
            )
            scratch.put(found[part], data)
            expected[part] = data
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(view, expected[3:])
        assert is_mapped(view)
    plain = np.zeros(5)
    scratch.put(plain[1:3], np.ones(2))
    assert plain.tolist() == [0, 1, 1, 0, 0]
