"""How many chunks of a zarr store are read together: as many as keep all cores busy where two read ahead, as
zarr puts them beside each other one after the other; and of one at a URL all that a band has."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy
import pytest
import zarr

import spartan_ng as np
from spartan_ng.sources import SourceTile, zarr_array
from spartan_ng.sources.zarr_array import ZarrArray

VALUE = numpy.arange(480 * 40.0).reshape(480, 40)
BAND = VALUE.nbytes // 2
CHUNKS: list[tuple[tuple[int, int], int, int, int]] = [
    ((40, 20), 2, 1000, 1),
    ((40, 20), 8, 1000, 4),
    ((40, 20), 2, 3 * 6400, 2),
    ((40, 40), 2, 1000, 1),
    ((480, 4), 4, 1000, 2),
    ((4, 4), 2, 1280, 10),
]
"""The shape of a chunk, threads, bytes that are read together whatever these are, and chunks that are."""


@pytest.mark.parametrize(("chunk", "threads", "least", "together"), CHUNKS)
def test_so_many_chunks_are_read_together(
    chunk: tuple[int, int], threads: int, least: int, together: int, tmp_path: Path, monkeypatch: Any
) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=VALUE, chunks=chunk)
    zarr.create_array("memory://together/x.zarr", data=VALUE, chunks=chunk, overwrite=True)
    monkeypatch.setattr(zarr_array, "_TOGETHER_BYTES", least)
    monkeypatch.setattr("spartan_ng.sources.tile.band_bytes", lambda: BAND)
    boxes: list[Any] = []
    read = ZarrArray.read

    def noted(self: ZarrArray, box: Any) -> Any:
        boxes.append(box)
        return read(self, box)

    monkeypatch.setattr(ZarrArray, "read", noted)
    with np.config.override(threads=threads):
        for place, most in ((str(tmp_path / "x.zarr"), together), ("memory://together/x.zarr", None)):
            source, out = ZarrArray(place), numpy.empty(VALUE.shape)
            boxes.clear()
            SourceTile(source).region(((0, 480, 1), (0, 40, 1))).into(out)
            numpy.testing.assert_array_equal(out, VALUE)
            sizes = [prod(hi - lo for lo, hi in box) for box in boxes]
            assert sum(sizes) == VALUE.size
            assert max(sizes) <= (BAND // 8 if most is None else most * prod(chunk))
            assert most is None or len(boxes) <= -(-VALUE.size // prod(chunk)) * 2 // most
