"""Arrays to files of other libraries: from the workers where several may write, else in parts from here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spartan_ng.api.base.creation import asarray
from spartan_ng.api.core.conversion import shape_tuple
from spartan_ng.api.files.saving import drain, in_parts, place
from spartan_ng.api.ndarray.array import ndarray
from spartan_ng.errors import ShapeError
from spartan_ng.extras import needed
from spartan_ng.graph.evaluation import shares_files
from spartan_ng.sinks import ZarrStore
from spartan_ng.sinks.places import check_folder, mode_of, new_file
from spartan_ng.sources.files import is_url
from spartan_ng.sources.source import checked_dtype

_PART_BYTES = 1 << 26


def _dense(a: Any, what: str) -> ndarray:
    """An array whose elements can be written; TypeError for objects."""
    found = asarray(a)
    checked_dtype(found.dtype, what)
    return found if found.format == "dense" else asarray(found._force())


def _parts(a: ndarray) -> Iterator[np.ndarray[Any, Any]]:
    """Some rows at a time, in order, without having all of them where that can be."""
    found = in_parts(a) if a._peek() is None else None
    if found is None:
        value = a._force()
        step = max(1, _PART_BYTES * len(value) // max(value.nbytes, 1))
        found = (value[k : k + step] for k in range(0, len(value), step))
    for part in found:
        yield part.reshape((-1, *a.shape[1:]))


def to_zarr(
    a: Any,
    url: Any,
    *,
    chunks: Any = None,
    compressors: Any = "auto",
    zarr_format: int = 3,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Write an array to a zarr store, chunk by chunk, from the workers that make the chunks.

    A folder is there whole, or what it was before. A store at a URL is written from here, part by part, where
    it is.

    Parameters
    ----------
    url : the folder, or a URL that fsspec knows
    chunks : the shape of a chunk; None for whole rows of about 8 MB
    compressors, zarr_format, storage_options : as `zarr.create_array` takes them

    Raises
    ------
    ShapeError : `chunks` has not one length of at least 1 for each axis
    """
    if not is_url(url):
        check_folder(os.fspath(url))
    array = _dense(a, "to_zarr")
    if chunks is not None:
        chunks = shape_tuple(chunks)
        if len(chunks) != array.ndim or min(chunks, default=1) < 1:
            raise ShapeError(f"to_zarr: chunks {chunks} do not fit the shape {array.shape}")
    options = {"compressors": compressors, "zarr_format": zarr_format}
    if is_url(url) or not shares_files() or not array.size or not array.ndim:
        _zarr_from_here(array, url, chunks, {**options, "storage_options": storage_options})
        return
    drain(array, ZarrStore(os.path.realpath(url), array.shape, array.dtype, chunks, options))


def _zarr_from_here(a: ndarray, url: Any, chunks: Any, options: dict[str, Any]) -> None:
    zarr = needed("zarr", "zarr")
    store = zarr.create_array(
        os.fspath(url), shape=a.shape, dtype=a.dtype, chunks=chunks or "auto", overwrite=True, **options
    )
    if not a.ndim or not a.size:
        store[...] = a._force()
        return
    first = 0
    for part in _parts(a):
        store[first : first + len(part)] = part
        first += len(part)


def to_hdf5(a: Any, path: Any, name: str = "data", **options: Any) -> None:
    """Write an array to a dataset of a new HDF5 file, part by part: the library has one writer.

    The file is there whole, or what it was before.

    Parameters
    ----------
    name : the dataset's
    options : of h5py's `create_dataset`, as `chunks` and `compression`
    """
    real = place(path)
    array = _dense(a, "to_hdf5")
    h5py = needed("h5py", "hdf5")

    def write(temporary: str) -> None:
        with h5py.File(temporary, "w") as file:
            if not array.ndim or not array.size:
                file.create_dataset(name, data=array._force(), **options)
                return
            dataset = file.create_dataset(name, array.shape, array.dtype, **options)
            first = 0
            for part in _parts(array):
                dataset[first : first + len(part)] = part
                first += len(part)

    _replaced(real, write)


def to_parquet(a: Any, path: Any, columns: Sequence[str] | None = None, **options: Any) -> None:
    """Write an array to a Parquet file, a row group of about 64 MB after the other.

    The file is there whole, or what it was before.

    Parameters
    ----------
    a : rows, or rows by columns
    columns : their names; None for "0", "1", ...
    options : of pyarrow's `ParquetWriter`, as `compression`

    Raises
    ------
    ShapeError : the array has other than one or two axes, or `columns` is not a name for each column
    """
    real = place(path)
    array = _dense(a, "to_parquet")
    if array.ndim not in (1, 2):
        raise ShapeError(f"to_parquet: an array of shape {array.shape} has no columns")
    width = array.shape[1] if array.ndim == 2 else 1
    names = [str(k) for k in range(width)] if columns is None else list(columns)
    if len(names) != width:
        raise ShapeError(f"to_parquet: {len(names)} names do not fit the shape {array.shape}")
    arrow, parquet = needed("pyarrow", "tables"), needed("pyarrow.parquet", "tables")
    kind = arrow.from_numpy_dtype(array.dtype)
    schema = arrow.schema([(n, kind) for n in names])

    def write(temporary: str) -> None:
        with parquet.ParquetWriter(temporary, schema, **options) as writer:
            for part in _parts(array) if array.size else ():
                rows = part.reshape(len(part), width)
                every = [arrow.array(np.ascontiguousarray(rows[:, k])) for k in range(width)]
                writer.write_table(arrow.table(every, schema=schema), row_group_size=max(len(part), 1))

    _replaced(real, write)


def _replaced(real: str, write: Callable[[str], None]) -> None:
    """Have a file written under another name, and put it in its place."""
    descriptor, temporary = new_file(real)
    os.close(descriptor)
    try:
        write(temporary)
        os.chmod(temporary, mode_of(real))
        os.replace(temporary, real)
    except BaseException:
        os.unlink(temporary)
        raise


_WRITERS: dict[str, Callable[..., None]] = {
    ".zarr": to_zarr,
    ".h5": to_hdf5,
    ".hdf5": to_hdf5,
    ".parquet": to_parquet,
}


def writer(path: Any) -> Callable[..., None] | None:
    """What writes a file of that name; None for NumPy's own."""
    name = os.fspath(path)
    return None if isinstance(name, bytes) else _WRITERS.get(os.path.splitext(name)[1].lower())


__all__ = ["to_hdf5", "to_parquet", "to_zarr"]
