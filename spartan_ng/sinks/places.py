"""Names beside the place that something is to take, and how it takes the place."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress

from spartan_ng.system.files import swap


def new_file(path: str) -> tuple[int, str]:
    """A new file beside `path`, open, and its name."""
    folder, name = os.path.split(path)
    return tempfile.mkstemp(os.path.splitext(name)[1], name + ".", folder)


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
    if swap(folder, path):
        shutil.rmtree(folder)
        return
    old = new_folder(path)  # a file system that cannot swap: there is a moment without either
    os.rename(path, old)
    os.rename(folder, path)
    shutil.rmtree(old)
