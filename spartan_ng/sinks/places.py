"""Whether something can be written to a place, names beside it, and how what is written takes it."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha1
from typing import IO, Any

from spartan_ng.errors import OutOfResources
from spartan_ng.sinks.disks import check_room
from spartan_ng.sinks.sink import REFUSALS
from spartan_ng.sources.files import local_name
from spartan_ng.system.files import swap
from spartan_ng.system.processes import has_ended
from spartan_ng.system.segments import host_identity

_TRIES = 16
"""Writes that ask a disk why it takes no more; there may be room by then."""
_NAME, _SUFFIX = 50, 16
"""Characters of a name, and of its suffix, that a name beside it has: systems take 255 bytes."""
_LARGE = 1 << 24
"""Bytes from which on a write looks for what was left of others: a folder may have many names."""


def check_file(path: str) -> None:
    """The OSError of opening a file to write to it, before work begins; nothing is made."""
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise _refused(errno.EISDIR, path)
    if not os.path.exists(real):
        _check_inside(os.path.dirname(real), path)
    elif not os.access(real, os.W_OK):
        raise _refused(errno.EACCES, path)


def check_folder(path: str) -> None:
    """The OSError of putting a folder at `path`, whether one is there or none; nothing is made."""
    real = os.path.realpath(path)
    if os.path.exists(real) and not os.path.isdir(real):
        raise _refused(errno.ENOTDIR, path)
    _check_inside(os.path.dirname(real), path)


def check_new_folder(path: str) -> None:
    """The OSError of writing into a folder, which is made where there is none, with those above it."""
    there = os.path.realpath(path)
    while not os.path.exists(there):
        there = os.path.dirname(there)
    _check_inside(there, path)


def _check_inside(folder: str, path: str) -> None:
    """The OSError of making `path` in a folder."""
    if not os.path.exists(folder):
        raise _refused(errno.ENOENT, path)
    if not os.path.isdir(folder):
        raise _refused(errno.ENOTDIR, path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _refused(errno.EACCES, path)


def _refused(number: int, path: str) -> OSError:
    """Of the kind that Python raises for the number."""
    return OSError(number, os.strerror(number), path)


def new_file(path: str) -> tuple[int, str]:
    """A new file beside `path`, open, and its name, which is hidden: globs and folders do not mean it."""
    return tempfile.mkstemp(*_beside(path))


def new_folder(path: str) -> str:
    """A new folder beside `path`, hidden as new files are, instead of what was left of others."""
    remove_unfinished(path, _LARGE)
    made = tempfile.mkdtemp(*_beside(path))
    mask = os.umask(0)
    os.umask(mask)
    # `mkdtemp` lets nobody else in, which is not what the user's folders do.
    os.chmod(made, 0o777 & ~mask)
    return made


def _beside(path: str) -> tuple[str, str, str]:
    """The suffix and the prefix of a name beside `path` that says who writes, and the folder."""
    folder, name = os.path.split(path)
    return os.path.splitext(name)[1][:_SUFFIX], f".{name[:_NAME]}.{_host()}-{os.getpid()}-", folder


@cache
def _host() -> str:
    """A short name of this system since it was started; empty where nobody can be told from others."""
    host = host_identity()
    return sha1(host.encode(), usedforsecurity=False).hexdigest()[:8] if host else ""


def remove_unfinished(path: str, nbytes: int) -> None:
    """Remove what was to be at `path` and was left unfinished, before a large file or folder takes its place.

    That is what processes of this system have left that have ended; of those of others nobody here can tell.
    """
    if nbytes < _LARGE or not _host():
        return
    folder, name = os.path.split(path)
    written = re.compile(re.escape(f".{name[:_NAME]}.{_host()}-") + r"(\d+)-")
    with suppress(OSError):  # who may not look, or not remove it, leaves it there
        for left in os.listdir(folder):
            found = written.match(left)
            if found is not None and has_ended(int(found[1])):
                _remove(os.path.join(folder, left))


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)


def mode_of(path: str) -> int:
    """The permissions of the file that is there; of a new one, what the process gives its files."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def take_place(folder: str, path: str) -> None:
    """Rename a folder to `path`, and remove the folder that was there, whose permissions it gets; at no time
    is there none."""
    # A link that leads nowhere is in the way, too.
    if not os.path.lexists(path):
        os.rename(folder, path)
        return
    if os.path.isdir(path):
        os.chmod(folder, mode_of(path))
    if swap(folder, path):
        shutil.rmtree(folder)
        return
    old = new_folder(path)  # a file system that cannot swap: there is a moment without either
    os.rename(path, old)
    os.rename(folder, path)
    shutil.rmtree(old)


def take_place_at(files: Any, made: str, path: str) -> None:
    """Have the folder `made` of one of fsspec's file systems take the place of the one at `path`.

    There is no swap: for a moment there is neither, and what is made stays where it is if moving it breaks
    off. Stores of objects have no folders, and moving one copies what is in it, file by file.
    """
    from fsspec.spec import AbstractFileSystem  # for URLs alone

    files.invalidate_cache()  # others have written
    files.rm(path, recursive=True)
    try:
        if type(files).mv is not AbstractFileSystem.mv:
            files.mv(made, path, recursive=True)
            return
        inside = files.find(made)
        files.copy(inside, [path + name[len(made) :] for name in inside])
        files.rm(made, recursive=True)
    except Exception as error:
        whole = files.unstrip_protocol(made)
        error.add_note(f"what was written lies whole at {whole}; what it was to replace is gone")
        raise


def file_place(file: str | os.PathLike[str], suffix: str = "", nbytes: int = 0) -> str:
    """Where a file of that name is, with the suffix that NumPy adds; OSError where none can be written, of no
    less than so many bytes."""
    path = local_name(file)
    path = path if path.endswith(suffix) else path + suffix
    check_file(path)
    real = os.path.realpath(path)
    if is_replaceable(real):
        remove_unfinished(real, nbytes)
        check_room(real, nbytes)
    return real


@contextmanager
def replacing(file: str | os.PathLike[str], suffix: str = "", nbytes: int = 0) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of `file` (with `suffix`, as NumPy adds it) at the end; of no
    less than so many bytes."""
    path = file_place(file, suffix, nbytes)
    if not is_replaceable(path):
        with open(path, "wb") as there:
            yield there
        return
    descriptor, temporary = new_file(path)
    try:
        with open(descriptor, "wb") as written:
            os.chmod(temporary, mode_of(path))
            yield written
        remove_unfinished(path, os.path.getsize(temporary))
        os.replace(temporary, path)
    except BaseException as error:
        number = _refusal(error, temporary)
        with suppress(OSError):
            os.unlink(temporary)
        if number:
            kind = OutOfResources if number in REFUSALS else OSError
            raise kind(number, f"{path}: {os.strerror(number)}") from error
        raise


def is_replaceable(path: str) -> bool:
    """Whether another file can take the place: not of a device or a pipe, nor in a closed folder."""
    if not os.path.exists(path):
        return True
    return os.path.isfile(path) and os.access(os.path.dirname(path), os.W_OK)


def _refusal(error: BaseException, path: str) -> int:
    """Why the disk takes no more of a file; 0 where that is not what was wrong.

    NumPy's `tofile` says no more than how many elements it took, so that the disk is asked again; or, before
    it writes any, that there is no room for all.
    """
    if type(error) is not OSError:
        return 0
    if error.errno is not None:
        return error.errno
    if "free space" in str(error):
        return errno.ENOSPC
    try:
        with open(path, "ab", buffering=0) as file:
            file.writelines(bytes(1 << 16) for _ in range(_TRIES))
    except OSError as again:
        return again.errno or 0
    return 0
