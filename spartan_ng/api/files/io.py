"""Files in and out: NumPy's own formats, text, and Matrix Market."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.conversion import as_handle, over_buffer, sparse_handle
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import make, wrap
from spartan_ng.api.files.saving import (
    known_bytes,
    save_npy,
    uploaded,
    write_npy,
    write_npz,
    written_anew,
)
from spartan_ng.api.files.sinks import writer
from spartan_ng.api.files.sources import by_suffix, over
from spartan_ng.api.files.text import TextOfRows, text_in_parts
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.callers import for_user
from spartan_ng.errors import SourceError
from spartan_ng.graph.evaluation import in_process
from spartan_ng.sinks.disks import SparingFile, check_room
from spartan_ng.sinks.places import file_place, replacing
from spartan_ng.sources import MappedFile, cut_header_said, npz_member, unpacked_member
from spartan_ng.sources.files import is_url, local_name, open_file

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


@numpy_function(np.save)
def save(
    file: Any, arr: Any, allow_pickle: bool = True, *, storage_options: dict[str, Any] | None = None
) -> None:
    """Write an array to a `.npy` file, in parts where it does not fit into memory.

    A file by name is complete, or what it was before. Large arrays that are still to be computed are written
    by the workers as they make them. A name that ends in `.zarr`, `.h5`, `.hdf5` or `.parquet` is written as
    the `to_` function of its format does. `storage_options` are those of the file system of a URL.
    """
    if not isinstance(file, str | os.PathLike):
        write_npy(file, as_handle(arr), allow_pickle)
        return
    write = writer(file)
    if write is not None:
        write(arr, file, storage_options=storage_options)
        return
    save_npy(os.fspath(file), as_handle(arr), allow_pickle, storage_options)


@numpy_function(np.savez)
def savez(file: Any, *args: Any, allow_pickle: bool = True, **keywords: Any) -> None:
    """Write several arrays to an uncompressed `.npz` file."""
    _savez(False, file, args, keywords, allow_pickle)


@numpy_function(np.savez_compressed)
def savez_compressed(file: Any, *args: Any, allow_pickle: bool = True, **keywords: Any) -> None:
    """Write several arrays to a compressed `.npz` file."""
    _savez(True, file, args, keywords, allow_pickle)


def _savez(
    is_packed: bool, file: Any, args: tuple[Any, ...], named: dict[str, Any], allow_pickle: bool
) -> None:
    is_named = isinstance(file, str | os.PathLike)
    if is_named and is_url(file):
        with uploaded(os.fspath(file), None, ".npz") as here:
            _savez(is_packed, here, args, named, allow_pickle)
        return
    every = {f"arr_{k}": as_handle(a) for k, a in enumerate(args)}
    twice = next((name for name in named if name in every), None)
    if twice is not None:
        raise ValueError(f"Cannot use un-named variables and keyword {twice}")
    every.update((name, as_handle(a)) for name, a in named.items())
    nbytes = 0 if is_packed else sum(map(known_bytes, every.values()))
    with replacing(file, ".npz", nbytes) if is_named else nullcontext(file) as written:
        packed = SparingFile(written, os.fspath(file)) if is_packed and is_named else written
        write_npz(packed, every, allow_pickle, is_packed)


class Archive(np.lib.npyio.NpzFile):
    """The arrays of a `.npz` file by name, each read when it is asked for."""

    url: str | None = None
    """Where it is not on this machine."""

    def __getitem__(self, name: str) -> Any:
        mapped = self._mapped(name)
        if mapped is not None:
            return mapped
        found: Any = self._on_disk(name)
        if found is None:
            with _said_of_archive(self.url):
                found = super().__getitem__(name)  # a file of another kind is bytes
        return wrap(found) if isinstance(found, np.ndarray) else found

    def _mapped(self, name: str) -> Any:
        """A large array that is stored as it is; None for others, which are read."""
        path = getattr(self.zip, "filename", None)
        if path is None or name not in self.files:
            return None
        with suppress(KeyError, ValueError, TypeError, OSError):
            member = npz_member(path, name)
            if member is not None and not door.is_small(prod(member.shape) * member.dtype.itemsize):
                return over(member)
        return None

    def _on_disk(self, name: str) -> Any:
        """An array that memory has no room for, unpacked to disk; None for others, and what NumPy refuses."""
        with suppress(KeyError, ValueError, TypeError, EOFError):
            archive: Any = self
            return unpacked_member(archive.zip, archive._files[name])
        return None

    @classmethod
    def of(cls, opened: Any, url: str | None, file: Any) -> Self:
        """NumPy's archive as one of ours: an archive closes its file when it goes, so there is only one.
        `file` is the one that was opened for it; None where it was given."""
        opened.__class__ = cls
        opened.url, opened.fid = url, file
        return opened  # type: ignore[no-any-return]


@contextmanager
def _said_of_archive(url: str | None) -> Iterator[None]:
    """SourceError where an archive at a URL is none, or part of it is missing; NumPy's errors of files."""
    try:
        with cut_header_said():
            yield
    except Exception as error:
        from zipfile import BadZipFile  # few programs read such a file
        from zlib import error as cut

        if url is None or not isinstance(error, BadZipFile | cut | EOFError):
            raise
        raise SourceError(f"{url} cannot be read: {error}") from error


def _is_archive(path: str | os.PathLike[str]) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def _mapped(path: str, options: dict[str, Any]) -> Any:
    """A `.npy` file as a map, or read where it cannot be one, with NumPy's own errors."""
    with cut_header_said():
        if not options["allow_pickle"]:
            with suppress(ValueError, OverflowError):  # of a map whose length is negative
                mapped = for_user(np.load, path, "r", **options)
                if mapped.dtype.itemsize:  # a copy of texts without letters gives them one
                    return mapped
        return for_user(np.load, path, **options)


def _over_map(mapped: Any) -> Any:
    """A mapped file as an array that workers map, too."""
    order = "C" if mapped.flags.c_contiguous else "F"
    with suppress(OSError, SourceError):  # it is gone already: who needs it gets the driver's
        return over(MappedFile(mapped.filename, mapped.shape, mapped.dtype, mapped.offset, order))
    return make(Cell(np.asarray(mapped), borrowed=True))


def load(
    file: Any,
    mmap_mode: Any = None,
    allow_pickle: bool = False,
    fix_imports: bool = True,
    encoding: str = "ASCII",
    *,
    max_header_size: int = 10000,
    storage_options: dict[str, Any] | None = None,
) -> Any:
    """Read a `.npy` file (mapped, if it is large) or open a `.npz` file, whose large arrays are mapped if
    they are not compressed.

    What ends otherwise is read as the `from_` function of its format does: `.zarr`, `.h5`, `.hdf5`,
    `.parquet`, `.arrow`, `.feather`, `.csv` and images, also at URLs that fsspec knows. A list, a glob or a
    folder stands for all its files, one behind the other. `storage_options` are those of the file system of a
    URL.
    """
    options: dict[str, Any] = {
        "allow_pickle": allow_pickle,
        "fix_imports": fix_imports,
        "encoding": encoding,
        "max_header_size": max_header_size,
    }
    url, ours = None, None
    if isinstance(file, str):
        file = local_name(file)
    if mmap_mode is None and isinstance(file, str | os.PathLike | list | tuple):
        elsewhere = by_suffix(file, storage_options)
        if elsewhere is not None:
            return elsewhere
        if isinstance(file, str | os.PathLike) and is_url(file):
            url, file = os.fspath(file), open_file(file, storage_options)
            ours = file
    if mmap_mode is None and isinstance(file, str | os.PathLike) and os.fspath(file).endswith(".npy"):
        mapped = _mapped(os.fspath(file), options)
        if isinstance(mapped, np.memmap) and not door.is_small(mapped.nbytes):
            return _over_map(mapped)
        return wrap(np.array(mapped) if isinstance(mapped, np.memmap) else mapped)
    if isinstance(file, str | os.PathLike) and _is_archive(file):
        file = ours = open_file(file)  # NumPy leaves that of a damaged archive open
    with _said_of_archive(url), ExitStack() as after:
        if ours is not None:
            after.callback(ours.close)
        opened = for_user(np.load, file, mmap_mode, **options)
        if isinstance(opened, np.lib.npyio.NpzFile):
            after.pop_all()
            return Archive.of(opened, url, ours)
    if isinstance(opened, np.memmap) and opened.mode in ("r+", "w+"):
        return over_buffer(opened.view(np.ndarray))  # what is written reaches the file
    if isinstance(opened, np.ndarray):
        shown = opened.view(np.ndarray)
        shown.flags.writeable = mmap_mode is None
        is_theirs = isinstance(opened, np.memmap) and mmap_mode == "r" and not in_process()
        found = _over_map(opened) if is_theirs else make(Cell(shown, borrowed=mmap_mode is not None))
        if mmap_mode == "r":
            found.setflags(write=False)
        return found
    return opened


@numpy_function(np.savetxt)
def savetxt(fname: Any, X: Any, *args: Any, **keywords: Any) -> None:
    """Write an array as text, some rows at a time where it does not fit into memory."""
    text = TextOfRows(as_handle(X), args, keywords)
    if not isinstance(fname, str | os.PathLike):
        text.write(fname)
        return
    real = file_place(fname)

    def write(path: str) -> None:
        # As NumPy opens it: packed, where its name says so.
        opened = np.lib.npyio.DataSource(os.curdir).open
        with opened(path, "wt", text.option("encoding", None)) as file:
            text.write(SparingFile(file, real) if os.path.isfile(path) else file)

    if not real.endswith(_PACKED):
        check_room(real, text.nbytes, "about ")
    written_anew(real, write)


_PACKED = (".gz", ".bz2", ".xz", ".lzma")
"""Names of texts that NumPy packs."""


@numpy_function(np.loadtxt)
def loadtxt(fname: Any, *args: Any, **keywords: Any) -> Any:
    """Read an array from text; what memory has no room for is put in a file without a name, part by part."""
    found = text_in_parts(fname, *args, **keywords)
    result = for_user(np.loadtxt, fname, *args, **keywords) if found is None else found
    return [wrap(r) for r in result] if isinstance(result, list | tuple) else wrap(np.asarray(result))


@numpy_function(np.fromregex)
def fromregex(file: Any, regexp: Any, dtype: Any, encoding: Any = None) -> ndarray:
    """The groups that a regular expression finds in a text file."""
    return wrap(np.fromregex(file, regexp, dtype, encoding))


@numpy_function(np.genfromtxt)
def genfromtxt(fname: Any, *args: Any, **keywords: Any) -> Any:
    """Read an array from text with missing values; NumPy's masked array with `usemask`."""
    result = for_user(np.genfromtxt, fname, *args, **keywords)
    return [wrap(r) for r in result] if isinstance(result, list | tuple) else wrap(result)


@numpy_function(np.fromiter)
def fromiter(iter: Any, dtype: Any, count: int = -1, *, like: Any = None) -> ndarray:
    """A 1-d array from an iterable."""
    return wrap(np.fromiter(iter, dtype, count))


@numpy_function(np.frombuffer)
def frombuffer(
    buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0, *, like: Any = None
) -> ndarray:
    """A 1-d array over a buffer."""
    given = buffer._lent() if isinstance(buffer, Handle) else buffer
    return over_buffer(np.frombuffer(given, dtype, count, offset), buffer)


@numpy_function(np.fromstring)
def fromstring(
    string: str, dtype: Any = float, count: int = -1, *, sep: str = "", like: Any = None
) -> ndarray:
    """A 1-d array from text."""
    return wrap(np.fromstring(string, dtype, count, sep=sep))


def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0, *, like: Any = None
) -> ndarray:
    """Read an array from raw bytes or text."""
    return wrap(np.fromfile(file, dtype, count, sep, offset))


def mmread(source: Any) -> ndarray:
    """Read a Matrix Market file: a CSR array from a coordinate file, a dense one from an array file."""
    from scipy import io  # most programs read no such file, and importing it takes a while

    found = io.mmread(source)
    return sparse_handle(found) if is_sparse(found) else wrap(np.asarray(found))


def mmwrite(target: Any, a: Any, comment: str = "", precision: int | None = None) -> None:
    """Write a Matrix Market file: coordinates of a CSR array, all elements of a dense one."""
    if isinstance(target, str | os.PathLike):
        file_place(target, ".mtx")
    h = as_handle(a)
    value = h.tocsr() if h.format == "csr" else h._force()
    from scipy import io

    io.mmwrite(target, value, comment, precision=precision)


def from_sparse(matrix: Any) -> ndarray:
    """A scipy.sparse matrix as a CSR array."""
    if isinstance(matrix, Handle):
        return as_handle(matrix)
    return sparse_handle(matrix)


__all__ = [
    "from_sparse",
    "frombuffer",
    "fromfile",
    "fromiter",
    "fromregex",
    "fromstring",
    "genfromtxt",
    "load",
    "loadtxt",
    "mmread",
    "mmwrite",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
]
