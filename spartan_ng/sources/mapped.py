"""Elements that lie one after the other in a local file: `.npy`, members of `.npz`, raw binary.

Such a file is mapped: the kernel reads it as it is used, and lets go of what it needs the memory for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from io import BytesIO
from math import prod
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from spartan_ng.arrays import Box, box_slices
from spartan_ng.arrays.copying import private_copy
from spartan_ng.errors import SourceError
from spartan_ng.scratch import copy_fits, read_from
from spartan_ng.sources.files import file_identity
from spartan_ng.sources.source import Source, checked_dtype
from spartan_ng.system import faults
from spartan_ng.system.mapping import Mapping, spoiled

if TYPE_CHECKING:
    import zipfile

_LOCAL_HEADER = 30
"""Bytes of a ZIP file's header before a member, without its name and extra field, whose lengths are the last
four of them."""
_PAGES_BYTES = 1 << 16
"""What the kernel maps, and reads at least, where one byte is used."""
_COPIES = 2
"""What NumPy makes at most of elements that it does not take as they lie."""


class FileShortened(SourceError):
    """What is raised in a thread that was reading a file when that became shorter."""

    def __init__(self, *said: str) -> None:
        names = sorted({str(watch) for watch in spoiled()})
        super().__init__(*(said or (f"{' or '.join(names) or 'a file'} has changed since it was opened",)))


faults.raises(FileShortened)


class MappedFile(Source):
    """A part of a file that holds an array's elements.

    Parameters
    ----------
    path : the file; every worker opens it under this name
    shape, dtype : the array's
    offset : bytes before the first element
    order : "C" or "F"
    """

    def __init__(
        self, path: str, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0, order: str = "C"
    ) -> None:
        self.path = os.path.abspath(path)
        self.shape, self.dtype = shape, checked_dtype(dtype, path)
        self.offset, self.order = offset, order
        self._identity = file_identity(self.path)
        missing = offset + prod(shape) * self.dtype.itemsize - os.path.getsize(self.path)
        if missing > 0:
            raise SourceError(f"{path}: {self.dtype} {shape} needs {missing:,} bytes more than the file has")

    @property
    def chunks(self) -> tuple[int, ...]:
        """As many elements, one after the other in the file, as the pages have that come together."""
        left, sizes = max(1, _PAGES_BYTES // max(self.dtype.itemsize, 1)), []
        for n in reversed(self.shape) if self.order == "C" else self.shape:
            sizes.append(max(1, min(n, left)))
            left //= max(n, 1)
        return tuple(reversed(sizes) if self.order == "C" else sizes)

    def reshaped(self, shape: tuple[int, ...]) -> MappedFile | None:
        """The same part of the file, if its elements lie in C order."""
        if self.order != "C":
            return None
        found = copy(self)
        found.shape = shape
        found.__dict__.pop("_held", None)
        return found

    def hold(self) -> None:
        """Keep the map, which outlives the file's name, and takes no descriptor; nothing where the system
        gives no more maps."""
        size = prod(self.shape) * self.dtype.itemsize
        with suppress(OSError):
            if size and file_identity(self.path) == self._identity:
                self._held = self._map()

    @property
    def is_held(self) -> bool:
        """Whether the map is kept."""
        return self.__dict__.get("_held") is not None

    def _map(self) -> np.ndarray[Any, Any]:
        end = self.offset + prod(self.shape) * self.dtype.itemsize
        with open(self.path, "rb") as file:
            of_file = Mapping(file.fileno(), end, writable=False, of_file=True, watch=copy(self))
        order: Any = self.order
        return of_file.array(end)[self.offset :].view(self.dtype).reshape(self.shape, order=order)

    def is_current(self) -> bool:
        """Whether the file is the one that was opened."""
        try:
            return file_identity(self.path) == self._identity
        except OSError:
            return False

    def mapped(self) -> np.ndarray[Any, Any]:
        """The elements; SourceError where the file is another one by now and the map was not kept, or has
        been written to."""
        held: Any = self.__dict__.get("_held")
        if held is not None and not self.is_written_to():
            return held  # type: ignore[no-any-return]
        try:
            same = file_identity(self.path) == self._identity
        except OSError as error:
            import socket  # it takes 10 ms to import, and few programs get here

            raise SourceError(
                f"{self.path} cannot be read on {socket.gethostname()}: {error.strerror}; workers open files "
                "under the name that the program gives"
            ) from error
        if not same:
            raise SourceError(f"{self.path} has changed since it was opened")
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return self._map()

    def is_written_to(self) -> bool:
        """Whether the file has changed: if it is shorter now, whoever reads its map ends the process.

        A map outlives its file's name, and keeps what it had where another file has that name by now.
        """
        try:
            now = file_identity(self.path)
        except OSError:
            return False
        return now[0] == self._identity[0] and now != self._identity

    def is_spoiled(self) -> bool:
        """Whether somebody here has read of the file's maps what was no longer there."""
        return any(w.path == self.path and w._identity == self._identity for w in spoiled())

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """A view of the map."""
        return self.mapped()[box_slices(box)]

    def __str__(self) -> str:
        return self.path


class CopiedFile(MappedFile):
    """A part of a file whose elements do not lie at multiples of their alignment: its boxes are copied.

    NumPy and BLAS take such elements as they lie only where they go over them once; else they copy whatever
    they are given, as a whole.
    """

    def mapped(self) -> None:  # type: ignore[override]
        """Nobody is given the whole."""
        return

    def has_changed(self, box: Box) -> bool:
        """Whether the file has been written to, or is another one and the map was not kept."""
        is_gone = self.is_written_to() if self.is_held else not self.is_current()
        return self.is_spoiled() or is_gone

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """A copy of a part of the map."""
        return private_copy(super().mapped()[box_slices(box)])


def in_pieces(source: MappedFile) -> MappedFile:
    """The same part of a file, of which nobody copies more than memory has room for."""
    nbytes = prod(source.shape) * source.dtype.itemsize
    if source.offset % source.dtype.alignment == 0 or copy_fits(_COPIES * nbytes):
        return source
    found = CopiedFile(source.path, source.shape, source.dtype, source.offset, source.order)
    found.hold()  # as the map of what is aligned is
    return found


def npy_file(path: str) -> MappedFile:
    """A `.npy` file; ValueError where it is none, or holds objects."""
    with open(path, "rb") as file:
        shape, order, dtype = npy_header(file)
        return MappedFile(path, shape, dtype, file.tell(), order)


@contextmanager
def cut_header_said() -> Iterator[None]:
    """ValueError for the header of a `.npy` file that NumPy's parser of old headers runs off the end of."""
    try:
        yield
    except Exception as error:
        from tokenize import TokenError  # few files are damaged

        if not isinstance(error, TokenError):
            raise
        raise ValueError(f"Cannot parse header: {error.args[0]}") from error


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], str, np.dtype[Any]]:
    """Shape, order and dtype of a `.npy` file that is read up to its first element."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    with cut_header_said():
        shape, is_fortran, dtype = read(_with_escapes(file) if version == (3, 0) else file)
    if any(n < 0 for n in shape):
        raise ValueError(f"the header of the file says that its shape is {shape}")
    return shape, "F" if is_fortran else "C", dtype


def _with_escapes(file: IO[bytes]) -> IO[bytes]:
    """A header of version 3.0, which has names in UTF-8, as one of version 2.0, whose escapes of Python's say
    the same: NumPy's function for that one takes it for Latin-1."""
    length = file.read(4)
    text = file.read(int.from_bytes(length, "little")).decode("utf-8").encode("ascii", "backslashreplace")
    return BytesIO(len(text).to_bytes(4, "little") + text)


def unpacked_member(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any] | None:
    """An array of a `.npz` file, on disk; None where memory has room, and for what NumPy has to read."""
    with archive.open(name) as file:
        shape, order, dtype = npy_header(file)
        if dtype.hasobject or copy_fits(prod(shape) * dtype.itemsize):
            return None
        return read_from(file, shape[::-1], dtype).T if order == "F" else read_from(file, shape, dtype)


def npz_member(path: str, name: str) -> MappedFile | None:
    """An array of a `.npz` file by its name; None where it is compressed."""
    import zipfile  # few programs have such a file

    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        member = archive.getinfo(name + ".npy")
        if member.compress_type != zipfile.ZIP_STORED:
            return None
        # The directory at the end of an archive does not say where a member's bytes begin: its extra field
        # there may be another.
        file.seek(member.header_offset + _LOCAL_HEADER - 4)
        lengths = np.frombuffer(file.read(4), "<u2")
        file.seek(int(lengths.sum()), os.SEEK_CUR)
        shape, order, dtype = npy_header(file)
        return MappedFile(path, shape, dtype, file.tell(), order)
