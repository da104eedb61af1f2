"""Arrays in zarr stores, formats 2 and 3."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.extras import needed
from spartan_ng.sources.files import Path, absolute
from spartan_ng.sources.source import OpenedSource, checked_dtype, note_loop


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
        self.url, self.name, self.options = absolute(url), name, options
        array = self.opened
        note_loop()
        self.shape = tuple(array.shape)
        self.dtype = checked_dtype(array.dtype, str(self))
        self._chunks = tuple(array.shards or array.chunks)

    @property
    def chunks(self) -> tuple[int, ...]:
        """What is stored as one object: a chunk, or a shard of them."""
        return self._chunks

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Zarr's own answer; it reads and unpacks chunks side by side."""
        return np.asarray(self.opened[box_slices(box)])

    def open(self) -> Any:
        """Zarr's array."""
        where = {"path": self.name} if self.name else {}
        return needed("zarr", "zarr").open_array(self.url, mode="r", storage_options=self.options, **where)

    def __str__(self) -> str:
        return f"{self.url}/{self.name}" if self.name else self.url
