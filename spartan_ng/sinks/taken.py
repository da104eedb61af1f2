"""What a write may take the place of: what it would have made itself, or what is empty.

| what is written | takes the place of | what stays |
|---|---|---|
| a file: `.npy`, `.npz`, Parquet, raw elements, text | a file | |
| a dataset of an HDF5 file | a dataset of that name | its attributes, and all else in the file |
| an array of a zarr store | an array at that path | its attributes, and the other members of its group |
| a folder of Parquet files | a folder with nothing but such | |

All else that lies at the place is left alone: a FileExistsError, before anything is computed, says what it is
and the way out. (A folder where a file would be is Python's IsADirectoryError, the reverse its
NotADirectoryError.)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import Any

from spartan_ng.extras import needed
from spartan_ng.sources.files import is_folder, signs, system

_SAID = 5
"""Names of what lies there that an error says."""


def refused(call: str, path: str, found: str, way: str) -> FileExistsError:
    """The error of a write to a place where something else lies."""
    return FileExistsError(f"{call}: {path} {found}, which is left alone; {way}")


def some(names: Iterable[str]) -> str:
    """A few of some names."""
    every = sorted(names)
    more = f" and {len(every) - _SAID} more" if len(every) > _SAID else ""
    return ", ".join(every[:_SAID]) + more


def check_unchanged(call: str, path: str, before: tuple[int, ...] | None) -> None:
    """FileExistsError where another file is there by now than the one whose contents are kept."""
    if signs(path) != before:
        raise refused(call, path, "has been written to meanwhile", "write again")


def check_tables(path: str) -> None:
    """FileExistsError where a folder has something else than Parquet files."""
    if not os.path.isdir(path):
        return
    with os.scandir(path) as entries:
        _check_all_tables(path, [(e.name, e.is_file()) for e in entries])


def check_tables_at(url: str, options: dict[str, Any] | None) -> None:
    """The same of a folder at a URL."""
    if is_folder(f"{url.rstrip('/')}/", options):
        files, path = system(url.rstrip("/"), options)
        files.invalidate_cache(path)
        inside = files.ls(path, detail=True)
        _check_all_tables(url, [(f["name"].rpartition("/")[2], f["type"] == "file") for f in inside])


def _check_all_tables(path: str, inside: Iterable[tuple[str, bool]]) -> None:
    """`inside` has names, and whether each is that of a file."""
    others = [name for name, is_file in inside if not (is_file and name.endswith(".parquet"))]
    if others:
        found = f"has something else than Parquet files: {some(others)}"
        raise refused("to_parquet", path, found, "name a folder for the tables alone")


def checked_dataset(path: str, name: str) -> str:
    """The name of a dataset without what h5py would not have in it; FileExistsError where an HDF5 file cannot
    take one of that name, or there is another file."""
    parts = group_names(name)
    if not parts:
        raise ValueError(f"to_hdf5: {name!r} is no name of a dataset")
    if is_filled(path):
        _check_inside(path, parts)
    return "/".join(parts)


def _check_inside(path: str, parts: list[str]) -> None:
    h5py = needed("h5py", "hdf5")
    if not h5py.is_hdf5(path):
        raise refused("to_hdf5", path, "is no HDF5 file", "name another, or remove it first")
    with h5py.File(path, "r") as file:
        if file.mode != "r":  # this process has it open otherwise
            raise OSError(errno.EBUSY, "open for writing elsewhere in this program; close it first", path)
        there: Any = file
        for k, part in enumerate(parts):
            link, found = there.get(part, getlink=True), there.get(part)
            if link is None:
                return
            wrong = _in_the_way(link, found, k == len(parts) - 1)
            if wrong:
                at = "/".join(parts[: k + 1])
                raise refused("to_hdf5", path, f"has at {at!r} {wrong}", "give another name")
            there = found


def group_names(name: str) -> list[str]:
    """The names of groups that lead to a dataset, and its own."""
    return [part for part in name.split("/") if part not in ("", ".")]


def holds_more(path: str, name: str) -> bool:
    """Whether an HDF5 file, which `checked_dataset` has looked at, has something besides one dataset."""
    if not is_filled(path):
        return False
    h5py = needed("h5py", "hdf5")
    with h5py.File(path, "r") as file:
        there: Any = file
        if file.userblock_size:
            return True
        for part in group_names(name):
            if len(there.attrs) or any(other != part for other in there):
                return True
            link = there.get(part, getlink=True)
            if not isinstance(link, h5py.HardLink):
                return False
            there = there[part]
        return False


def _in_the_way(link: Any, found: Any, is_last: bool) -> str:
    """What lies in an HDF5 file where a dataset, or a group around it, is to be."""
    h5py = needed("h5py", "hdf5")
    if is_last:
        if isinstance(found, h5py.Group):
            return f"a group of {some(found) or 'nothing'}"
        return "a named datatype" if isinstance(found, h5py.Datatype) else ""
    if isinstance(link, h5py.ExternalLink):
        return f"a link to {link.filename}"
    return "" if isinstance(found, h5py.Group) else "no group"


def is_filled(path: str) -> bool:
    """Whether there is a file with something in it."""
    return os.path.exists(path) and os.path.getsize(path) > 0
