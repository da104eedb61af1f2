"""The switch in front of each fault. It knows nothing else: every process imports it, the compiler's, too.

Who comes by is noted in a file that all of them share, a byte for each fault; see `record`.
"""

from __future__ import annotations

import mmap
import os

NUMBER, REACHED = "SPARTAN_NG_MUTANT", "SPARTAN_NG_MUTANTS_REACHED"
"""The variables that say which fault is there, and the file to note in."""

active = int(os.environ.get(NUMBER, "-1"))


def _shared() -> mmap.mmap | bytearray:
    path = os.environ.get(REACHED)
    if path is None:
        return bytearray(1 << 16)
    with open(path, "r+b") as file:
        return mmap.mmap(file.fileno(), 0)


_reached = _shared()


def at(number: int) -> bool:
    """Whether the fault of this number is there; somebody has come by."""
    _reached[number] = 1
    return number == active


def clear() -> None:
    """Forget who has come by."""
    _reached[:] = bytes(len(_reached))


def reached() -> list[int]:
    """The faults that somebody has come by, in any process."""
    return [number for number, was in enumerate(_reached[:]) if was]
