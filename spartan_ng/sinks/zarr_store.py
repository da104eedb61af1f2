"""A zarr store, or a part of an array in one, as a sink: a chunk is written by whoever makes it.

Blocks are whole chunks, but where workers' parts of the array meet inside of one: then each writes its part
of it, one after the other.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.extras import needed
from spartan_ng.memory import budget_bytes
from spartan_ng.sinks.folder import LOCK, FolderSink
from spartan_ng.sinks.places import take_place
from spartan_ng.sinks.stores import ArrayPlace
from spartan_ng.sources.files import as_zarr_takes
from spartan_ng.system.files import locked

CHUNK_BYTES = 1 << 23
"""A chunk is of about this size where nothing is said."""

SHARE = 64
"""It is no more than one part in so many of the memory: several are made and packed at a time."""


class ZarrBlocks(FolderSink):
    """What is written to an array of zarr's that a folder has."""

    shape: tuple[int, ...]
    start: tuple[int, ...]
    """Where in zarr's array the first element goes."""
    _array: Any

    def put(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Whole chunks at once; parts of chunks while nobody else writes to them."""
        there = tuple((lo + first, hi + first) for (lo, hi), first in zip(box, self.start, strict=True))
        array = self._opened()
        if _is_whole(there, _stored_as(array), array.shape):
            array[box_slices(there)] = block
            return
        with self._alone(there, _stored_as(array)):
            array[box_slices(there)] = block

    @contextmanager
    def _alone(self, box: Box, chunks: tuple[int, ...]) -> Iterator[None]:
        """Hold the locks of the chunks that a box meets, in their order."""
        spans = (range(lo // c, (hi - 1) // c + 1) for (lo, hi), c in zip(box, chunks, strict=True))
        with ExitStack() as held:
            for chunk in product(*spans):
                name = os.path.join(self.folder, LOCK + ".".join(map(str, chunk)))
                held.enter_context(locked(name))
            yield

    def end(self) -> None:
        """As of any folder, and leave no locks."""
        super().end()
        for name in os.listdir(self.folder) if os.path.isdir(self.folder) else ():
            if name.startswith(LOCK) and not name.startswith(f"{LOCK}writing-"):  # others' own
                os.unlink(os.path.join(self.folder, name))

    def _opened(self) -> Any:
        if self.__dict__.get("_array") is None:
            self._array = needed("zarr", "zarr").open_array(as_zarr_takes(self.folder), mode="r+")
        return self._array

    def __getstate__(self) -> dict[str, Any]:
        """All but the open array."""
        return {k: v for k, v in self.__dict__.items() if k != "_array"}


class ZarrStore(ZarrBlocks):
    """A store that is one array, or a member of a group.

    Parameters
    ----------
    place : of the folder whose place it takes at the end
    shape, dtype : the array's
    chunks : their shape; None for whole rows, as many as memory allows
    options : of `zarr.create_array`, as `compressors`
    """

    def __init__(
        self,
        place: ArrayPlace,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: tuple[int, ...] | None,
        options: dict[str, Any],
    ) -> None:
        self.goes, self.shape, self.start = place, shape, (0,) * len(shape)
        self.chunks = stored_chunks(shape, dtype) if chunks is None else chunks
        self.folder = place.folder_beside()
        made = {"chunks": self.chunks, "zarr_format": place.zarr_format, "overwrite": True, **options}
        made.update(place.noted(len(shape)))
        try:
            folder = as_zarr_takes(self.folder)
            self._array = needed("zarr", "zarr").create_array(folder, shape=shape, dtype=dtype, **made)
            self.begin()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @property
    def place(self) -> str:
        """The folder that it takes the place of."""
        return self.goes.path

    def finish(self) -> None:
        """Rename it; the folder that was there goes."""
        self.end()
        self.goes.take(lambda path: take_place(self.folder, path))

    def give_up(self) -> None:
        """Remove it."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class ZarrPart(ZarrBlocks):
    """A box of an array that is there: zarr's, opened for writing, in a folder of this machine.

    What an error or a kill leaves of it is partly written.
    """

    def __init__(self, array: Any, folder: str, box: Box) -> None:
        self._array, self.folder = array, folder
        self.shape = tuple(hi - lo for lo, hi in box)
        self.start = tuple(lo for lo, _ in box)
        self.chunks = _stored_as(array)
        self.begin()

    @property
    def place(self) -> str:
        """The folder of the array."""
        return self.folder

    def finish(self) -> None:
        """Remove the locks."""
        self.end()

    def give_up(self) -> None:
        """Remove the locks."""
        self.end()


def _stored_as(array: Any) -> tuple[int, ...]:
    """What is one object of a store: a chunk, or a shard of them."""
    return tuple(getattr(array, "shards", None) or array.chunks)


def _is_whole(box: Box, chunks: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(
        lo % c == 0 and (hi % c == 0 or hi == n) for (lo, hi), c, n in zip(box, chunks, shape, strict=True)
    )


def stored_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Chunks where nothing is said."""
    return chunks_for(shape, dtype, min(CHUNK_BYTES, budget_bytes() // SHARE))


def chunks_for(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> tuple[int, ...]:
    """Chunks of about so many bytes: whole rows, which workers' parts are mostly made of, or parts of a
    row."""
    chunks = [max(n, 1) for n in shape]
    for axis in range(len(shape)):
        rest = int(np.prod(chunks[axis + 1 :], dtype=object)) * max(dtype.itemsize, 1)
        chunks[axis] = min(chunks[axis], max(1, nbytes // rest))
        if chunks[axis] > 1:
            break
    return tuple(chunks)
