"""Files that are there whole or not at all, and arrays that are written in parts because they do not fit.

A file is written beside its place, under a name of its own, and renamed when it is complete. So an
interrupted write leaves the old file, and arrays that are mapped from that one keep their elements.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import values
from spartan_ng.api.core.forcing import compute_nodes, once
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process, shares_files
from spartan_ng.graph.node import VIEWS, Node, Op, topological
from spartan_ng.memory import budget_bytes, copied_bytes, disk_folder
from spartan_ng.ops.functions import UserFunction
from spartan_ng.sinks import NpyFile, Sink
from spartan_ng.sinks.places import (
    file_place,
    is_replaceable,
    mode_of,
    new_file,
    remove_unfinished,
    replacing,
    take_place_at,
)
from spartan_ng.sinks.sink import disk_errors
from spartan_ng.sources.files import is_url, system
from spartan_ng.sources.servers import taken_by_server

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

PART_BYTES = 1 << 26
"""An array that does not fit is computed and written in parts of about this size."""
_SHARE = 4
"""It does not fit where it would take more than one part in so many of the memory."""
_BY_PARTS = (VIEWS - {Op.RESHAPE}) | {Op.MAP, Op.DATA, Op.INDEX}
"""Steps of which a part costs a part."""


def written_anew(path: str, write: Callable[[str], None]) -> None:
    """Have a file written by its name, under another one, and put it in its place."""
    if not is_replaceable(path):
        write(path)
        return
    descriptor, temporary = new_file(path)
    os.close(descriptor)
    try:
        with disk_errors(path):
            write(temporary)
        remove_unfinished(path, os.path.getsize(temporary))
        os.chmod(temporary, mode_of(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@contextmanager
def uploaded(
    url: str, options: dict[str, Any] | None, suffix: str = "", keeps: bool = False
) -> Iterator[str]:
    """A local file to write what is to be at a URL (with `suffix`), where it goes when it is complete; with
    what is there by now, if that is to be kept."""
    files, path = system(url if url.endswith(suffix) else url + suffix, options)
    if files.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), url)
    is_there = files.exists(path)
    with tempfile.TemporaryDirectory(dir=disk_folder()) as folder:
        here = os.path.join(folder, path.rpartition("/")[2])
        if keeps and is_there:
            files.get_file(path, here)
        yield here
        around, _, name = path.rpartition("/")
        # What is there stays until all has come: an upload may break off.
        first = f"{around}/.{name}.{uuid4().hex}" if is_there else path
        try:
            with taken_by_server(url):
                files.put_file(here, first)
                if is_there:
                    files.mv(first, path)
        except BaseException:
            with suppress(Exception):
                files.rm_file(first)
            raise


@contextmanager
def uploaded_folder(url: str, options: dict[str, Any] | None) -> Iterator[str]:
    """A local folder to write what is to be at a URL, where it takes the place of what is there when it is
    complete."""
    files, path = system(url.rstrip("/"), options)
    is_there = files.exists(path)
    with tempfile.TemporaryDirectory(dir=disk_folder()) as folder:
        around, _, name = path.rpartition("/")
        here = os.path.join(folder, name or "folder")
        yield here
        first = f"{around}/.{name}.{uuid4().hex}" if is_there else path
        try:
            with taken_by_server(url):
                files.put(f"{here}/", f"{first}/", recursive=True)
        except BaseException:
            with suppress(Exception):
                files.rm(first, recursive=True)
            raise
        if is_there:
            take_place_at(files, first, path)


def known_bytes(a: ndarray) -> int:
    """What an array's elements take in a file, where that is known before it is written."""
    return 0 if a.dtype.hasobject or a.format != "dense" else a.nbytes


def write_npy(file: Any, a: ndarray, allow_pickle: bool) -> None:
    """Write an array in NumPy's format, in parts if it has neither a value here nor room for one."""
    parts = in_parts(a) if goes_in_parts(a) else None
    if parts is None:
        np.save(file, a._force(), allow_pickle)
        return
    header = {"descr": np.lib.format.dtype_to_descr(a.dtype), "fortran_order": False, "shape": a.shape}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)


def write_npz(file: Any, named: dict[str, ndarray], allow_pickle: bool, is_packed: bool) -> None:
    """Write arrays to an archive as NumPy does; those that are large in parts, one by one, all others
    computed together."""
    small = {name: a for name, a in named.items() if not goes_in_parts(a)}
    here = dict(zip(small, values(*small.values()), strict=True))
    if len(here) == len(named):
        (np.savez_compressed if is_packed else np.savez)(file, allow_pickle=allow_pickle, **here)
        return
    import zipfile  # few programs write such a file

    how = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, a in named.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if name in here:
                    np.lib.format.write_array(member, np.asanyarray(here[name]), allow_pickle=allow_pickle)
                else:
                    write_npy(member, a, allow_pickle)


def save_npy(path: str, a: ndarray, allow_pickle: bool, options: dict[str, Any] | None = None) -> None:
    """Write an array to a file by its name: from the workers, where it has no value here and they see the
    file."""
    if is_url(path):
        with uploaded(path, options, ".npy") as here:
            save_npy(here, a, allow_pickle)
        return
    real = file_place(path, ".npy")
    plain = a.ndim > 0 and a.size > 0 and not a.dtype.hasobject and a.format == "dense"
    if plain and goes_in_parts(a) and shares_files() and is_replaceable(real):
        node = _unshaped(a)
        drain(wrap_node(node), NpyFile(real, a.shape, a.dtype, node.shape))
        return
    with replacing(path, ".npy", known_bytes(a)) as written:
        write_npy(written, a, allow_pickle)


def drain(a: ndarray, sink: Sink) -> None:
    """Have all blocks of an array written as they are made, and what was there replaced."""
    try:
        blocks = build.map_(UserFunction(sink), a._node(), dtype=np.dtype(bool), params=("extent",))
        written = build.fold("logical_and", blocks, range(a.ndim))
        if in_process():
            once(written)
        else:
            compute_nodes([written])  # workers may keep what a program asks for again
        sink.finish()
    except BaseException:
        with suppress(OSError):
            sink.give_up()
        raise


def goes_in_parts(a: ndarray) -> bool:
    """Whether an array has no value here, and would take a good part of the memory; or workers make it, who
    have it in parts."""
    if a._peek() is not None:
        return False
    return a.nbytes > budget_bytes() // _SHARE or not (in_process() or door.is_small(a.nbytes))


def in_parts(a: ndarray, most: int | None = None) -> Iterator[np.ndarray[Any, Any]] | None:
    """The elements in C order, some rows (of about `most` bytes) at a time; None where an array has none that
    cost a part."""
    parts = _in_parts(a)
    if parts is None:
        return None
    part_bytes = min(PART_BYTES, most or PART_BYTES, copied_bytes())
    step = max(1, part_bytes * parts.shape[0] // parts.nbytes)  # rows, at least one, however long it is
    return (once(parts[start : start + step]._node()) for start in range(0, parts.shape[0], step))


def rows_in_parts(a: ndarray) -> Callable[[], Iterator[np.ndarray[Any, Any]]] | None:
    """The rows of an array, some at a time, as often as it is called; None where the array has a value here,
    or room for one."""
    if not goes_in_parts(a) or not a.size or a.dtype.hasobject or a.format != "dense":
        return None
    by_parts = in_process() and all(n.op in _BY_PARTS for n in topological([a._node()]))
    there = a if by_parts else a.persist()  # on disk, where memory has no room for it
    step = max(1, min(PART_BYTES, copied_bytes()) * len(a) // a.nbytes)
    return lambda: (once(there[k : k + step]._node()) for k in range(0, len(a), step))


def _unshaped(a: ndarray) -> Node:
    """The elements in C order before they got their last shape."""
    node = a._node()
    while node.op is Op.RESHAPE and node.inputs[0].ndim:
        (node,) = node.inputs
    return node


def _in_parts(a: ndarray) -> ndarray | None:
    """An array with the same elements in C order, a row of which costs a row; None if there is none."""
    if a.ndim == 0 or a.dtype.hasobject or a.format != "dense":
        return None
    node = _unshaped(a)
    if all(n.op in _BY_PARTS for n in topological([node])):
        return wrap_node(node)
    return None if in_process() else a.persist()  # on workers a part of what is evaluated is read as a part
