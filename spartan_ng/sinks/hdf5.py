"""A dataset of an HDF5 file that lies in one piece: the library writes what is around it, and workers the
elements, of which it then asks nothing.

What else the file has is copied first, so that a write that is interrupted leaves the old file.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Any

import numpy as np

from spartan_ng.extras import needed
from spartan_ng.sinks.attributes import Noted
from spartan_ng.sinks.raw import RawFile
from spartan_ng.sinks.taken import check_unchanged, holds_more, is_filled
from spartan_ng.sources.files import signs

_NUMBERS = frozenset("?bBhHiIlLqQefdFD")
"""Dtypes, by their letters, whose elements lie in the library's files as in memory."""


class Hdf5File(RawFile):
    """A dataset, and around it what the file has besides.

    Parameters
    ----------
    path : the file whose place it takes at the end
    name : the dataset's, as `checked_dataset` gives it
    shape, dtype : the array's, which has elements
    """

    def __init__(self, path: str, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.name = name
        super().__init__(path, shape, dtype)

    def begin(self) -> int:
        """A file whose dataset has its place, and nothing in it."""
        h5py = needed("h5py", "hdf5")
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        self._before = signs(self.path)
        with file_to_fill(self.temporary, self.path, self.name) as file:
            dataset = file.create_dataset(self.name, self.shape, self.dtype, dcpl=early)
            return int(dataset.id.get_offset())

    def finish(self) -> None:
        """Rename it, unless others have written to the file since its contents were copied."""
        check_unchanged("to_hdf5", self.path, self._before)
        super().finish()


def kept_beside(path: str, name: str) -> int:
    """What is copied of a file beside which a dataset of that name is written."""
    return os.path.getsize(path) if holds_more(path, name) else 0


@contextmanager
def file_to_fill(temporary: str, path: str, name: str) -> Iterator[Any]:
    """The library's file with all that the one at `path` has, but nothing under the name; what was noted at
    the dataset of that name is noted at the new one."""
    h5py = needed("h5py", "hdf5")
    keeps = holds_more(path, name)
    noted: Noted | None = None
    if keeps:
        with h5py.File(path, "r"):  # who writes to it would have its lock
            shutil.copyfile(path, temporary)
    elif is_filled(path):
        with h5py.File(path, "r") as old:
            noted = Noted(old, name)
    with open(temporary, "r+b", buffering=0) as opened:
        disk = _Disk(opened)
        try:
            with h5py.File(disk, "r+" if keeps else "w") as file:
                noted = noted or Noted(file, name)
                link = file.get(name, getlink=True)
                if isinstance(link, h5py.HardLink):
                    noted.let_go(file[name])
                if link is not None:  # other links may lead nowhere from here
                    del file[name]
                yield file
                noted.put(file[name])
        except Exception as error:
            raise disk.error or error from error
        if disk.error is not None:
            raise disk.error


class _Disk:
    """A file as h5py asks for it, which takes all that it is given, and keeps the error of a disk that does
    not: the library cannot close what it cannot write, and ends the process."""

    def __init__(self, file: FileIO) -> None:
        self._file = file
        self.error: OSError | None = None
        self.read, self.readinto, self.seek, self.tell = file.read, file.readinto, file.seek, file.tell

    def write(self, data: Any) -> int:
        """All of the data."""
        left = memoryview(data).cast("B")
        self._tried(lambda part: self._file.write(part) or 0, left)
        return len(left)

    def truncate(self, size: int) -> int:
        """Make the file so long."""
        self._tried(lambda _: self._file.truncate(size))
        return size

    def flush(self) -> None:
        """Nothing: what is written is not kept here."""

    def _tried(self, do: Callable[[Any], int], left: Any = b"") -> None:
        try:
            while self.error is None:
                left = left[do(left) :]
                if not left:
                    return
        except OSError as error:
            self.error = error


def lies_as_in_memory(dtype: np.dtype[Any]) -> bool:
    """Whether workers can write elements of a dtype."""
    return dtype.char in _NUMBERS and dtype.isnative
