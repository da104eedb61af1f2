"""What a disk has free, asked before anything is written: who fills a disk first takes it from all others.

A file whose size is known is refused where there is no room for it. How large what is packed will be nobody
knows: it is written as long as something is left to others.
"""

from __future__ import annotations

import errno
import os

from msgspec import Struct

from spartan_ng.errors import OutOfResources
from spartan_ng.system.files import free_bytes

_OTHERS_SHARE, _OTHERS_BYTES = 32, 1 << 30
"""What is packed leaves others one part in so many of what was free, but no more than this."""
_FEW_BYTES = 1 << 16
"""These take no longer to write than to ask for, and fill no disk."""
_WAY = "name a place on another (what goes to a URL is put together in config.disk_folder), or write less"


def check_room(path: str, nbytes: int) -> None:
    """OutOfResources where the disk on which `path` is to be has less than so many bytes free; a few are not
    asked for."""
    if nbytes < _FEW_BYTES:
        return
    free = free_bytes(_folder(path))
    if free is not None and nbytes > free:
        raise _refusal(path, f" of {nbytes:,} bytes", free)


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


def _folder(path: str) -> str:
    """The nearest folder around a place that is there."""
    around = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(around):
        around = os.path.dirname(around)
    return around


def _refusal(path: str, what: str, free: int) -> OutOfResources:
    return OutOfResources(errno.ENOSPC, f"{path}{what}: its disk has {free:,} bytes free: {_WAY}")
