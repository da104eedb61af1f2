"""Scans that go to files are NumPy's, run as others do, and are written in pieces as they lie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import h5py
import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.files import saving
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels import scans
from spartan_ng.kernels.compiled.scans import CompiledScan
from spartan_ng.sinks import ZarrStore
from spartan_ng.sinks.raw import RawFile
from spartan_ng.worker.stages import scans as worker_scans
from tests.test_programs import running_on

FOLDED, PIECE = 5_000, 1 << 14
SHAPES = [(400_000,), (20_000, 10), (10, 20_000), (300, 7, 90), (2, 30_000, 3)]
PROGRAMS = {
    "sums": lambda np, x, axis: np.cumsum(x, axis=axis),
    "of sums": lambda np, x, axis: np.cumsum(x * 3, axis=axis) / 2,
    "extremes": lambda np, x, axis: np.minimum.accumulate(x, axis=axis),
    "products": lambda np, x, axis: np.cumprod(1 + x / 1e6, axis=axis),
}


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(saving, "_SHARE", 1 << 40)
    monkeypatch.setattr(worker_scans, "_FOLDED", FOLDED)
    monkeypatch.setattr(scans, "SCAN_PIECE", PIECE)
    with config.override(small_bytes=0):
        yield


def backend(workers: int) -> Any:
    found: Any = SimulatedBackend(workers) if workers else EmbeddedBackend(2)
    found.is_local = True
    return found


@pytest.mark.some(16)
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_as_numpy(shape: tuple[int, ...], name: str, workers: int, kernels: str, tmp_path: Path) -> None:
    x = numpy.random.default_rng(5).random(shape)
    with running_on(backend(workers)), config.override(kernels=kernels):
        for axis in range(len(shape)):
            np.save(tmp_path / "y.npy", PROGRAMS[name](np, np.array(x), axis))
            expected = PROGRAMS[name](numpy, x, axis)
            numpy.testing.assert_allclose(numpy.load(tmp_path / "y.npy"), expected, rtol=1e-9)
            np.save(tmp_path / "y.h5", PROGRAMS[name](np, np.array(x), axis))
            with h5py.File(tmp_path / "y.h5") as file:
                numpy.testing.assert_allclose(file["data"][:], expected, rtol=1e-9)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("shape", [s for s in SHAPES if s != (2, 30_000, 3)])
def test_blocks_lie_in_one_piece(shape: tuple[int, ...], kernels: str, tmp_path: Path) -> None:
    x = numpy.random.default_rng(5).random(shape)
    boxes: list[Any] = []
    write = RawFile.write

    def noted(self: RawFile, block: Any, box: Any) -> None:
        boxes.append(box)
        write(self, block, box)

    for axis in range(len(shape)):
        del boxes[:]
        with (
            running_on(backend(0)),
            config.override(kernels=kernels),
            mock.patch.object(RawFile, "write", noted),
            mock.patch.object(CompiledScan, "run", autospec=True, side_effect=CompiledScan.run) as compiled,
        ):
            np.save(tmp_path / "y.npy", np.cumsum(np.array(x), axis=axis))
        assert (compiled.call_count >= len(boxes)) == (kernels == "compile")
        assert len(boxes) <= 4 * x.size // FOLDED + 64
        for box in boxes:
            sizes = [hi - lo for lo, hi in box]
            assert numpy.prod(sizes) <= FOLDED
            cut = [d for d, n in enumerate(sizes) if n < shape[d]]
            if len(shape) == 2 and axis == 1:  # whole lines, or a part of one
                assert cut == [0] or sizes[0] == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_chunks_are_written_whole(axis: int, tmp_path: Path) -> None:
    """But for those that parts of a scan meet in."""
    x = numpy.random.default_rng(5).random((6000, 40))
    chunks = (70, 40)
    with (
        running_on(backend(0)),
        mock.patch.object(ZarrStore, "write", autospec=True, side_effect=ZarrStore.write) as written,
    ):
        np.to_zarr(np.cumsum(np.array(x), axis=axis), tmp_path / "y.zarr", chunks=chunks)
    numpy.testing.assert_allclose(np.from_zarr(tmp_path / "y.zarr"), numpy.cumsum(x, axis))
    boxes = [call.args[2] for call in written.call_args_list]
    whole = [box for box in boxes if box[0][0] % 70 == 0 and box[0][1] - box[0][0] == 70]
    parts = x.size // PIECE + 1
    assert len(boxes) <= 6000 // 70 + 1 + parts
    assert len(whole) >= 6000 // 70 - parts


@pytest.mark.slow
def test_a_block_of_narrow_chunks_is_no_larger_for_them(tmp_path: Path) -> None:
    x = numpy.random.default_rng(5).random((600, 4000))
    with (
        running_on(backend(0)),
        mock.patch.object(ZarrStore, "write", autospec=True, side_effect=ZarrStore.write) as written,
    ):
        np.to_zarr(np.cumsum(np.array(x), axis=0), tmp_path / "y.zarr", chunks=(600, 10))
    numpy.testing.assert_allclose(np.from_zarr(tmp_path / "y.zarr"), numpy.cumsum(x, 0))
    assert max(call.args[1].size for call in written.call_args_list) <= max(FOLDED, 4 * 6000)
