"""Memory that processes of one user share: files without a name, which the others open through /proc.

The kernel frees one with the last process that has it, however that ends.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

from spartan_ng.system import library

_fcntl = library.module("fcntl")
_PUNCH = 0x02 | 0x01
"""fallocate: PUNCH_HOLE | KEEP_SIZE."""


def create(size: int) -> int:
    """The descriptor of a new segment, without pages yet, that stays of this size; OSError where there is
    none to be had."""
    if _fcntl is None or not hasattr(os, "memfd_create"):
        raise OSError("this system has none that others could map")
    descriptor = os.memfd_create("spartan-ng", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
        # Were it shortened under whoever has mapped it, the next access would end that process.
        _fcntl.fcntl(descriptor, _fcntl.F_ADD_SEALS, _fcntl.F_SEAL_SHRINK | _fcntl.F_SEAL_GROW)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def give_back_pages(descriptor: int, size: int) -> None:
    """Free a segment's memory, but neither it nor its maps: they read as zeros."""
    if library.fallocate is not None:
        library.fallocate(descriptor, _PUNCH, 0, size)


def open_of(process: int, descriptor: int, flags: int) -> int:
    """A descriptor of our own for what another process has open under one of its own; OSError where it may
    not be had."""
    return os.open(f"/proc/{process}/fd/{descriptor}", flags)


def is_of(descriptor: int, size: int) -> bool:
    """Whether a segment has that size for good; OSError where it is none."""
    seals = 0 if _fcntl is None else _fcntl.fcntl(descriptor, _fcntl.F_GET_SEALS)
    return bool(seals and seals & _fcntl.F_SEAL_SHRINK) and os.fstat(descriptor).st_size == size


def is_nameless(found: os.stat_result) -> bool:
    """Whether it is a file of this user's that nobody finds who is not shown it."""
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 0 and found.st_uid == os.getuid()


@cache
def host_identity() -> str:
    """Equal for processes of one user that see each other's /proc: same kernel, namespaces and user id.

    "" where memory cannot be shared. The network namespace counts, too: who keeps two apart wants two hosts.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # Containers share a kernel, and may see none of each other's processes.
        namespaces = [os.stat(f"/proc/self/ns/{kind}").st_ino for kind in ("pid", "net", "user")]
    except OSError:
        return ""
    return ":".join(map(str, (boot, *namespaces, os.getuid())))
