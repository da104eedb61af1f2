"""What the machine has, asked of Linux where it is there, and guessed with care where it is not.

The first part of what is Linux's own: its processors and its memory. Shared memory, sockets' peers and
processes are still asked where they are used.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress

UNKNOWN_BYTES = 4 * 2**30
"""Taken for the machine's memory where the system does not say."""

_processor = getattr(ctypes.PyDLL(None), "sched_getcpu", None) if os.name == "posix" else None


def processor() -> int:
    """The processor that this thread runs on; -1 where the system does not say."""
    return -1 if _processor is None else int(_processor())


def keep_off(avoided: int, threads: Sequence[int]) -> None:
    """Let threads of this process, by their native numbers, run on all processors that it may use but one.

    Nothing where there is no other, and where the system has no such thing.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    others = os.sched_getaffinity(0) - {avoided}
    for thread in threads if others else ():
        # A system may forbid it, or have ended the thread: it only helps less.
        with suppress(OSError):
            os.sched_setaffinity(thread, others)


def cores() -> int:
    """Processors that this process may use; all of the machine's where the system knows no affinity."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def machine_bytes() -> int:
    """The machine's memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_BYTES


def resident_bytes() -> int:
    """Memory that this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError):
        return 0
