"""Where in zarr stores an array goes: a place of its own, or among the members of a group.

An array takes the place of an array (`sinks.taken`). Where the folder above is a group, the array is a member
of it, of the group's format, and groups between that are not there yet are made when it is complete. What
groups say of all their members in one place (consolidated metadata) is taken back before that, and said anew
afterwards: who is interrupted leaves groups that are read member by member.
"""

from __future__ import annotations

import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from msgspec import Struct

from spartan_ng.extras import needed
from spartan_ng.sinks.places import check_folder, new_file, new_folder, take_place, take_place_at
from spartan_ng.sinks.taken import group_names, refused, some
from spartan_ng.sources.files import as_zarr_takes, is_folder, is_there, is_url, names_in, open_file, system
from spartan_ng.sources.servers import patient, taken_by_server

_OWN = re.compile(r"zarr\.json|\.zarray|\.zattrs|\.lock-.*|.*\.partial|(c|\d+)(\.\d+)*")
"""What lies in the folder of an array: its description, its chunks in any way of naming them."""
_CONSOLIDATED = ".zmetadata"
"""Of a group of format 2; in format 3 its description has it."""
_NAMES = "_ARRAY_DIMENSIONS"
"""The attribute in which xarray has the names of dimensions in format 2."""


class ArrayPlace(Struct, frozen=True):
    """A place that `array_place` has found free.

    `above` are the groups that have it, from the nearest on; `missing` those that are to be made, from the
    outermost on.
    """

    url: str
    name: str
    path: str
    zarr_format: int
    above: tuple[str, ...]
    missing: tuple[str, ...]
    options: dict[str, Any] | None

    def folder_beside(self) -> str:
        """A new folder to write the array in: beside the outermost group, which does not show it, where that
        folder is of the same disk and may be written to."""
        outermost = (*self.above[-1:], *self.missing, self.path)[0]
        around = os.path.dirname(outermost)
        is_ours = os.access(around, os.W_OK | os.X_OK)
        # It could not be renamed to its place: inside the group it can, where readers may see it for a while.
        if self.above and not (is_ours and _device(around) == _device(outermost)):
            return new_folder(os.path.join(self.above[0], os.path.basename(self.path)))
        return new_folder(outermost)

    def noted(self, ndim: int) -> dict[str, Any]:
        """What the array keeps of the one whose place it takes, for `zarr.create_array`: attributes, and the
        names of dimensions where there are as many."""
        kind, before = _node(self.path, self.options)
        if kind != "array":
            return {}
        described = _description(self.path, self.options, "zarr.json" if before == 3 else ".zattrs")
        attributes = described.get("attributes") or {} if before == 3 else described
        names = described.get("dimension_names") if before == 3 else attributes.pop(_NAMES, None)
        if not isinstance(names, list) or len(names) != ndim:
            return {"attributes": attributes}
        if self.zarr_format == 2:
            return {"attributes": {**attributes, _NAMES: names}}
        return {"attributes": attributes, "dimension_names": names}

    def take(self, put: Callable[[str], Any]) -> None:
        """Have the array put there, between what is to be done of groups before and afterwards."""
        again = not is_url(self.path)  # at a URL the array itself may be there by now
        now = array_place(self.url, self.name, self.zarr_format, self.options) if again else self
        # Readers believe what a group says of all its members, and would not see a new one.
        said = [group for group in now.above if now._take_back(group)]
        for group in now.missing:
            needed("zarr", "zarr").open_group(
                as_zarr_takes(group), mode="a", zarr_format=self.zarr_format, storage_options=self.options
            )
        put(now.path)
        for group in said:
            _consolidate(group, now.zarr_format, now.options)

    def _take_back(self, group: str) -> bool:
        """Whether a group has said what all its members are; it no longer does."""
        if self.zarr_format == 2:
            return is_there(f"{group}/{_CONSOLIDATED}", self.options) and _remove(group, self.options)
        described = _description(group, self.options)
        if not described.get("consolidated_metadata"):
            return False
        import json

        del described["consolidated_metadata"]
        _write(f"{group}/zarr.json", json.dumps(described, indent=2).encode(), self.options)
        return True


def array_place(
    url: str, name: str = "", zarr_format: int | None = None, options: dict[str, Any] | None = None
) -> ArrayPlace:
    """Where an array goes that is called `name` in a store; nothing is made.

    Raises
    ------
    FileExistsError : something else than an array lies there; FileNotFoundError, PermissionError : a local
    folder cannot be made there; ValueError : the group has another format
    """
    url, parts = url if is_url(url) else os.path.abspath(url), group_names(name)
    options = patient(url, options)
    path = "/".join([url.rstrip("/"), *parts])
    # A link's target is written to, and not replaced.
    if not is_url(path):
        path = os.path.realpath(path)
    _check_own(path, options)
    above, missing = _around(path, len(parts), options)
    if not is_url(path):
        check_folder((*missing, path)[0])
    found = _node(above[0], options)[1] if above else zarr_format or 3
    if found != (zarr_format or found):
        raise ValueError(f"to_zarr: {above[0]} is a group of format {found}, whose arrays have no other")
    return ArrayPlace(url, name, path, found, tuple(above), tuple(missing), options)


@contextmanager
def filled(place: ArrayPlace) -> Iterator[str]:
    """Where to write an array from here: what it takes the place of stays until it is complete, and after an
    error."""
    if not is_url(place.path):
        made = place.folder_beside()
        with _removed_on_errors(lambda: shutil.rmtree(made, ignore_errors=True)):
            yield made
            place.take(lambda path: take_place(made, path))
        return
    files, at = system(place.path, place.options)
    is_old = files.exists(at)
    made, written = at, place.path
    if is_old:
        word = uuid4().hex
        made, written = _hidden(made, word), _hidden(written, word)

    moving = False

    def put(path: str) -> None:
        nonlocal moving
        moving = is_old
        if is_old:
            take_place_at(files, made, at)

    with (
        _removed_on_errors(lambda: moving or (files.exists(made) and files.rm(made, recursive=True))),
        taken_by_server(place.path),
    ):
        yield written
        place.take(put)


def _check_own(path: str, options: dict[str, Any] | None) -> None:
    """FileExistsError where something else than an array is at the place itself."""
    kind, names = _node(path, options)[0], names_in(path, options)
    if kind == "group":
        inside = some(n for n in names or () if not n.startswith(".") and n != "zarr.json")
        way = "name one of its members, or a new one (name=...)"
        raise refused("to_zarr", path, f"is a group of {inside or 'nothing'}", way)
    others = [n for n in names or () if kind != "array" or not _OWN.fullmatch(n)]
    if others:
        what = "is a folder with something else than a zarr array" if kind else "is no zarr array, and has"
        raise refused("to_zarr", path, f"{what}: {some(others)}", "name another, or remove it first")
    if names is None and is_url(path) and is_there(path, options):
        raise refused("to_zarr", path, "is a file", "name another, or remove it first")


def _around(path: str, named: int, options: dict[str, Any] | None) -> tuple[list[str], list[str]]:
    """The groups that have a place, from the nearest on, and those that are missing between, from the
    outermost on; the nearest `named` folders are to be groups."""
    above: list[str] = []
    missing: list[str] = []
    is_plain = False
    for k, parent in enumerate(_parents(path)):
        kind, _ = _node(parent, options)
        if kind == "array":
            raise refused("to_zarr", parent, "is an array, which has no members", "name another store")
        # A plain folder ends the hierarchy, but an array further up would still have this inside.
        if is_plain:
            continue
        if kind:
            above.append(parent)
        elif above:
            is_plain = True
        elif is_folder(f"{parent}/", options):
            is_plain, names = True, names_in(parent, options)
            if k < named and names:
                found = f"is no zarr group, and has {some(names)}"
                raise refused("to_zarr", parent, found, "name another store")
            if k < named:
                missing.append(parent)
        else:
            missing.append(parent)
    return above, missing[::-1] if above else missing[:named][::-1]


def _parents(path: str) -> Iterator[str]:
    """The folders around a place, from the nearest on."""
    scheme, mark, rest = path.partition("://") if is_url(path) else ("", "", path)
    while "/" in rest.strip("/"):
        rest = rest.rpartition("/")[0]
        yield f"{scheme}{mark}{rest}"


def _node(path: str, options: dict[str, Any] | None) -> tuple[str, int]:
    """What a folder is of zarr's, "array" or "group", and of which format; "" for something else."""
    if is_there(f"{path}/zarr.json", options):
        return _description(path, options).get("node_type", ""), 3
    for head, kind in (("zarray", "array"), ("zgroup", "group")):
        if is_there(f"{path}/.{head}", options):
            return kind, 2
    return "", 0


def _description(path: str, options: dict[str, Any] | None, name: str = "zarr.json") -> dict[str, Any]:
    """What a file says of a node, that of format 3 its description; nothing where that cannot be read."""
    import json  # for stores alone

    with suppress(ValueError, OSError), open_file(f"{path}/{name}", options) as file:
        found = json.loads(file.read())
        return found if isinstance(found, dict) else {}
    return {}


def _consolidate(group: str, zarr_format: int, options: dict[str, Any] | None) -> None:
    zarr: Any = needed("zarr", "zarr")
    store: Any = as_zarr_takes(group)
    if is_url(group):
        store = zarr.storage.FsspecStore.from_url(group, storage_options=options, read_only=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # format 3 does not define it, and this group has had it
        zarr.consolidate_metadata(store, zarr_format=zarr_format)


def _write(path: str, data: bytes, options: dict[str, Any] | None) -> None:
    """A small file, in the place of the one that is there."""
    if is_url(path):
        files, at = system(path, options)
        files.pipe_file(at, data)
        return
    descriptor, temporary = new_file(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    # New files of `mkstemp` are the user's alone.
    shutil.copymode(path, temporary)
    os.replace(temporary, path)


def _remove(group: str, options: dict[str, Any] | None) -> bool:
    path = f"{group}/{_CONSOLIDATED}"
    if is_url(path):
        files, at = system(path, options)
        files.rm_file(at)
    else:
        os.unlink(path)
    return True


def _hidden(path: str, word: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.{word}"


def _device(path: str) -> int:
    return os.stat(path).st_dev


@contextmanager
def _removed_on_errors(remove: Callable[[], Any]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(Exception):
            remove()
        raise
