"""What a kernel is tried on: the end of what it will work on, no more of it than costs little."""

from __future__ import annotations

import mmap
import sys
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.arrays.copying import LINE_BYTES, whole_lines
from spartan_ng.kernels.compiled import scan_proof, trial
from spartan_ng.kernels.scans import one_piece
from tests.sampling import examples

LEAST = 4


@pytest.fixture(autouse=True)
def trials_are_short(monkeypatch):
    monkeypatch.setattr(trial, "LEAST", LEAST)
    monkeypatch.setattr(trial, "SHARE", 2)


@examples(400)
@given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 4))
def test_the_last_rows_with_elements_are_tried(counts: list[int], width: int) -> None:
    indptr = np.array([0, *np.cumsum(counts, dtype=int)])
    nnz, rows = int(indptr[-1]), len(counts)
    first, end = trial.last_rows(indptr, width)
    assert end == (max(i for i, n in enumerate(counts) if n) + 1 if nnz else rows)
    assert 0 <= first < end or end == rows == 0
    most_rows, most = max(rows // 2, LEAST), max(nnz * width // 2, LEAST) // width

    def fits(start: int) -> bool:
        return end - start <= most_rows and nnz - indptr[start] <= most

    assert fits(first) or first == end - 1, "one row, however long"
    assert not first or not fits(first - 1)


@examples(400)
@given(st.data())
def test_the_end_of_a_scans_last_piece_is_tried(data: st.DataObject) -> None:
    """Whole dimensions of what is walked as one, and two steps along the axis at least."""
    sizes = data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    axis = data.draw(st.sampled_from(range(len(sizes))))
    joined = data.draw(st.sets(st.sampled_from(range(len(sizes))))) - {axis}
    box = tuple((lo, lo + n) for lo, n in zip((3, 0, 7), sizes, strict=False))
    ordered: Any = SimpleNamespace(axis=axis, cut=one_piece(box, axis))
    scan: Any = SimpleNamespace(joined=joined)
    part = scan_proof._end(scan, ordered)
    lengths = [hi - lo for lo, hi in part]
    assert [hi for _, hi in part] == [hi for _, hi in box]
    assert all(1 <= n <= size for n, size in zip(lengths, sizes, strict=True))
    assert all(lengths[d] == sizes[d] for d in joined)
    assert lengths[axis] >= min(2, sizes[axis])
    others = [d for d in range(len(sizes)) if d != axis and d not in joined]
    alone = all(lengths[d] == 1 for d in others)
    long = scan_proof._LONG
    kept = sizes[axis] if sizes[axis] <= long else long // 2
    assert alone or lengths[axis] >= kept, "others are shortened before"
    shortest = lengths[axis] <= 2 and alone
    assert prod(lengths) <= max(prod(sizes) // 2, LEAST) or shortest


@pytest.mark.parametrize("nbytes", [1, LINE_BYTES - 1, LINE_BYTES, 1000])
def test_memory_in_lines_is_all_there_and_begins_with_a_line(nbytes: int) -> None:
    for _ in range(20):
        memory = whole_lines(nbytes)
        assert memory.nbytes == nbytes
        assert memory.__array_interface__["data"][0] % LINE_BYTES == 0


@pytest.mark.skipif(sys.platform != "linux", reason="what is in memory is asked of Linux")
def test_a_trial_in_a_large_tile_touches_small_pages() -> None:
    """Of which the system fills no more with zeros than lie around the block."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    before = resident()
    guards = trial.Guards()
    tile = guards.empty((1 << 10, 1 << 15), "f8")
    tile[:, 7] = 1.0  # a page of each line
    assert resident() - before < tile.nbytes // 8
    assert guards.intact
