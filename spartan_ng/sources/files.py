"""Where files are: local paths, URLs that fsspec knows, globs and folders."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from glob import glob
from pathlib import Path as LocalPath
from typing import Any

from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.sources.given_whole import as_file, given_whole
from spartan_ng.sources.servers import ServedFile, asked_again, check_answers, patient

Path = str | os.PathLike[str]

_LOCAL = "file://", "local://"
COARSE_NS = 2_000_000_000
"""Of two writes that lie further apart than this every file system gives the times apart."""


def is_url(path: Path) -> bool:
    """Whether fsspec is to open it."""
    name = os.fspath(path)
    return "://" in name and not name.startswith(_LOCAL)


def local_name(path: Path) -> str:
    """The name of a file, without what says in a URL that it is one of this machine."""
    name = os.fspath(path)
    return name.partition("://")[2] if name.startswith(_LOCAL) else name


def absolute(path: Path) -> str:
    """The name under which every process on the machine opens the same."""
    name = local_name(path)
    return name if is_url(name) else os.path.abspath(os.path.expanduser(name))


def is_pattern(path: Path, options: dict[str, Any] | None = None) -> bool:
    """Whether a name stands for all that are like it: nothing is called so."""
    return any(c in os.fspath(path) for c in "*?[") and not is_there(absolute(path), options)


def as_zarr_takes(path: str) -> str | LocalPath:
    """The name of a store: in a text zarr sees more than that, in "a::b" a chain of file systems."""
    return path if is_url(path) else LocalPath(path)


def file_identity(path: str) -> tuple[int, ...]:
    """What changes when a local file is replaced or written to; its device differs between machines."""
    found = os.stat(path)
    return found.st_ino, found.st_size, found.st_mtime_ns


_SIGNS = "size", "ETag", "Last-Modified", "LastModified", "etag", "md5Hash", "updated", "mtime", "created"
"""What file systems say of a file that changes when the file does."""


def signs(path: str, options: dict[str, Any] | None = None) -> tuple[Any, ...] | None:
    """The identity of a local file; of one at a URL what its server says; None of one that is not there."""
    try:
        if not is_url(path):
            return file_identity(path)
        files, name = system(path, options)
        files.invalidate_cache(name)
        with asked_again(files, path):
            said = files.info(name)
    except SourceError:  # of the server
        raise
    except (OSError, ValueError, NotImplementedError):
        return None
    return tuple(str(said[sign]) for sign in _SIGNS if said.get(sign) is not None)


def tells_of_writes(path: str, said: tuple[Any, ...] | None) -> bool:
    """Whether a file's signs would be others if it were written to from now on: those of a local file whose
    last write lies behind the clock of its file system. Servers tell of writes by the second, if at all."""
    return said is not None and not is_url(path) and time.time_ns() - said[-1] > COARSE_NS


def system(url: str, options: dict[str, Any] | None) -> tuple[Any, str]:
    """The file system of a URL, and the path in it; SourceError where its server does not answer."""
    found: tuple[Any, str] = needed("fsspec.core", "remote").url_to_fs(url, **(patient(url, options) or {}))
    check_answers(found[0], url)
    return found


def open_file(path: Path, options: dict[str, Any] | None = None, **read_by: Any) -> Any:
    """A binary file to read, which can be seeked; one at a URL is `read_by` blocks and a cache as fsspec's
    files take them."""
    if not is_url(path):
        return open(local_name(path), "rb")
    files, name = system(os.fspath(path), options)
    with asked_again(files, os.fspath(path)):
        whole = given_whole(files, name)
        if whole is not None:
            return as_file(whole)
        return ServedFile(files, os.fspath(path), files.open(name, "rb", **read_by))


def files_for(
    path: Path | Sequence[Path], suffixes: Sequence[str] = (), options: dict[str, Any] | None = None
) -> list[str]:
    """The files that a list, a glob or a folder stands for, sorted by name; a plain path stands for itself.

    Of a folder those are taken that end in one of `suffixes`. FileNotFoundError where there are none.
    """
    if not isinstance(path, str | os.PathLike):
        return [absolute(p) for p in path]
    name = absolute(path)
    files = system(name, options)[0] if is_url(name) else None
    if is_pattern(name, options):
        if files is None:
            found = sorted(glob(name, recursive=True))
        else:
            shown = [p for p in files.glob(name) if "/." not in p or "/." in name]
            found = sorted(files.unstrip_protocol(p) for p in shown)
    elif is_folder(name, options):
        found = [p for p in listed_files(name, options) if p.lower().endswith(tuple(suffixes))]
    else:
        return [name]
    if not found:
        raise FileNotFoundError(f"{name}: no such files")
    return found


def is_folder(name: str, options: dict[str, Any] | None = None) -> bool:
    """Whether a name is that of a folder; at a URL it has no suffix, or ends in a slash."""
    if not is_url(name):
        return os.path.isdir(name)
    if not name.endswith("/") and os.path.splitext(name)[1]:
        return False  # a file system is not asked about what looks like a file
    files, path = system(name, options)
    return bool(files.isdir(path))


def is_there(path: str, options: dict[str, Any] | None = None) -> bool:
    """Whether there is a file or a folder."""
    if not is_url(path):
        return os.path.exists(path)
    files, name = system(path, options)
    return bool(files.exists(name))


def names_in(path: str, options: dict[str, Any] | None = None) -> list[str] | None:
    """The names of all that is in a folder, hidden or not; None where there is no folder."""
    if not is_url(path):
        return os.listdir(path) if os.path.isdir(path) else None
    files, name = system(path, options)
    files.invalidate_cache(name)
    try:
        found = [p.rstrip("/") for p in files.ls(name, detail=False)]
    except FileNotFoundError:
        return None
    inside = [p.rpartition("/")[2] for p in found if p.rpartition("/")[0].endswith(name.rstrip("/"))]
    return inside or None


def listed_files(name: str, options: dict[str, Any] | None = None) -> list[str]:
    """What is in a folder and not hidden (other systems, and unfinished writes, leave such files), sorted by
    name."""
    if not is_url(name):
        return [os.path.join(name, n) for n in sorted(os.listdir(name)) if not n.startswith(".")]
    files, path = system(name, options)
    inside = [p for p in files.ls(path, detail=False) if not p.rpartition("/")[2].startswith(".")]
    return sorted(files.unstrip_protocol(p) for p in inside)


def folders_and_files(name: str, options: dict[str, Any] | None = None) -> tuple[list[str], list[str]]:
    """The folders and the files in a folder that are not hidden, each sorted by name."""
    if not is_url(name):
        found = [(path, os.path.isdir(path)) for path in listed_files(name)]
    else:
        files, path = system(name, options)
        inside = [f for f in files.ls(path, detail=True) if f["name"].rstrip("/") != path.rstrip("/")]
        every = {files.unstrip_protocol(f["name"].rstrip("/")): f["type"] == "directory" for f in inside}
        found = [(n, every[n]) for n in sorted(every) if not n.rpartition("/")[2].startswith(".")]
    return [n for n, is_one in found if is_one], [n for n, is_one in found if not is_one]
