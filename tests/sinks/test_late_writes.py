"""Who does a part of another worker's may write still when all is over: nothing of it is seen, or left."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest
import zarr

from spartan_ng.sinks import Hdf5File, NpyFile, ParquetFolder, Sink, ZarrPart, ZarrStore
from spartan_ng.sinks.stores import array_place

SHAPE = (64, 8)
VALUE = numpy.arange(512.0).reshape(SHAPE)
F8 = VALUE.dtype


def _part(folder: Path) -> Sink:
    there = zarr.create_array(str(folder / "x.zarr"), shape=(70, 8), dtype=F8, chunks=(6, 8))
    return ZarrPart(there, str(folder / "x.zarr"), ((3, 67), (0, 8)))


def _store(folder: Path) -> Sink:
    return ZarrStore(array_place(str(folder / "x.zarr")), SHAPE, F8, (6, 8), {})


SINKS: dict[str, Callable[[Path], Sink]] = {
    "x.npy": lambda folder: NpyFile(str(folder / "x.npy"), SHAPE, F8, SHAPE),
    "x.h5": lambda folder: Hdf5File(str(folder / "x.h5"), "x", SHAPE, F8),
    "x.zarr": _store,
    "a part of x.zarr": _part,
    "tables": lambda folder: ParquetFolder(str(folder / "tables"), SHAPE, F8, list("abcdefgh"), {}),
}


def _boxes() -> list[tuple[tuple[int, int], ...]]:
    return [((lo, lo + 4), (0, 8)) for lo in range(0, 64, 4)]  # chunks of six are cut


def _write_all(sink: Any) -> None:
    for box in _boxes():
        sink.write(VALUE[slice(*box[0])], box)


@pytest.mark.parametrize("ends", ["finish", "give_up"])
@pytest.mark.parametrize("kind", SINKS)
def test_nothing_is_left_of_writes_that_come_late(kind: str, ends: str, tmp_path: Path) -> None:
    sink = SINKS[kind](tmp_path)
    _write_all(sink)
    is_over, written = threading.Event(), threading.Semaphore(0)

    def late() -> None:
        try:
            while not is_over.is_set():
                for box in _boxes():
                    sink.write(VALUE[slice(*box[0])], box)
                    written.release()
        except (OSError, ValueError):
            written.release(1000)  # as a task whose result nobody wants

    writers = [threading.Thread(target=late) for _ in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(40):
        written.acquire()
    getattr(sink, ends)()
    is_over.set()
    for writer in writers:
        writer.join()
    stays = ends == "finish" or "part" in kind
    assert os.listdir(tmp_path) == ([kind.rpartition(" ")[2]] if stays else [])
    if kind == "tables" and stays:
        assert all(n.startswith("rows-") and n.endswith(".parquet") for n in os.listdir(tmp_path / kind))
    if "zarr" in kind and stays:
        there = tmp_path / "x.zarr"
        assert not [n for n in os.listdir(there) if n.startswith(".")]
        whole = zarr.open_array(str(there), mode="r")[:]
        assert (whole[3:67] == VALUE).all() if "part" in kind else (whole == VALUE).all()


class _Held:
    """An array of zarr's that holds up who writes to it."""

    def __init__(self, array: Any) -> None:
        self.array, self.begun, self.goes_on = array, threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.array, name)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.begun.set()
        self.goes_on.wait()
        self.array[index] = value


@pytest.mark.parametrize("ends", ["finish", "give_up"])
def test_zarr_does_not_make_a_folder_again_that_is_over(ends: str, tmp_path: Path) -> None:
    sink: Any = _store(tmp_path)
    _write_all(sink)
    held = sink._array = _Held(sink._array)
    box = _boxes()[0]
    writer = threading.Thread(target=sink.write, args=(VALUE[:4], box))
    writer.start()
    held.begun.wait()
    ending = threading.Thread(target=getattr(sink, ends))
    ending.start()
    held.goes_on.set()
    writer.join()
    ending.join()
    assert os.listdir(tmp_path) == (["x.zarr"] if ends == "finish" else [])
    with pytest.raises(FileNotFoundError):
        sink.write(VALUE[:4], box)
    assert os.listdir(tmp_path) == (["x.zarr"] if ends == "finish" else [])


@pytest.mark.parametrize(("kind", "module"), [("x.zarr", "zarr_store"), ("tables", "parquet")])
def test_nothing_is_left_where_the_end_itself_fails(kind: str, module: str, tmp_path: Path) -> None:
    """A disk may take no more when pieces are put together; whoever gives up then has ended before."""
    sink = SINKS[kind](tmp_path)
    _write_all(sink)
    full = OSError(28, "No space left on device")
    with (
        mock.patch(f"spartan_ng.sinks.{module}.take_place", side_effect=full),
        pytest.raises(OSError, match="No space"),
    ):
        sink.finish()
    sink.give_up()
    assert os.listdir(tmp_path) == []
    sink.give_up()
