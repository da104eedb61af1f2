"""Looking up rows on workers: NumPy's answer on every layout, and only the rows that are asked for move."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.arrays import Tiling
from spartan_ng.config import TILINGS, config
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import lookups
from spartan_ng.costs.tuned import DISTINCT_FLOPS
from spartan_ng.plan.rows import Axis, Read, Slot
from spartan_ng.plan.stages import Join
from spartan_ng.worker.memory.regions import gathered_pieces, lookup
from spartan_ng.worker.memory.store import read_region
from spartan_ng.worker.stages import joins
from spartan_ng.worker.stages.joins import _distinct
from tests.sampling import examples
from tests.test_programs import running_on


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("tiling", [None, *TILINGS])
def test_every_axis_and_shape_of_indices(workers: int, tiling: str | None) -> None:
    value = np.random.default_rng(0).random((50, 7, 3))
    cases: list[tuple[int, Any]] = [
        (0, [3, 9, 9, 2]),
        (1, [[1, 2], [6, 0]]),
        (0, 4),
        (2, [1]),
        (0, np.arange(20).reshape(4, 5) * 2),
    ]
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, small_bytes=0):
        x = sp.asarray(value) + 1
        for axis, indices in cases:
            found = sp.take(x, sp.asarray(indices), axis=axis)
            np.testing.assert_array_equal(np.asarray(found), np.take(value + 1, indices, axis=axis))


@pytest.mark.parametrize("rows", [1, 3, 64])
@pytest.mark.parametrize("tiling", [None, *TILINGS])
def test_lookups_that_memory_has_no_room_for_go_piece_by_piece(
    monkeypatch: pytest.MonkeyPatch, tiling: str | None, rows: int
) -> None:
    monkeypatch.setattr(joins, "_ROWS", rows)
    value = np.random.default_rng(0).random((50, 7, 3))
    backend = SimulatedBackend(3, Profile(memory_bytes=2 * value.nbytes, limited=True))
    with running_on(backend), config.override(tiling=tiling, small_bytes=0):
        x = (sp.asarray(value) + 1).persist()
        for axis, indices in (
            (0, np.arange(100) * 7 % 50),
            (0, np.arange(120).reshape(20, 6) % 50),
            (1, [6, 0, 1, 1]),
        ):
            found = sp.take(x, sp.asarray(indices), axis=axis)
            np.testing.assert_array_equal(np.asarray(found), np.take(value + 1, indices, axis=axis))
        for mask in (value > 0.4, value[:, :, 0] > 0.2, value[:, 0, 0] > 0.5, value > 2):
            np.testing.assert_array_equal(np.asarray(x[sp.asarray(mask)]), value[mask] + 1)
        np.testing.assert_array_equal(np.asarray(np.flatnonzero(x > 1.5)), np.flatnonzero(value > 0.5))


def test_only_the_rows_that_are_asked_for_move() -> None:
    value = np.random.default_rng(0).random((10_000, 20))
    with running_on(SimulatedBackend(4)), config.override(tiling="row", small_bytes=0):
        x = (sp.asarray(value) * 2).persist()
        rows = np.array([17, 4_000, 9_999, 18])
        np.testing.assert_array_equal(np.asarray(x[sp.asarray(rows)]), 2 * value[rows])
        ran = session.current().last_run
    assert ran is not None
    indices = 3 * 8 * len(rows)
    assert 0 < ran[1].bytes_moved <= 20 * 8 * len(rows) + indices


def test_rows_of_a_mapped_file_cut_by_columns_are_looked_up_where_they_lie(tmp_path: Any) -> None:
    value = np.random.default_rng(0).random((1 << 12, 64))
    np.save(tmp_path / "x.npy", value)
    rows = np.arange(0, len(value), 40)
    backend: Any = SimulatedBackend(2)
    backend.is_local = True
    with running_on(backend), config.override(tiling="column", small_bytes=0):
        x = sp.load(tmp_path / "x.npy")
        tracemalloc.start()
        try:
            found = np.asarray(x[rows])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        np.testing.assert_array_equal(found, value[rows])
    assert peak < value.nbytes // 2


@examples(100)
@given(st.data())
def test_a_lookup_of_any_view_reads_its_rows_and_no_others(data: st.DataObject) -> None:
    n, workers = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 5))
    start, step = data.draw(st.integers(0, n - 1)), data.draw(st.sampled_from([1, 2, -1, -3]))
    size = len(range(start, n if step > 0 else -1, step))
    rows = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    wanted = np.array(sorted(rows))
    value = np.arange(n * 3).reshape(n, 3)
    slot = Slot((n, 3), value.dtype, Tiling.grid(min(workers, n), 1))
    read = Read(0, (Axis(0, start, step, size), Axis(1, 0, 1, 3)), (0, 1), (size, 3), (0, 1))
    box = ((int(wanted[0]), int(wanted[-1]) + 1), (0, 3))
    operand = lookup(read, box, 0, wanted, slot, 0)
    tiles = dict(slot.tiling.tiles((n, 3), ((0, n), (0, 3))))
    parts = []
    for piece in operand.pieces:
        tile = value[tuple(slice(*b) for b in tiles[piece.rank])]
        parts.append((piece, read_region(tile, piece.region)))
    assert sum(data.size for _, data in parts) == 3 * len(wanted)
    found = operand.present(gathered_pieces(parts, operand.shape, value.dtype))
    np.testing.assert_array_equal(found, value[start::step][wanted])


@examples(100)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.sampled_from([np.int64, np.uint8, np.intp]))
def test_indices_are_asked_for_once_and_found_again(places: list[int], dtype: Any) -> None:
    indices = np.array(places, dtype).reshape((2, -1) if len(places) % 2 == 0 else (-1,))
    wanted, rows = _distinct(indices)
    np.testing.assert_array_equal(wanted, np.unique(indices))
    assert rows.shape == indices.shape
    np.testing.assert_array_equal(wanted[rows], indices)


def test_asking_others_for_rows_counts_the_sort_of_the_indices() -> None:
    whole = Slot((1 << 20,), np.dtype(float), Tiling.grid(1))
    cut = replace(whole, tiling=Tiling.grid(4))
    indices = Slot((1_000,), np.dtype(int), Tiling.grid(4))
    found = Slot((1_000,), np.dtype(float), Tiling.grid(4))
    reads = tuple(
        Read(n, (Axis(0, 0, 1, slot.shape[0]),), (0,), slot.shape, (0,))
        for n, slot in enumerate((whole, indices))
    )
    join = Join("take", "take", None, (0,), reads, 2, Tiling.grid(4))
    here = join.operations((whole, indices, found))
    assert here == lookups(1_000, whole.nbytes)
    assert join.operations((cut, indices, found)) == here + DISTINCT_FLOPS * 1_000
