"""Who the user is, and which files and folders are theirs: what a secret or machine code may be read from."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def user_id() -> int | None:
    """The number of the user in whose name this process acts; None where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def why_not_own(path: str | os.PathLike[str], private: bool = False) -> str | None:
    """Why somebody else could have put something at `path`, or changed it; None if nobody could.

    It must belong to this user, nobody else may write it, and nobody else may put another thing in its place:
    the folders above it are the user's or root's, and those where others may write are sticky. With
    `private`, nobody else may read it, either. Raises OSError where it is not there.
    """
    owner = user_id()
    if owner is None:
        return "this system does not say whose files are"
    at = Path(os.path.abspath(path))
    status = os.lstat(at)
    if stat.S_ISLNK(status.st_mode):
        return f"{at} is a symbolic link"
    if status.st_uid != owner:
        return f"{at} belongs to another user ({status.st_uid})"
    if status.st_mode & (_OTHERS if private else _OTHERS_WRITE):
        may = "read or write" if private else "write"
        return f"others may {may} {at} (mode {stat.S_IMODE(status.st_mode):o})"
    return _why_replaceable(at.parent.resolve(), owner)


def _why_replaceable(folder: Path, owner: int) -> str | None:
    for above in (folder, *folder.parents):
        status = os.stat(above)
        if status.st_uid not in (0, owner):
            return f"{above}, above it, belongs to another user ({status.st_uid})"
        if status.st_mode & _OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            return f"others may write {above}, above it (mode {stat.S_IMODE(status.st_mode):o})"
    return None
