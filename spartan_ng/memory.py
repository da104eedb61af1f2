"""The memory that this process may use: the machine's, or what its control group leaves of it; what may be
worked on and read at a time of it; and the disk, for what memory has no room for."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache

from spartan_ng.config import config
from spartan_ng.system.machine import cores, group_limits, machine_bytes, process_limits

SHARES = (2, 3)
"""Arrays may take two thirds of it; the rest is for the program, its libraries and the pages of files."""
_COPIES = 4

READERS, _UNPACKED_SHARE = 4, 4
"""Threads that read ahead in a pass over what lies outside; and all that they have unpacked besides what they
give is no more than one part in so many of the memory, unless one of them has more."""

BLOCK_BYTES, _BLOCKS_SHARE = 1 << 23, 8
"""What a thread works on at a time takes no more than this, and that of all threads no more than one part in
so many of the memory."""
_LINES_SHARE = 2
"""Lines and matrices that no block may cut take no more than one part in so many of it, unless one does."""
BAND_BYTES = 1 << 24
"""What is read at a time of what lies outside: enough for a disk to stream, and for a chunk or a few."""
BANDS_SHARE, BESIDE = 4, 7
"""All that is in memory of sources is no more than one part in so many of it; and beside what each thread has
so many bands are there: read ahead, and on their way from the source."""


def budget_bytes() -> int:
    """What arrays may take: `config.memory_bytes` (in a worker's process what it was started with), or two
    thirds of what this process has."""
    if config.memory_bytes is not None:
        return config.memory_bytes
    part, whole = SHARES
    return available_bytes() * part // whole


def copied_bytes(budget: int | None = None) -> int:
    """What an array may take, of this process's budget or another, that is copied, and copied again, before
    anything is made of it."""
    return (budget_bytes() if budget is None else budget) // _COPIES


def block_bytes(memory: int | None = None, most: int = BLOCK_BYTES) -> int:
    """What a block that one thread works on may take, in this process or in one with so much memory: at most
    `most`, or what is usual.

    Such another is taken to have as many threads as this one.
    """
    return min(max(BLOCK_BYTES, most), _of(memory) // (_BLOCKS_SHARE * threads()))


def band_bytes(memory: int | None = None) -> int:
    """What is read at a time of what lies outside, in this process or in one with so much memory."""
    return min(BAND_BYTES, _of(memory) // (BANDS_SHARE * (threads() + BESIDE)))


def _of(memory: int | None) -> int:
    return budget_bytes() if memory is None else memory


def threads_at_work(each: int, memory: int | None = None) -> int:
    """How many threads, of this process or of one with so much memory, work at a time on what takes so many
    bytes each and cannot be cut."""
    return max(1, min(threads(), _of(memory) // _LINES_SHARE // max(each, 1)))


def unpacked_bytes(memory: int | None = None) -> int:
    """What all who read may have unpacked at a time besides what they give, of this process's memory or of so
    much."""
    return _of(memory) // _UNPACKED_SHARE


def readers_at_once(each: int, memory: int | None = None) -> int:
    """How many threads, of this process or of one with so much memory, read at a time where each has so many
    bytes besides what it gives."""
    return max(1, min(READERS, unpacked_bytes(memory) // max(each, 1)))


def too_large(what: str, nbytes: int, memory_bytes: int) -> str:
    """Why something cannot be read, whose chunks are larger than the memory."""
    return (
        f"{what}: to unpack one chunk of what is read takes {nbytes:,} bytes, with a budget of "
        f"{memory_bytes:,} bytes: raise config.memory_bytes (a worker's --memory) to more than that, or have "
        "it written in smaller chunks"
    )


def threads() -> int:
    """How many threads of this process compute."""
    return config.threads or cores()


def disk_folder() -> str:
    """Where arrays go that do not fit: `config.disk_folder`, or the system's folder for temporary files."""
    return config.disk_folder or tempfile.gettempdir()


def free_disk_bytes() -> int:
    """What the disk of that folder has room for."""
    return shutil.disk_usage(disk_folder()).free


@cache
def available_bytes() -> int:
    """Memory of the machine, or what control groups or the process's own limits leave of it."""
    return min([machine_bytes(), *group_limits(), *process_limits()])
