"""What a disk has free, asked before anything is written: who fills a disk first takes it from all others.

A file whose size is known is refused where there is no room for it. How large what is packed will be nobody
knows: it is written as long as something is left to others.
"""

from __future__ import annotations

import errno
import os
from typing import Any

from msgspec import Struct

from spartan_ng.errors import OutOfResources
from spartan_ng.system.files import free_bytes

_OTHERS_SHARE, _OTHERS_BYTES = 32, 1 << 30
"""What is packed leaves others one part in so many of what was free, but no more than this."""
_FEW_BYTES = 1 << 16
"""These take no longer to write than to ask for, and fill no disk."""
_WATCHED_BYTES = 1 << 24
"""So many are written before a disk is asked again."""
_WAY = "name a place on another (what goes to a URL is put together in config.disk_folder), or write less"


def check_room(path: str, nbytes: int, about: str = "") -> None:
    """OutOfResources where the disk on which `path` is to be has less than so many bytes free (or "about " so
    many); a few are not asked for."""
    if nbytes < _FEW_BYTES:
        return
    free = free_bytes(_folder(path))
    if free is not None and nbytes > free:
        raise _refusal(path, f" of {about}{nbytes:,} bytes", free)


class Leftover(Struct, frozen=True):
    """What is left to others of the disk of a folder while something is packed there.

    Parameters
    ----------
    path : what is written
    folder : one on the same disk that is there
    least_bytes : that stay free
    """

    path: str
    folder: str
    least_bytes: int

    def check(self) -> None:
        """OutOfResources where there is no more than that."""
        free = free_bytes(self.folder)
        if free is not None and free < self.least_bytes:
            raise _refusal(
                self.path, f" was given up, so that {self.least_bytes:,} bytes stay to others", free
            )


def leftover(path: str) -> Leftover:
    """Of the disk on which `path` is to be."""
    folder = _folder(path)
    return Leftover(path, folder, min((free_bytes(folder) or 0) // _OTHERS_SHARE, _OTHERS_BYTES))


class SparingFile:
    """An open file of which nobody knows how long it will be: it takes what is written to it as long as
    something of its disk stays to others."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._left, self._since = file, leftover(path), 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> Any:
        """Write to the file; OutOfResources where too little is left."""
        self._since += len(data)
        if self._since >= _WATCHED_BYTES:
            self._since = 0
            self._file.flush()
            self._left.check()
        return self._file.write(data)


def _folder(path: str) -> str:
    """The nearest folder around a place that is there."""
    around = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(around):
        around = os.path.dirname(around)
    return around


def _refusal(path: str, what: str, free: int) -> OutOfResources:
    return OutOfResources(errno.ENOSPC, f"{path}{what}: its disk has {free:,} bytes free: {_WAY}")
