"""Datasets of HDF5 files.

The library serves one thread at a time, and has a lock for it. Datasets that lie in one piece, as they are,
need it for nothing but where they begin: they are mapped.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.sources.files import Path, absolute, is_url, open_file, signs, tells_of_writes
from spartan_ng.sources.kept import one_go_bytes
from spartan_ng.sources.mapped import MappedFile
from spartan_ng.sources.remote import RemoteFile
from spartan_ng.sources.servers import patient
from spartan_ng.sources.source import OpenedSource, Serial, Source, part_in_order, said_of

_BESIDE = 2
"""Of a packed chunk the library has two at a time besides what it gives of it: one packed, or in the place
where it is put together, and one unpacked."""
_PART_BYTES = 1 << 20
"""Of a file at a URL about so many bytes are read together."""
_TEXT_BYTES = 64
"""What Python has of each text besides its characters, and where it is."""


class Hdf5Dataset(OpenedSource):
    """A dataset that is stored in chunks, or packed.

    Parameters
    ----------
    path : the file, or a URL that fsspec knows
    name : the dataset's
    options : of the file system
    """

    def __init__(self, path: Path, name: str, options: dict[str, Any] | None = None) -> None:
        self.path, self.name = absolute(path), name
        self.options = patient(self.path, options)
        self._serial, self._lies_in = Serial(), self.path
        with self._dataset() as dataset:
            if not is_url(self.path):
                self._lies_in = dataset.file.filename
            self._signs = self._seen()
            self._describe(dataset)
        if is_url(self.path):
            self.beside_bytes += _remote_bytes()

    def _describe(self, dataset: Any) -> None:
        """Note what its elements are, and how they lie."""
        if dataset.dtype.hasobject:
            raise TypeError(
                f"{self}: elements of dtype {dataset.dtype} are objects, which no source can have: have h5py "
                f"read them, h5py.File({self.path!r})[{self.name!r}][...]"
            )
        dtype: np.dtype[Any] = dataset.dtype
        # Elements that are arrays have axes of their own, as in what the library gives.
        self._axes, self.dtype = dataset.ndim, dtype.base
        self.shape = (*dataset.shape, *dtype.shape)
        chunk = (*(dataset.chunks or dataset.shape), *dtype.shape)
        if dataset.chunks and dataset.id.get_create_plist().get_nfilters():
            self._chunks = chunk
            self.beside_bytes = _BESIDE * prod(chunk) * self.dtype.itemsize
            self.whole_bytes = prod(map(min, chunk, self.shape)) * self.dtype.itemsize
        else:  # nothing has to be unpacked
            self._chunks = part_in_order(chunk, self.dtype.itemsize)

    @property
    def chunks(self) -> tuple[int, ...]:
        """The dataset's, or parts of those that are large and not packed, as of what lies in one piece."""
        return self._chunks

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """What the library says, of chunks that are cut in pieces."""
        return self.by_chunks(self._chunks).read(box, self._whole)

    def _whole(self, box: Box) -> Any:
        with self._serial, self._dataset() as dataset:
            slices = box_slices(box)
            return dataset[slices[: self._axes]][(..., *slices[self._axes :])]

    @contextmanager
    def _dataset(self) -> Iterator[Any]:
        """The library's dataset. A local file is open no longer than it is read: the library lets a program
        write to none that it has open to read."""
        if is_url(self.path):
            yield self.opened
            return
        with said_of(self):
            file = needed("h5py", "hdf5").File(self.path, "r")
        with file:
            yield file[self.name]

    def likeness(self) -> Hashable:
        """Its place, and the state of the file and of where links lead."""
        is_known = all(tells_of_writes(self.path, signs) for signs in self._signs)
        return (self.path, self.name, str(self.options), *self._signs) if is_known else None

    def is_current(self) -> bool:
        """Whether the file, and the one where links lead, are those that were opened."""
        return self._seen() == self._signs

    def _seen(self) -> list[tuple[Any, ...] | None]:
        return [signs(path, self.options) for path in {self.path: 0, self._lies_in: 0}]

    def has_changed(self, box: Box) -> bool:
        """Whether the file has been written to, or another is there by now."""
        return not self.is_current()

    def open(self) -> Any:
        """Of a file at a URL the library's dataset, with which it stays open."""
        return needed("h5py", "hdf5").File(_remote(self.path, self.options), "r")[self.name]

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


class Hdf5Texts(Hdf5Dataset):
    """A dataset of texts as long as each is: elements of `U`, as wide as the longest of them, for which all
    are looked at once."""

    def _describe(self, dataset: Any) -> None:
        self.shape = tuple(dataset.shape)
        self._chunks = tuple(dataset.chunks or part_in_order(self.shape, _TEXT_BYTES))
        counts = [-(-n // c) for n, c in zip(self.shape, self._chunks, strict=True)]
        longest = 0
        for index in np.ndindex(*counts):
            part = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, self._chunks, strict=True))
            with said_of(self):
                texts = np.asarray(dataset.asstr()[part], object)
            longest = max(longest, *map(len, texts.flat))
        self.dtype = np.dtype(f"U{max(longest, 1)}")
        self.beside_bytes = prod(map(min, self._chunks, self.shape)) * (_TEXT_BYTES + 4 * longest)

    def _whole(self, box: Box) -> Any:
        with self._serial, self._dataset() as dataset:
            return np.asarray(dataset.asstr()[box_slices(box)], object).astype(self.dtype)


def _remote(url: Path, options: dict[str, Any] | None) -> Any:
    """A file at a URL, of which blocks are kept wherever they lie, since descriptions and chunks lie apart:
    what fsspec keeps of itself is what lies around the last read."""
    blocks = {"maxblocks": _remote_bytes() // _PART_BYTES}
    return open_file(url, options, block_size=_PART_BYTES, cache_type="blockcache", cache_options=blocks)


def _remote_bytes() -> int:
    """What is kept of a file at a URL, as it lies there."""
    return max(one_go_bytes(), 2 * _PART_BYTES)


def hdf5_dataset(path: Path, name: str | None = None, options: dict[str, Any] | None = None) -> Source:
    """The dataset `name`, or the only one, in whatever file links lead to; mapped where it lies in one piece,
    or, at a URL, by ranges of bytes.

    Raises
    ------
    KeyError : there is none of that name; ValueError : none was named, and there are several
    SourceError : it has no shape
    """
    h5py = needed("h5py", "hdf5")
    where = _remote(path, options) if is_url(path) else absolute(path)
    with said_of(path):
        opened_file = h5py.File(where, "r")
    with opened_file as file:
        if name is None:
            names: list[str] = []
            file.visititems(lambda n, item: names.append(n) if isinstance(item, h5py.Dataset) else None)
            if len(names) != 1:
                raise ValueError(f"{path} has the datasets {', '.join(names) or 'none'}; name one of them")
            (name,) = names
        if name not in file or not isinstance(file[name], h5py.Dataset):
            raise KeyError(f"{path} has no dataset {name!r}")
        dataset = file[name]
        if dataset.shape is None:
            raise SourceError(f"{path}: the dataset {name!r} has no shape, and no elements")
        text = h5py.check_string_dtype(dataset.dtype)
        if text is not None and text.length is None:
            return Hdf5Texts(path, name, options)
        offset = dataset.id.get_offset()
        if offset is not None and not dataset.external and dataset.dtype.kind in "biufcS":
            shape, dtype = tuple(dataset.shape), np.dtype(dataset.dtype.str)
            if dtype.itemsize == dataset.id.get_type().get_size() and dataset.dtype.kind != "b":
                if is_url(path):
                    return RemoteFile(os.fspath(path), shape, dtype, offset, options)
                return MappedFile(absolute(dataset.file.filename), shape, dtype, offset)
    return Hdf5Dataset(path, name, options)
