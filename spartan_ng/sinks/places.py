"""Names beside the place that something is to take, room on the disk, and how it takes the place."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from contextlib import suppress

_libc = ctypes.CDLL(None, use_errno=True)
_HERE, _EXCHANGE = -100, 2
"""renameat2: paths are relative to where the process is; swap the two."""


def new_file(path: str) -> tuple[int, str]:
    """A new file beside `path`, open, and its name."""
    folder, name = os.path.split(path)
    return tempfile.mkstemp(os.path.splitext(name)[1], name + ".", folder)


def set_aside(descriptor: int, nbytes: int) -> None:
    """Make a file so long, and have the disk keep place for all of it; OSError where it has none.

    Who writes to the file through a map would be ended by the kernel on a disk that is full. It is faster,
    too: pages find their places.
    """
    while _libc.fallocate(descriptor, 0, ctypes.c_long(0), ctypes.c_long(nbytes)):
        number = ctypes.get_errno()
        if number in (errno.EOPNOTSUPP, errno.ENOSYS):  # a file system that cannot tell
            os.ftruncate(descriptor, nbytes)
            return
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


def new_folder(path: str) -> str:
    """A new folder beside `path`."""
    folder, name = os.path.split(path)
    made = tempfile.mkdtemp(os.path.splitext(name)[1], name + ".", folder)
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(made, 0o777 & ~mask)
    return made


def mode_of(path: str) -> int:
    """The permissions of the file that is there; of a new one, what the process gives its files."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def take_place(folder: str, path: str) -> None:
    """Rename a folder to `path`, and remove the folder that was there; at no time is there none."""
    if not os.path.lexists(path):
        os.rename(folder, path)
        return
    if _libc.renameat2(_HERE, os.fsencode(folder), _HERE, os.fsencode(path), _EXCHANGE) == 0:
        shutil.rmtree(folder)
        return
    old = new_folder(path)  # a file system that cannot swap: there is a moment without either
    os.rename(path, old)
    os.rename(folder, path)
    shutil.rmtree(old)
