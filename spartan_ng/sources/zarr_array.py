"""Arrays in zarr stores, formats 2 and 3.

A local store is many files. It is another one when its description has changed, and what was read of it is
not what was opened when a chunk has been written since, or was removed: then its folder has been written to.
Kept is only when the newest of them was written, not what each of them was. Of a store at a URL its server is
asked about the description. A store may also be an archive (`.zip`), which is one file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Hashable
from contextlib import suppress
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.memory import threads
from spartan_ng.sources.files import (
    COARSE_NS,
    Path,
    absolute,
    as_zarr_takes,
    is_there,
    is_url,
    open_file,
    signs,
    tells_of_writes,
)
from spartan_ng.sources.servers import patient
from spartan_ng.sources.source import OpenedSource, Source, note_loop

_HEADS = "zarr.json", ".zarray"
"""The descriptions of arrays, in either format."""
STORE_HEADS = (*_HEADS, ".zgroup")
"""What a store has one of: the description of an array or of a group."""
_BESIDE = 3
"""Of a chunk zarr has so many at a time besides what it gives of it: packed, unpacked, and put together."""
_TOGETHER_BYTES = 1 << 21
"""Of a local store chunks of so many bytes are read together, and no more than keep all cores busy where two
read ahead: zarr puts what it unpacks side by side together one after the other, on one thread for all."""
_LOOKED_AT = 4096
"""Files of a store whose times are asked for when it is opened: clocks of other machines may be ahead."""


class ZarrArray(OpenedSource):
    """An array in a zarr store.

    Parameters
    ----------
    url : the store: a folder, or a URL that fsspec knows
    name : the array's path in its group; empty for a store that is one array
    options : of the file system, `storage_options` of zarr
    """

    waits_for_loop = True

    def __init__(self, url: Path, name: str = "", options: dict[str, Any] | None = None) -> None:
        self.url, self.name = absolute(url), name
        self.options = patient(self.url, options)
        place = os.path.join(self.url, name)
        self._folder = place if not is_url(place) and os.path.isdir(place) else None
        self._heads = [self.url] if is_archive(self.url) else [f"{place.rstrip('/')}/{h}" for h in _HEADS]
        if self._folder is None:  # nobody is asked about what is not there
            self._heads = [head for head in self._heads if signs(head, options) is not None]
        self._written_ns, self._has_seen_all = _newest(self._folder)
        self._newest_ns = max(time.time_ns(), self._written_ns)
        self._signs = self._signs_now()
        array = self.opened
        note_loop()
        self.shape = tuple(array.shape)
        if array.dtype.hasobject:
            raise TypeError(
                f"{self}: elements of dtype {array.dtype} are objects, which no source can have: have "
                "zarr read them, numpy.array(zarr.open_array(...)[...].tolist()), or write texts of one width"
            )
        self.dtype = np.dtype(array.dtype)
        self._chunks, self._packed = tuple(array.shards or array.chunks), tuple(array.chunks)
        self.beside_bytes = _BESIDE * prod(self._packed) * self.dtype.itemsize
        self.whole_bytes = prod(map(min, self._packed, self.shape)) * self.dtype.itemsize
        if self._folder is not None:
            self.most_together = max(_TOGETHER_BYTES, threads() // 2 * self.whole_bytes)

    @property
    def chunks(self) -> tuple[int, ...]:
        """What is stored as one object: a chunk, or a shard of them."""
        return self._chunks

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Zarr's own answer, of chunks that are cut in pieces; it reads and unpacks chunks side by side. One
        element is a scalar there, which forgets its width and the order of its bytes."""

        def chunks(whole: Box) -> np.ndarray[Any, Any]:
            return np.asarray(self.opened[box_slices(whole)], self.dtype)

        return self.by_chunks(self._packed).read(box, chunks)

    def likeness(self) -> Hashable:
        """Its place, and what its description was."""
        every = [tells_of_writes(self.url, said) for said in self._signs if said is not None]
        is_known = self._has_seen_all and bool(every) and all(every)
        return (self.url, self.name, str(self.options), *self._signs) if is_known else None

    def goes_on(self, before: Source) -> bool:
        """Whether no chunk was written meanwhile."""
        return isinstance(before, ZarrArray) and self._written_ns <= before._newest_ns - COARSE_NS

    def is_current(self) -> bool:
        """Whether the store's description is the one that was read."""
        return self._signs_now() == self._signs

    def has_changed(self, box: Box) -> bool:
        """Whether another store is there by now, or a chunk of the box has been written or removed since."""
        if self._folder is None:
            return not self.is_current()
        spans = [range(lo // c, (hi - 1) // c + 1) for (lo, hi), c in zip(box, self._chunks, strict=True)]
        key = self.opened.metadata.encode_chunk_key
        places = (os.path.join(self._folder, key(chunk)) for chunk in product(*spans))
        written = any(_written_ns(place, self._folder) > self._newest_ns for place in places)
        return written or not self.is_current()

    def _signs_now(self) -> list[tuple[Any, ...] | None]:
        """Of what says what a store is, in either format; of an archive, its own."""
        return [signs(head, self.options) for head in self._heads]

    def open(self) -> Any:
        """Zarr's array; SourceError where there is a group, whose arrays it names."""
        zarr = needed("zarr", "zarr")
        store: Any = as_zarr_takes(self.url)
        where: dict[str, Any] = {"mode": "r"}
        if is_archive(self.url):
            store = _archive(self.url, self.options)
        elif is_url(self.url):
            where["storage_options"] = self.options
        if self.name:
            where["path"] = self.name
        try:
            return zarr.open_array(store, **where)
        except (ValueError, TypeError, KeyError, OSError) as error:
            inside = self._arrays(store, where)
            if not inside:
                raise
            raise SourceError(
                f"{self} is a group with the arrays {', '.join(inside)}; name one of them"
            ) from error

    def _arrays(self, store: Any, where: dict[str, Any]) -> list[str]:
        """Of a group the arrays; none where there is no group."""
        zarr = needed("zarr", "zarr")
        with suppress(ValueError, TypeError, KeyError, OSError):
            members = zarr.open_group(store, **where).members(max_depth=None)
            return [name for name, member in members if isinstance(member, zarr.Array)]
        return []

    def __str__(self) -> str:
        return f"{self.url}/{self.name}" if self.name else self.url


def is_archive(url: str) -> bool:
    """Whether a store of that name is one file."""
    return url.lower().endswith(".zip")


def is_store(archive: str, options: dict[str, Any] | None) -> bool:
    """Whether an archive of that name is there, and has a store."""
    from zipfile import BadZipFile, ZipFile  # few programs read such a file

    if not is_there(archive, options):
        return False
    with suppress(BadZipFile), open_file(archive, options) as file, ZipFile(file) as members:
        return not {*STORE_HEADS}.isdisjoint(members.namelist())
    return False


def _archive(url: str, options: dict[str, Any] | None) -> Any:
    """The store that an archive is."""
    zarr: Any = needed("zarr", "zarr")
    if not is_url(url):
        return zarr.storage.ZipStore(url, mode="r")
    files = needed("fsspec.implementations.zip", "remote").ZipFileSystem(open_file(url, options))
    wrapped = needed("fsspec.implementations.asyn_wrapper", "remote").AsyncFileSystemWrapper(
        files, asynchronous=True
    )
    return zarr.storage.FsspecStore(wrapped, read_only=True, path="")


def _newest(folder: str | None) -> tuple[int, bool]:
    """When the newest of some files of a folder was written, and whether these are all."""
    every = (
        os.path.join(where, name)
        for where, folders, names in os.walk(folder or os.devnull)
        for name in (*folders, *names)
    )
    some = list(islice(every, _LOOKED_AT))
    return max((_written_ns(path, path) for path in some), default=0), next(every, None) is None


def _written_ns(path: str, above: str) -> int:
    """When a file was written; of one that is not there, the folder that it would be in."""
    while True:
        try:
            return os.stat(path).st_mtime_ns
        except OSError:
            if path == above or not path:
                return 0
            path = os.path.dirname(path)
