"""A sink: where the elements of an array go, box by box, from the workers that make them.

A sink is a function of a block and its place. Mapped over an array it runs in the pass that makes the blocks,
on every worker and in several threads at a time, so nothing of what is written need be in memory at one time.
What it writes is under a name of its own until `finish` puts it in the place of what was there: whoever is
interrupted leaves the old.

- pickled it is small, and what it opens it opens in each process;
- writing a block again changes nothing: a task may be run twice;
- `chunks` are the boxes, counted from the origin, that it is given whole where a worker's part of the array
  has them whole; None: it takes any box.
"""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.errors import OutOfResources

REFUSALS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""What the system says where a disk takes no more."""

# What a map over blocks gives, if it must give anything.
_DONE = np.bool_(True)


@contextmanager
def disk_errors(place: str) -> Iterator[None]:
    """Around a write to a place: what the system says of the disk is an OutOfResources with its number,
    whatever a library has made of it."""
    try:
        yield
    except OutOfResources:
        raise
    except Exception as error:
        number = getattr(error, "errno", None) or _number_in(str(error))
        if number not in REFUSALS:
            raise
        raise OutOfResources(number, f"{place}: {os.strerror(number)}") from error


def _number_in(text: str) -> int:
    """The system's number in a library's words; 0 without."""
    found = re.search(r"(?i)errno[ =]+(\d+)", text)
    return int(found[1]) if found else 0


class Sink(ABC):
    """What blocks are written to; see the module's contract."""

    chunks: tuple[int, ...] | None = None

    @property
    def place(self) -> str:
        """What people call it."""
        return type(self).__name__

    @abstractmethod
    def write(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Put the elements of `box`."""

    def tile(self, box: Box) -> np.ndarray[Any, Any] | None:
        """Where the elements of `box` lie, for who makes a tile of them that memory has no room for, and puts
        nothing else there; None where they have no such place."""
        return None

    @abstractmethod
    def finish(self) -> None:
        """All is written: take the place of what was there."""

    @abstractmethod
    def give_up(self) -> None:
        """Leave what was there, and nothing else."""

    def __call__(self, block: Any, extent: Box) -> np.ndarray[Any, Any]:
        """Write, as a function of blocks; it gives as many trues."""
        if block.size:
            with disk_errors(self.place):
                self.write(np.asarray(block), extent)
        return np.broadcast_to(_DONE, block.shape)
