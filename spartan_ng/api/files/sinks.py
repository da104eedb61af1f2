"""Arrays to files of other libraries: from the workers where several may write, else in parts from here."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from spartan_ng.api.base.creation import asarray
from spartan_ng.api.core.conversion import shape_tuple
from spartan_ng.api.files.saving import drain, in_parts, uploaded, uploaded_folder, written_anew
from spartan_ng.api.ndarray.array import ndarray
from spartan_ng.errors import ShapeError
from spartan_ng.extras import needed
from spartan_ng.graph.evaluation import shares_files
from spartan_ng.sinks import Hdf5File, ParquetFolder, ZarrStore
from spartan_ng.sinks.disks import check_room, leftover
from spartan_ng.sinks.hdf5 import file_to_fill, kept_beside, lies_as_in_memory
from spartan_ng.sinks.parquet import group_bytes, table, with_bounds
from spartan_ng.sinks.places import check_folder, file_place
from spartan_ng.sinks.stores import ArrayPlace, array_place, filled
from spartan_ng.sinks.taken import check_tables, check_tables_at, check_unchanged, checked_dataset, refused
from spartan_ng.sources.files import is_url, local_name, signs
from spartan_ng.sources.pools import unpacked
from spartan_ng.sources.source import checked_dtype
from spartan_ng.sources.zarr_array import is_archive

_PART_BYTES = 1 << 26
_PACKED = {"compression", "scaleoffset"}
"""Options of datasets with which nobody knows how much they take."""


def _dense(a: Any, what: str) -> ndarray:
    """An array whose elements can be written; TypeError for objects."""
    found = asarray(a)
    checked_dtype(found.dtype, what)
    return found if found.format == "dense" else asarray(found._force())


def in_rows(a: ndarray, path: str = "", most: int = _PART_BYTES) -> Iterator[np.ndarray[Any, Any]]:
    """The elements, some rows (of about `most` bytes) at a time, in order, without having all of them where
    that can be, as long as the disk of the file `path`, if they go to one, has something left."""
    left = leftover(path) if path and not is_url(path) else None
    found = in_parts(a, most) if a._peek() is None else None
    if found is None:
        value = a._force()
        step = max(1, most * len(value) // max(value.nbytes, 1))
        found = (value[k : k + step] for k in range(0, len(value), step))
    for part in found:
        if left is not None:
            left.check()
        yield part.reshape((-1, *a.shape[1:]))


def to_zarr(
    a: Any,
    url: Any,
    name: str = "",
    *,
    chunks: Any = None,
    compressors: Any = "auto",
    zarr_format: int | None = None,
    storage_options: dict[str, Any] | None = None,
) -> None:
    """Write an array to a zarr store, chunk by chunk, from the workers that make the chunks.

    A folder is there whole, or what it was before. A store at a URL is written from here, part by part: where
    it is, if there is none yet, else beside the old one, whose place it takes when it is complete.

    Parameters
    ----------
    url : the folder, or an archive of one (`.zip`), or a URL that fsspec knows
    name : the array's path, where the store is a group, or is to be one; the array that is there is replaced
    chunks : the shape of a chunk; None for whole rows of about 8 MB
    compressors, storage_options : as `zarr.create_array` takes them
    zarr_format : 2 or 3; None for that of the group, or 3

    Raises
    ------
    ShapeError : `chunks` has not one length of at least 1 for each axis
    FileExistsError : something else than an array is there, as a group, or a folder with other files
    """
    array = _dense(a, "to_zarr")
    if is_archive(os.fspath(url)):
        with _archived(url, storage_options) as folder:
            to_zarr(array, folder, name, chunks=chunks, compressors=compressors, zarr_format=zarr_format)
        return
    where = array_place(local_name(url), name, zarr_format, storage_options)
    if chunks is not None:
        chunks = shape_tuple(chunks)
        if len(chunks) != array.ndim or min(chunks, default=1) < 1:
            raise ShapeError(f"to_zarr: chunks {chunks} do not fit the shape {array.shape}")
    if is_url(where.path) or not shares_files() or not array.size or not array.ndim:
        _zarr_from_here(array, where, chunks, compressors)
        return
    drain(array, ZarrStore(where, array.shape, array.dtype, chunks, {"compressors": compressors}))


@contextmanager
def _archived(url: Any, options: dict[str, Any] | None) -> Iterator[str]:
    """A folder with what an archive has, to write in; it is packed again at the end, unpacked as its chunks
    are."""
    if is_url(url):
        with uploaded(os.fspath(url), options, keeps=True) as here, _archived(here, None) as folder:
            yield folder
        return
    from zipfile import ZipFile, is_zipfile  # few programs write such a file

    real = file_place(url)
    around, name = os.path.split(real)
    with TemporaryDirectory(dir=around, prefix=f".{name}.") as folder:
        inside = os.path.join(folder, "store")
        if os.path.exists(real):
            if not is_zipfile(real):
                raise refused("to_zarr", real, "is no archive", "name another, or remove it first")
            with ZipFile(real) as archive:
                archive.extractall(inside)
        yield inside
        check_room(real, sum(map(os.path.getsize, map(str, filter(Path.is_file, Path(inside).rglob("*"))))))
        written_anew(real, lambda temporary: _pack(inside, temporary))


def _pack(folder: str, path: str) -> None:
    """An archive of all files of a folder."""
    from zipfile import ZipFile

    with ZipFile(path, "w") as archive:
        for where, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(where, name)
                archive.write(file, os.path.relpath(file, folder))


def _zarr_from_here(a: ndarray, where: ArrayPlace, chunks: Any, compressors: Any) -> None:
    """A store that is written by one: beside the one that is there, whose place it takes at the end."""
    made = {"compressors": compressors, "zarr_format": where.zarr_format, "storage_options": where.options}
    made.update(where.noted(a.ndim))
    with filled(where) as place:
        store = needed("zarr", "zarr").create_array(
            place, shape=a.shape, dtype=a.dtype, chunks=chunks or "auto", overwrite=True, **made
        )
        if not a.ndim or not a.size:
            store[...] = a._force()
            return
        first = 0
        for part in in_rows(a, where.path):
            store[first : first + len(part)] = part
            first += len(part)


def to_hdf5(
    a: Any, path: Any, name: str = "data", *, storage_options: dict[str, Any] | None = None, **options: Any
) -> None:
    """Write an array to a dataset of an HDF5 file, block by block, from the workers that make the blocks.

    The file has the whole dataset, or is what it was before. What else it has stays in it, and is copied for
    that. With `options` the elements come here, part by part: for what is cut into chunks or packed the
    library has one writer.

    Parameters
    ----------
    name : the dataset's; one that is there is replaced
    storage_options : of the file system of a URL
    options : of h5py's `create_dataset`, as `chunks` and `compression`

    Raises
    ------
    FileExistsError : there is a group of that name, or a file of another kind, or others have written to the
        file meanwhile
    """
    if is_url(path):
        with uploaded(os.fspath(path), storage_options, keeps=True) as here:
            to_hdf5(a, here, name, **options)
        return
    real = file_place(path)
    name = checked_dataset(real, name)
    array = _dense(a, "to_hdf5")
    file_place(real, nbytes=kept_beside(real, name) + (0 if _PACKED & options.keys() else array.nbytes))
    if not options and array.ndim and array.size and shares_files() and lies_as_in_memory(array.dtype):
        drain(array, Hdf5File(real, name, array.shape, array.dtype))
        return

    def write(temporary: str) -> None:
        before = signs(real)
        with file_to_fill(temporary, real, name) as file:
            if not array.ndim or not array.size:
                file.create_dataset(name, data=array._force(), **options)
                return
            dataset = file.create_dataset(name, array.shape, array.dtype, **options)
            first = 0
            for part in in_rows(array, real):
                dataset[first : first + len(part)] = part
                first += len(part)
        check_unchanged("to_hdf5", real, before)

    written_anew(real, write)


def to_parquet(
    a: Any,
    path: Any,
    columns: Sequence[str] | None = None,
    *,
    storage_options: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Write an array to a Parquet file from here, a row group of 16 MB at most after the other; or, where
    `path` ends with a slash, to a folder of files from the workers, each with the rows of one block.

    File and folder are there whole, or what they were before.

    Parameters
    ----------
    a : rows, or rows by columns
    columns : their names; None for "0", "1", ...
    storage_options : of the file system of a URL
    options : of pyarrow's `ParquetWriter`, as `compression`

    Raises
    ------
    ShapeError : the array has other than one or two axes, or `columns` is not a name for each column
    ValueError : two of these are one
    TypeError : tables have no such elements, as complex numbers
    FileExistsError : the folder has something else than Parquet files
    """
    is_folder = os.fspath(path).endswith(("/", os.sep))
    if is_url(path) and is_folder:
        check_tables_at(os.fspath(path), storage_options)
        with uploaded_folder(path, storage_options) as here:
            to_parquet(a, f"{here}/", columns, **options)
        return
    if is_url(path):
        with uploaded(os.fspath(path), storage_options) as here:
            to_parquet(a, here, columns, **options)
        return
    real = _parquet_folder(local_name(path)) if is_folder else file_place(path)
    array = _dense(a, "to_parquet")
    if array.ndim not in (1, 2):
        raise ShapeError(f"to_parquet: an array of shape {array.shape} has no columns")
    if array.shape[0] and not prod(array.shape):
        raise ShapeError(f"to_parquet: rows of shape {array.shape} without columns are no rows of a table")
    width = array.shape[1] if array.ndim == 2 else 1
    names = [str(k) for k in range(width)] if columns is None else list(columns)
    if len(names) != width:
        raise ShapeError(f"to_parquet: {len(names)} names do not fit the shape {array.shape}")
    if twice := sorted(n for n, times in Counter(names).items() if times > 1):
        raise ValueError(f"to_parquet: two columns are called {twice[0]!r}: nobody could ask for one of them")
    parquet = needed("pyarrow.parquet", "tables")
    schema = table(np.empty((0, width), array.dtype), names).schema
    if is_folder:
        _parquet_from_workers(array, ParquetFolder(real, array.shape, array.dtype, names, options))
        return

    def write(temporary: str) -> None:
        with parquet.ParquetWriter(temporary, schema, **with_bounds(options)) as writer:
            for part in in_rows(array, real, group_bytes()) if array.size else ():
                unpacked(writer.write_table, table(part, names), row_group_size=max(len(part), 1))

    written_anew(real, write)


def _parquet_folder(path: Any) -> str:
    """Where a folder is that may be replaced by one of Parquet files."""
    check_folder(path)
    real: str = os.path.realpath(path)
    check_tables(real)
    return real


def _parquet_from_workers(a: ndarray, sink: ParquetFolder) -> None:
    """In the pass that makes the array, or, where workers do not see the folder, part by part from here."""
    if a.size and shares_files():
        drain(a, sink)
        return
    try:
        first = 0
        for part in in_rows(a, sink.path) if a.size else [np.empty(a.shape, a.dtype)]:
            box = ((first, first + len(part)), *((0, n) for n in a.shape[1:]))
            sink.write(part, box)
            first += len(part)
        sink.finish()
    except BaseException:
        sink.give_up()
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
    if isinstance(name, bytes):
        return None
    return to_zarr if name.lower().endswith(".zarr.zip") else _WRITERS.get(os.path.splitext(name)[1].lower())


__all__ = ["to_hdf5", "to_parquet", "to_zarr"]
