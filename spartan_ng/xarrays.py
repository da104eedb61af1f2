"""xarray's door for arrays that are worked on in parts: with it, `chunks=` gives arrays of this package.

`xr.open_dataset(path, chunks={}, chunked_array_type="spartan_ng")` reads nothing: data are read where they
are worked on, as from any source. Chunks say how to read, and nothing else: how arrays are cut is the
optimizer's to choose, for each program anew. So an array of ours has no `chunks`, and xarray treats it as it
does NumPy's: `apply_ufunc` gives functions the whole, and refuses arrays with chunks unless told `dask=`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

from spartan_ng.api.core.handle import Handle
from spartan_ng.api.files.sources import from_source
from spartan_ng.api.ndarray.array import compute, ndarray

Chunks = tuple[tuple[int, ...], ...]
"""The lengths of the parts along each axis."""


class ChunkManager(ChunkManagerEntrypoint[Any]):  # type: ignore[misc]  # mypy does not follow xarray
    """What xarray asks of who works on arrays in parts."""

    def __init__(self) -> None:
        self.array_cls = ndarray

    def is_chunked_array(self, data: Any) -> bool:
        """Whether it is an array of this package: `isinstance` says so of NumPy's, too."""
        return isinstance(data, Handle)

    def chunks(self, data: Any) -> Chunks:
        """One part an axis: who asks may have the whole."""
        return tuple((n,) for n in data.shape)

    def normalize_chunks(
        self,
        chunks: Any,
        shape: Sequence[int] | None = None,
        limit: int | None = None,
        dtype: Any = None,
        previous_chunks: Any = None,
    ) -> Chunks:
        """The lengths of parts along each axis of `shape`: `chunks` as dask takes them.

        Where these leave it open ("auto", None), what is stored in chunks (`previous_chunks`) keeps them, and
        other axes are whole.
        """
        assert shape is not None, "xarray tells it"
        asked = _by_axis(chunks, len(shape))
        stored = _by_axis(previous_chunks, len(shape))
        return tuple(_parts(a, s, n) for a, s, n in zip(asked, stored, shape, strict=True))

    def from_array(self, data: Any, chunks: Any, **keywords: Any) -> Any:
        """An array over what xarray has not read yet; over an array in memory that array. Objects (texts of
        any length) are read now, and are NumPy's: no source can have them."""
        if data.dtype.hasobject:
            return np.asarray(data)
        if isinstance(data, np.ndarray):
            return from_source(data)
        parts = self.normalize_chunks(chunks, data.shape)
        return from_source(Unread(data, tuple(max(lengths, default=1) for lengths in parts)))

    def rechunk(self, data: Any, chunks: Any, **keywords: Any) -> Any:
        """The same array: nothing of it depends on chunks."""
        return data

    def compute(self, *data: Any, **keywords: Any) -> tuple[Any, ...]:
        """NumPy's arrays of all of them, computed together."""
        return compute(*data)

    def apply_gufunc(self, *arguments: Any, **keywords: Any) -> Any:
        """Nothing: xarray asks for it where arrays have `chunks`."""
        raise NotImplementedError("arrays of spartan_ng have no chunks: functions get the whole array")


class Unread:
    """What xarray has of a file, for workers to read boxes of."""

    def __init__(self, data: Any, chunks: tuple[int, ...]) -> None:
        self.data, self.shape, self.dtype = data, data.shape, data.dtype
        self.chunks = chunks if chunks != data.shape else None
        """The whole says nothing of how to read."""

    def __getitem__(self, box: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        return np.asarray(self.data[box])


def _by_axis(chunks: Any, ndim: int) -> list[Any]:
    if isinstance(chunks, dict):
        return [chunks.get(axis) for axis in range(ndim)]
    if isinstance(chunks, tuple | list):
        return list(chunks)
    return [chunks] * ndim


def _parts(asked: Any, stored: Any, length: int) -> tuple[int, ...]:
    for part in (asked, stored):
        if isinstance(part, tuple | list):
            return tuple(part)
        if isinstance(part, int | np.integer):
            each = length if part < 0 else min(int(part), length)
            whole, rest = divmod(length, each) if each else (1, 0)
            return (each,) * whole + (rest,) * bool(rest)
    return (length,)
