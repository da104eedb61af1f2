"""Room on the disk, folders that are swapped, locks, reads and writes at a place."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from spartan_ng.system import library
from spartan_ng.system.library import INT, TEXT

_fcntl = library.module("fcntl")
_renameat2 = library.function("renameat2", [INT, TEXT, INT, TEXT, INT])
_HERE, _EXCHANGE = -100, 2
"""renameat2: paths are relative to where the process is; swap the two."""
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
_PAGE = bytes(1 << 20)
_one_seeks, _one_writes = threading.Lock(), threading.RLock()


def free_bytes(place: str | int) -> int | None:
    """What the disk of a file or folder, by its name or open, has room for; None where nobody can tell, as of
    file systems without a size."""
    if not hasattr(os, "statvfs"):
        return shutil.disk_usage(place).free if isinstance(place, str) else None
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize if found.f_blocks else None


def set_aside(descriptor: int, offset: int, nbytes: int) -> None:
    """Have the disk keep place for the bytes from an offset on, and make a file so long that is shorter;
    OSError where the disk has none.

    A disk is asked first: until it says that it has no room, all others have none.
    Who writes to the file through a map would be ended by the kernel on a disk that is full. It is faster,
    too: pages find their places. Where the system cannot tell, zeros are written: they take the room.
    """
    if not nbytes:
        return
    free = free_bytes(descriptor)
    if free is not None and nbytes > free:
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: the disk has {free:,} bytes free")
    if library.fallocate is None:
        _fill(descriptor, offset + nbytes)
        return
    while library.fallocate(descriptor, 0, offset, nbytes):
        error = library.last_error()
        if error.errno in (errno.EOPNOTSUPP, errno.ENOSYS):  # a file system that cannot tell
            os.ftruncate(descriptor, max(offset + nbytes, os.fstat(descriptor).st_size))
            return
        if error.errno != errno.EINTR:
            raise error


def _fill(descriptor: int, nbytes: int) -> None:
    here = os.lseek(descriptor, 0, os.SEEK_CUR)
    left = nbytes - os.lseek(descriptor, 0, os.SEEK_END)
    while left > 0:
        left -= os.write(descriptor, _PAGE[:left])
    os.lseek(descriptor, here, os.SEEK_SET)


def swap(one: str, other: str) -> bool:
    """Have two names in one folder change places at once; False where the system or the disk cannot."""
    if _renameat2 is None:
        return False
    return bool(_renameat2(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


@contextmanager
def locked(path: str, waits: bool = True, alone: bool = True) -> Iterator[bool]:
    """Hold the lock of that name, alone among threads and processes; the file is made if need be.

    Who does not wait is told whether it is theirs. Who does not ask to be `alone` holds it with others who do
    not, and the file is to be there: FileNotFoundError. Where the system has no locks on files, it is among
    the threads of this process, one at a time: others have it only in clusters.
    """
    if _fcntl is None:
        if not alone:
            os.stat(path)
        has_it = _one_writes.acquire(blocking=waits)
        try:
            yield has_it
        finally:
            if has_it:
                _one_writes.release()
        return
    descriptor = os.open(path, (os.O_CREAT if alone else 0) | os.O_RDWR, 0o600)
    try:
        yield _is_taken(descriptor, waits, _fcntl.LOCK_EX if alone else _fcntl.LOCK_SH)
    finally:
        with suppress(OSError):
            _fcntl.flock(descriptor, _fcntl.LOCK_UN)  # a process that was forked meanwhile has it open, too
        os.close(descriptor)


def _is_taken(descriptor: int, waits: bool, how: int) -> bool:
    """Take the lock of an open file; whether it is free, if nobody waits."""
    try:
        _fcntl.flock(descriptor, how if waits else how | _fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a file system without locks: nobody else has it, as far as can be told
        if error.errno not in _NO_LOCKS or (waits and how == _fcntl.LOCK_EX):
            raise
    return True


def write_at(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all of `data` at an offset; any thread may, at any time."""
    while data:
        if hasattr(os, "pwrite"):
            count = os.pwrite(descriptor, data, offset)
        else:
            with _one_seeks:
                os.lseek(descriptor, offset, os.SEEK_SET)
                count = os.write(descriptor, data)
        data, offset = data[count:], offset + count


def read_at(descriptor: int, into: memoryview, offset: int) -> int:
    """Read what lies at an offset, and say how many bytes came; any thread may, at any time."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [into], offset)
    # The place in a file is its descriptor's, which all threads share.
    with _one_seeks:
        os.lseek(descriptor, offset, os.SEEK_SET)
        read = os.read(descriptor, len(into))
    into[: len(read)] = read
    return len(read)
