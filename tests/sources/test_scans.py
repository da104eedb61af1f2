"""Running sums of what lies outside, or is drawn, go along it as it is read: nothing is put on disk."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import box_slices
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.kernels import scans
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import SCANS
from spartan_ng.sources import in_order
from spartan_ng.sources.function import BoxFunction
from spartan_ng.sources.in_order import shaped_source
from spartan_ng.sources.source import read_box
from spartan_ng.worker.stages import scans as worker_scans
from tests.put_aside import put_aside
from tests.sampling import Some
from tests.test_programs import running_on

MEMORY = 1 << 18
VALUE = numpy.random.default_rng(0).random((300, 602))
LINE = VALUE.reshape(-1)
CHUNKS = [None, (300, 6), (3, 602), (60, 60)]

PLANES: dict[str, Any] = {
    "largest down": lambda m, x: m.cumsum(x, axis=0).max(),
    "sums down": lambda m, x: m.cumsum(x, axis=0).sum(axis=0),
    "sums across": lambda m, x: m.cumsum(x, axis=0).sum(axis=1),
    "ends": lambda m, x: m.cumsum(x, axis=1).max(axis=0),
    "deviations": lambda m, x: m.cumsum(x, axis=1).std(axis=0),
    "extremes": lambda m, x: m.maximum.accumulate(x, axis=0).mean(axis=1),
    "products": lambda m, x: m.cumprod(x + 0.5, axis=1).min(axis=1),
    "weighted": lambda m, x: (m.cumsum(x * x.mean(axis=0), axis=0) * x).sum(axis=0),
    "last row": lambda m, x: m.cumsum(x, axis=0)[-1],
    "some rows": lambda m, x: m.cumsum(x, axis=0)[200:240].max(axis=1),
    "flat": lambda m, x: m.cumsum(x * 2).std(),
    "reshaped": lambda m, x: m.cumsum(x.reshape(-1, 7), axis=0).max(axis=0),
}
LINES: dict[str, Any] = {
    "largest": lambda m, x: m.cumsum(x).max(),
    "deviation": lambda m, x: m.cumsum(x).std(),
    "of a part": lambda m, x: m.cumsum(x)[77:50_000].std(),
    "last": lambda m, x: m.cumprod(x + 0.4)[-1],
    "least so far": lambda m, x: (m.minimum.accumulate(x) * 2).sum(),
    "differences": lambda m, x: m.diff(m.cumsum(x)).max(),
}


def given(value: Any, chunks: Any = None) -> Any:
    return np.from_function(lambda box: value[box_slices(box)], value.shape, value.dtype, chunks=chunks)


def places(workers: int, memory: int = MEMORY) -> Any:
    profile = Profile(memory_bytes=memory, limited=True)
    return running_on(SimulatedBackend(workers, profile)) if workers else nullcontext()


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("name", PLANES)
def test_parts_are_cut_alike(name: str, kernels: str, monkeypatch: pytest.MonkeyPatch, some: Some) -> None:
    """The last one, which is shorter, had other pieces: what these came to was put over what others had."""
    monkeypatch.setattr(scans, "SCAN_PIECE", 500)
    monkeypatch.setattr(worker_scans, "_FOLDED", 700)
    for workers, chunks in some([(w, c) for w in (0, 3) for c in [*CHUNKS, (70, 70), (11, 602)]], 4):
        with places(workers), config.override(memory_bytes=4 * MEMORY, kernels=kernels):
            found, wanted = PLANES[name](np, given(VALUE, chunks)), PLANES[name](numpy, VALUE)
            numpy.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=f"{workers} {chunks}")


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_planes(workers: int, kernels: str, some: Some) -> None:
    with places(workers), config.override(memory_bytes=MEMORY, kernels=kernels), put_aside() as aside:
        for name, program in some(PLANES.items(), 6):
            for chunks in CHUNKS:
                if name in ("flat", "reshaped") and chunks and chunks[0] > 3:
                    continue  # rows of such chunks are more than memory keeps
                found, wanted = program(np, given(VALUE, chunks)), program(numpy, VALUE)
                numpy.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=f"{name} {chunks}")
                assert not aside, (name, chunks, aside)


FOLDED: dict[str, Any] = {
    "deviations": lambda x: x.std(axis=1),
    "means": lambda x: (x * 2).mean(axis=1) + 1,
    "both": lambda x: x.max(axis=1) - x.min(axis=1),
    "all": lambda x: x.var(),
}


@pytest.mark.parametrize("name", FOLDED)
@pytest.mark.parametrize("workers", [0, 2])
def test_folds_of_short_lines_are_made_as_the_scan_comes(name: str, workers: int) -> None:
    """What is made of them was computed in one pass with them, of a scan that was stored for that."""
    tall = VALUE.reshape(-1, 14)
    with places(workers), config.override(memory_bytes=MEMORY), put_aside() as aside:
        for axis in (0, 1):
            found, wanted = (
                FOLDED[name](m.cumsum(x, axis=axis)) for m, x in ((np, given(tall)), (numpy, tall))
            )
            numpy.testing.assert_allclose(found, wanted, rtol=1e-8)
        assert max(aside, default=0) < tall.nbytes // 10, aside  # results


@pytest.mark.parametrize("shape", [(40_000, 9), (600, 600), (5, 70_000)])
def test_rows_are_read_where_columns_take_no_less(shape: tuple[int, int]) -> None:
    """Rounding had some columns be less, which were written one by one."""
    with config.override(memory_bytes=MEMORY):
        x = np.from_function(lambda box: numpy.zeros([hi - lo for lo, hi in box]), shape, float)
        wide = shape[1] * 8 > MEMORY // 36
        assert f"indices of dimension {int(wide)} at a time" in str(
            np.explain(np.cumsum(x, axis=0).max(axis=1))
        )


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_lines(workers: int, kernels: str) -> None:
    with places(workers), config.override(memory_bytes=MEMORY, kernels=kernels), put_aside() as aside:
        for name, program in LINES.items():
            found, wanted = program(np, given(LINE)), program(numpy, LINE)
            numpy.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=name)
            if name != "differences":  # which read the sums twice
                assert not aside, (name, aside)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["random", "normal"])
def test_what_is_drawn(method: str, workers: int) -> None:
    with places(workers), config.override(memory_bytes=MEMORY), put_aside() as aside:
        for axis in (0, 1, None):
            ours, theirs = (
                numpy.asarray(
                    m.cumsum(getattr(m.random.default_rng(0), method)(size=VALUE.shape), axis).max(0)
                )
                for m in (np, numpy)
            )
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-9)
            assert not aside, (axis, aside)


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
@pytest.mark.parametrize("workers", [0, 2])
def test_sums_go_to_files_as_they_come(suffix: str, workers: int, tmp_path: Path) -> None:
    backend = SimulatedBackend(workers, Profile(memory_bytes=MEMORY, limited=True)) if workers else None
    if backend is not None:
        backend.is_local = True  # type: ignore[attr-defined]
    with (
        nullcontext() if backend is None else running_on(backend),
        config.override(memory_bytes=MEMORY, small_bytes=0),
        put_aside() as aside,
    ):
        for value, axis, chunks in ((VALUE, 0, (40, 300)), (VALUE, 1, (40, 300)), (LINE, 0, (5000,))):
            file, sums = tmp_path / f"y.{suffix}", np.cumsum(given(value), axis=axis)
            np.save(file, sums) if suffix == "npy" else np.to_zarr(sums, file, chunks=chunks)
            assert not aside, (axis, aside)
            found = np.load(file)
            numpy.testing.assert_allclose(found, numpy.cumsum(value, axis=axis), rtol=1e-12)
            aside.clear()


def test_peaks_are_projected() -> None:
    with config.override(memory_bytes=MEMORY):
        for value, axis in ((VALUE, 0), (VALUE, 1), (LINE, 0)):
            found = np.explain(np.cumsum(given(value), axis=axis).max(axis=axis))
            assert found.disk_bytes == 0
            assert "indices of dimension" in str(found)


def test_last_bits_are_kept_along_lines() -> None:
    """Where they are, lines are scanned whole, as NumPy does it, some of them at a time."""
    with config.override(memory_bytes=MEMORY, reproducible=True), put_aside() as aside:
        for axis in (0, 1):
            for other in (0, 1):
                found = np.cumsum(given(VALUE), axis=axis).max(axis=other)
                numpy.testing.assert_array_equal(found, VALUE.cumsum(axis).max(other))
    assert not aside


KEYS = [
    (-1,),
    (0,),
    (7,),
    (slice(5, 9),),
    (slice(0, 77),),
    (slice(3, 100, 7), slice(2, 200, 3)),
    (slice(300, 100, -1),),
    (slice(4, 300), 5),
    (slice(7, 8), slice(None, None, -1)),
    (slice(4, 4),),
]


@pytest.mark.parametrize("name", sorted(SCANS))
def test_parts_of_scans_are_those_of_what_is_up_to_their_end(name: str, some: Some) -> None:
    for dtype in ("f8", "i4", "?", "u1"):
        value = numpy.random.default_rng(3).integers(-3, 4, (40, 300)).astype(dtype)
        try:
            wanted = getattr(numpy, name).accumulate(value, axis=0)
        except TypeError:
            continue
        with numpy.errstate(all="ignore"), config.override(small_bytes=0):
            for key in some(KEYS, 4):
                found = getattr(np, name).accumulate(given(value), axis=0)[key]
                assert found.dtype == wanted.dtype
                numpy.testing.assert_allclose(found, wanted[key], rtol=1e-12, err_msg=f"{dtype} {key}")


def test_what_is_behind_a_part_is_not_read() -> None:
    asked: list[int] = []

    def read(box: Any) -> Any:
        asked.append(box[0][1])
        return VALUE[box_slices(box)]

    with config.override(memory_bytes=MEMORY):
        x = np.from_function(read, VALUE.shape, VALUE.dtype)
        numpy.testing.assert_allclose(np.cumsum(x, axis=0)[100:200].max(), VALUE[:200].cumsum(0).max())
    assert max(asked) == 200


@pytest.mark.parametrize("workers", [0, 2])
def test_no_other_shape_is_read_over_and_over(workers: int) -> None:
    """Bands of a few columns read all of it each."""
    boxes: list[int] = []

    def read(box: Any) -> Any:
        boxes.append(box[0][1] - box[0][0])
        return LINE[box_slices(box)]

    with places(workers), config.override(memory_bytes=MEMORY, small_bytes=0):
        for columns in (14, 602, 12_900):
            x = np.from_function(read, LINE.shape, float).reshape(-1, columns)
            for program in (lambda x: x.sum(axis=0), lambda x: x.max(axis=1), lambda x: x[:, 5] * 2):
                boxes.clear()
                numpy.testing.assert_allclose(program(x), program(LINE.reshape(-1, columns)), rtol=1e-9)
                assert sum(boxes) <= 2 * LINE.size
                assert 8 * max(boxes) <= max(MEMORY // 4, 2 * 8 * columns)


def test_what_is_read_best_of_another_shape() -> None:
    """Whole rows, and of one line no more than of its chunks."""
    for before, chunks, after, wanted in (
        ((6000,), (1,), (60, 100), (5, 100)),
        ((60, 100), (1, 1), (6000,), (512,)),
        ((60, 100), (7, 100), (6000,), (700,)),
        ((60, 100), (1, 100), (3, 2, 1000), (1, 1, 1000)),
    ):
        of = BoxFunction(_of(LINE), before, LINE.dtype, chunks)
        source = shaped_source(of, after)
        assert source is not None
        assert source.chunks == wanted


@pytest.mark.parametrize("run_bytes", [1, 100])
def test_boxes_of_another_shape(run_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_order, "_RUN_BYTES", run_bytes)
    rng = numpy.random.default_rng(4)
    for before, after in [((6, 35), (210,)), ((210,), (7, 5, 6)), ((5, 6, 7), (2, 105)), ((4, 9), (6, 6))]:
        value = numpy.arange(numpy.prod(before)).reshape(before)
        of = BoxFunction(_of(value), before, value.dtype, (2,) * len(before))
        source = shaped_source(of, after)
        assert source is not None
        for _ in range(40):
            ends = [sorted(rng.choice(n + 1, 2, replace=False).tolist()) for n in after]
            box = tuple((lo, hi) for lo, hi in ends)
            numpy.testing.assert_array_equal(read_box(source, box), value.reshape(after)[box_slices(box)])


def _of(value: Any) -> Any:
    return UserFunction(lambda box: value[box_slices(box)], "here")
