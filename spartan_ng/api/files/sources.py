"""Arrays that lie outside: read where they are worked on, box by box, and never as a whole unless asked
for."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from spartan_ng.api.core.conversion import shape_tuple
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import make, wrap_node
from spartan_ng.api.files.cells import FileCell
from spartan_ng.arrays import ArrayRef
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.functions import UserFunction, require_function
from spartan_ng.sources.arrow_columns import ArrowColumns
from spartan_ng.sources.column_kinds import together
from spartan_ng.sources.columns import Columns, ParquetColumns
from spartan_ng.sources.csv_columns import CsvColumns
from spartan_ng.sources.files import (
    absolute,
    files_for,
    is_folder,
    is_pattern,
    is_url,
    listed_files,
    local_name,
)
from spartan_ng.sources.function import BoxFunction
from spartan_ng.sources.hdf5 import hdf5_dataset
from spartan_ng.sources.images import SUFFIXES, ImageStack
from spartan_ng.sources.indexed import Indexed
from spartan_ng.sources.joined import Joined
from spartan_ng.sources.keys import Keys, partitioned_files
from spartan_ng.sources.mapped import MappedFile, in_pieces, npy_file
from spartan_ng.sources.remote import RemoteFile, remote_npy
from spartan_ng.sources.source import Source, checked_dtype
from spartan_ng.sources.zarr_array import STORE_HEADS, ZarrArray, is_store

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_leaves: WeakValueDictionary[Hashable, Node] = WeakValueDictionary()
"""By what they are, sources that somebody has opened and needs still."""


def over(source: Source) -> ndarray:
    """An array of what a source has: lazy, or of a mapped file the map, which counts as no memory."""
    if isinstance(source, MappedFile):
        source = in_pieces(source)
    mapped = source.mapped()
    if mapped is None:
        return wrap_node(_leaf(source))
    cell = FileCell(mapped, borrowed=True)
    cell.source = source
    return make(cell)


def _leaf(source: Source) -> Node:
    """What is opened twice is one leaf, which a pass reads once."""
    likeness = source.likeness()
    found = None if likeness is None else _leaves.get(likeness)
    before = None if found is None or found.data is None else found.data.source
    if found is not None and before is not None and source.goes_on(before):
        return found
    leaf = build.data(ArrayRef(source.shape, source.dtype, source=source))
    if likeness is not None:
        _leaves[likeness] = leaf
    return leaf


def from_function(
    read: Callable[[tuple[tuple[int, int], ...]], Any],
    shape: Any,
    dtype: Any = float,
    *,
    chunks: Any = None,
) -> ndarray:
    """An array whose elements a function gives, box by box, where and when they are worked on.

    Parameters
    ----------
    read : of a box, one `(lo, hi)` an axis, gives its elements: an array of the box's shape, made one of
        `dtype`. It is called in any order, on any worker, in several threads at a time, and gives the same
        each time
    shape, dtype : of the whole array; elements that are objects are a TypeError
    chunks : the shape of boxes that it is best asked for; boxes are made of whole ones where they fit

    Raises
    ------
    ShapeError : `chunks` has not one length of at least 1 for each axis
    UserFunctionError : `read` raises, when the elements are needed
    SourceError : it gives an array of another shape
    """
    require_function("from_function(read, shape)", read)
    full = shape_tuple(shape)
    if chunks is not None:
        chunks = shape_tuple(chunks)
        if len(chunks) != len(full) or min(chunks, default=1) < 1:
            raise ShapeError(f"from_function: chunks {chunks} do not fit the shape {full}")
    return over(BoxFunction(UserFunction(read), full, checked_dtype(dtype, "from_function"), chunks))


def from_source(source: Any, *, serial: bool = False) -> ndarray:
    """An array of anything that has `shape`, `dtype` and `__getitem__` of a tuple of slices.

    What it has is read where and when it is worked on: whole ones of its `chunks`, if there are any, of which
    the last are kept where memory has room for several. Workers get a pickled copy of the object, which
    should say where the elements are, not have them. NumPy's arrays are taken as they are, as by `asarray`.

    Parameters
    ----------
    source : the object, or a `spartan_ng.sources.Source`
    serial : whether it may be asked by one thread at a time only; it may write over what it gave when it
        is asked again, while what another source gives has to stay as it is
    """
    if isinstance(source, Source):
        return over(source)
    if isinstance(source, np.ndarray | Handle):
        from spartan_ng.api.base.creation import asarray

        return asarray(source)
    return over(Indexed(source, serial))


def _joined(
    path: Any, suffixes: Sequence[str], options: dict[str, Any] | None, one: Callable[[str], Source]
) -> ndarray:
    """The files that `path` stands for, one behind the other."""
    parts = [one(p) for p in files_for(path, suffixes, options)]
    return over(parts[0] if len(parts) == 1 else Joined(parts))


def from_raw(
    path: Any,
    shape: Any,
    dtype: Any = float,
    *,
    offset: int = 0,
    storage_options: dict[str, Any] | None = None,
) -> ndarray:
    """An array over a file of raw elements in C order: mapped, or, at a URL, read in ranges of bytes.

    Parameters
    ----------
    path : the file, or a URL that fsspec knows; a list of files is one behind the other
    shape, dtype : the array's, or those of each file
    offset : bytes before the first element
    storage_options : of the file system of a URL, here as in all functions of this kind

    Raises
    ------
    SourceError : the file is shorter than that
    """
    full, kind = shape_tuple(shape), checked_dtype(dtype, "from_raw")

    def one(p: str) -> Source:
        if is_url(p):
            return RemoteFile(p, full, kind, offset, storage_options)
        return MappedFile(p, full, kind, offset)

    if not isinstance(path, str | os.PathLike):
        return _joined(path, (), storage_options, one)
    return over(one(absolute(path)))


def from_zarr(url: Any, name: str = "", *, storage_options: dict[str, Any] | None = None) -> ndarray:
    """The array of a zarr store (formats 2 and 3), chunks of which are read as they are worked on; of several
    stores (a list, a glob, a folder of folders that end in ".zarr") one behind the other.

    Parameters
    ----------
    url : a folder, an archive (`.zip`), a URL of one of these that fsspec knows, or an array of zarr's
    name : the array's path, where the store is a group
    """
    if isinstance(url, str | os.PathLike) and not _has_stores(local_name(url)):
        return over(ZarrArray(url, name, storage_options))
    if not isinstance(url, str | os.PathLike | list | tuple):
        return from_source(url)
    return _joined(url, _ZARRS, storage_options, lambda p: ZarrArray(p, name, storage_options))


def _has_stores(url: str) -> bool:
    """Whether a name stands for several zarr stores, and is none itself."""
    if not is_url(url) and os.path.exists(url):
        is_store = any(os.path.exists(os.path.join(url, n)) for n in STORE_HEADS)
        return os.path.isdir(url) and not is_store and any(_suffix(n) in _ZARRS for n in listed_files(url))
    return is_pattern(url)


def from_hdf5(
    path: Any, name: str | None = None, *, storage_options: dict[str, Any] | None = None
) -> ndarray:
    """A dataset of HDF5 files; of several files (a list, a glob, a folder) one behind the other.

    A dataset that lies in one piece is mapped. Others are read by one thread of a process at a time: the
    library has a lock. Every process opens the file for itself.

    Parameters
    ----------
    path : the file or files, a URL, or a dataset of h5py's
    name : the dataset's; it may be left out where there is only one

    Raises
    ------
    KeyError : there is no such dataset; ValueError : none was named, and there are several
    """
    if hasattr(path, "file") and hasattr(path, "name"):
        path, name = path.file.filename, path.name
    return _joined(path, (".h5", ".hdf5"), storage_options, lambda p: hdf5_dataset(p, name, storage_options))


def _from_columns(
    kind: Callable[[str, Keys], Columns], suffixes: Sequence[str], path: Any, columns: Any, options: Any
) -> ndarray:
    """The tables that `path` stands for, one behind the other, their columns by name."""
    parted = partitioned_files(path, suffixes, options) or [
        (p, {}) for p in files_for(path, suffixes, options)
    ]
    parts = together([kind(*found) for found in parted], columns)
    for part in parts:
        if part.kinds:  # of the dtype that was asked for boxes are read as far as they have all elements
            part.check_lacking()
    return over(parts[0] if len(parts) == 1 else Joined(parts))


def from_parquet(
    path: Any,
    columns: str | Sequence[str] | None = None,
    *,
    dtype: Any = None,
    fill: Any = None,
    storage_options: dict[str, Any] | None = None,
) -> ndarray:
    """Columns of Parquet files as an array, row groups of which are read as they are worked on.

    Parameters
    ----------
    path : a file or URL, a list, a glob or a folder of them, whose rows follow each other. A folder of
        folders called `year=2020` and the like is one table, with a column for each such name
    columns : the name of one column, which gives a 1-d array (2-d, where its elements are lists of one length
        of numbers); several, or None for all: rows by columns, in the order of the first file
    dtype : of the elements; None for what all columns of all files fit. What is missing is NaN among floats,
        NaT among dates, `fill` where that is given. To know how wide texts are, their columns are
        looked at once: `dtype="U20"` says it. Decimals are read where `dtype=float` says so
    fill : what stands for missing elements, in all columns: an element of `dtype`

    Raises
    ------
    KeyError : there is no such column; TypeError : no dtype fits the elements, as those of lists, or numbers
    and texts, or `fill`
    SourceError : files have other columns than the first, and `columns` is None; elements are missing that
        the dtype cannot say, and nothing stands for them: at once where the file counts them and no `dtype`
        was asked for, or when they are read
    """

    def one(p: str, keys: Keys) -> Columns:
        return ParquetColumns(p, columns, dtype, storage_options, keys, fill)

    return _from_columns(one, (".parquet", ".pq"), path, columns, storage_options)


def from_arrow(
    path: Any,
    columns: str | Sequence[str] | None = None,
    *,
    dtype: Any = None,
    fill: Any = None,
    storage_options: dict[str, Any] | None = None,
) -> ndarray:
    """Columns of Arrow files (Feather 2) as an array; see `from_parquet`."""

    def one(p: str, keys: Keys) -> Columns:
        return ArrowColumns(p, columns, dtype, storage_options, keys, fill)

    return _from_columns(one, (".arrow", ".feather"), path, columns, storage_options)


def from_csv(
    path: Any,
    columns: str | Sequence[str] | None = None,
    *,
    dtype: Any = None,
    fill: Any = None,
    header: bool | None = None,
    storage_options: dict[str, Any] | None = None,
) -> ndarray:
    """Columns of CSV files as an array; see `from_parquet`.

    The file is looked through once for the places of its lines, and parsed where it is worked on. Texts in
    quotes must have no line breaks. The first 4 MB say whether a column has integers or floats (which whole
    numbers are of which some are missing there). A file with a line of names alone has no rows, of float64.

    Parameters
    ----------
    header : whether the first line has the columns' names; without names they are called "f0", "f1", ... By
        default it has, and a line of numbers is an error

    Raises
    ------
    SourceError : there is nothing in the file, or numbers where names are to stand
    ValueError : it is packed
    """

    def one(p: str, keys: Keys) -> Columns:
        if _suffix(p) in _PACKED:
            raise _no_parts("from_csv", p)
        return CsvColumns(p, columns, dtype, storage_options, keys, fill, header)

    return _from_columns(one, (".csv",), path, columns, storage_options)


def from_images(path: Any, *, storage_options: dict[str, Any] | None = None) -> ndarray:
    """Images of one shape and dtype as an array, images along the first axis, each read when it is worked on.

    Parameters
    ----------
    path : a file or URL, a list, a glob or a folder of them, in the order of their names

    Raises
    ------
    SourceError : an image is not like the first, when it is read
    """
    return over(ImageStack(files_for(path, SUFFIXES, storage_options), storage_options))


def _npy(path: str, options: dict[str, Any] | None) -> Source:
    return remote_npy(path, options) if is_url(path) else npy_file(path)


_ZARRS = ".zarr", ".zarr.zip"
_TABLES: dict[str, Callable[..., ndarray]] = {
    ".parquet": from_parquet,
    ".pq": from_parquet,
    ".arrow": from_arrow,
    ".feather": from_arrow,
    ".csv": from_csv,
}
_SUFFIXES: dict[str, Callable[..., ndarray]] = {
    **dict.fromkeys(_ZARRS, from_zarr),
    ".h5": from_hdf5,
    ".hdf5": from_hdf5,
    **_TABLES,
    **dict.fromkeys(SUFFIXES, from_images),
}
"""What `load` does with a file that is not NumPy's."""
_UNREAD = (".tsv", ".tab")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
"""Ends of texts' names that `load` has nothing for; it asks nobody to unpickle them."""


def by_suffix(path: Any, options: dict[str, Any] | None = None) -> ndarray | None:
    """The array of files whose names, or those of a folder's files, end as one of the formats; None where a
    plain file is to be read as NumPy does.

    Raises
    ------
    ValueError : a list or folder has files of several formats, or archives; a text is none with commas
    """
    if isinstance(path, list | tuple):
        return _listed(path, options)
    if isinstance(os.fspath(path), bytes):
        return None
    name = local_name(path)
    many = is_pattern(name, options)
    suffix = _suffix(name)
    if suffix in _UNREAD or (suffix in _PACKED and _suffix(name[: -len(suffix)]) in (*_TABLES, *_UNREAD)):
        raise _no_parts("load", name)
    if suffix != ".zarr" and not many and is_folder(name, options):
        many, suffix = True, _suffix_inside(name, options)
    if suffix == ".zip" and not many and is_store(name, options):
        suffix = ".zarr.zip"
    if suffix == ".npy" and (many or is_url(name)):
        return _joined(name, (".npy",), options, lambda p: _npy(p, options))
    if suffix == ".npz" and many:
        raise ValueError(f"load: {name} stands for archives of several arrays each, which make no array")
    return _SUFFIXES[suffix](name, storage_options=options) if suffix in _SUFFIXES else None


def _no_parts(call: str, name: str) -> ValueError:
    return ValueError(
        f"{call}: {name} is no table in parts that are read one by one: from_csv takes files that are not "
        "packed, with commas between columns; loadtxt and genfromtxt read others as a whole"
    )


def _suffix_inside(folder: str, options: dict[str, Any] | None) -> str:
    """Of what ends as one of the formats in a folder; ".zarr" of a store; ValueError where there are several
    formats."""
    parted = partitioned_files(folder, (*_TABLES,), options)
    paths = [p for p, _ in parted] if parted else listed_files(folder, options)
    names = [os.path.basename(n.rstrip("/")) for n in paths]
    if not is_url(folder) and any(os.path.exists(os.path.join(folder, n)) for n in STORE_HEADS):
        return ".zarr"
    inside = [s for s in (".npy", *_SUFFIXES) if any(_suffix(n) == s for n in names)]
    if len({_SUFFIXES.get(s) for s in inside}) > 1:
        raise ValueError(f"load: {folder} has files that end in {', '.join(inside)}: say which by a glob")
    return inside[0] if inside else ""


def _suffix(name: str) -> str:
    name = name.rstrip("/").lower()
    return ".zarr.zip" if name.endswith(".zarr.zip") else os.path.splitext(name)[1]


def _listed(paths: Sequence[Any], options: dict[str, Any] | None) -> ndarray:
    """The files of a list, one behind the other."""
    suffixes = sorted({_suffix(os.fspath(p)) for p in paths})
    if suffixes == [".npy"]:
        return _joined(paths, (".npy",), options, lambda p: _npy(p, options))
    if len(suffixes) == 1 and suffixes[0] in _SUFFIXES:
        return _SUFFIXES[suffixes[0]](paths, storage_options=options)
    raise ValueError(f"load: {len(paths)} files that end in {', '.join(map(repr, suffixes))} make no array")


__all__ = [
    "from_arrow",
    "from_csv",
    "from_function",
    "from_hdf5",
    "from_images",
    "from_parquet",
    "from_raw",
    "from_source",
    "from_zarr",
]
