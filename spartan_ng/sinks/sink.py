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

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box

# What a map over blocks gives, if it must give anything.
_DONE = np.bool_(True)


class Sink(ABC):
    """What blocks are written to; see the module's contract."""

    chunks: tuple[int, ...] | None = None

    @abstractmethod
    def write(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Put the elements of `box`."""

    @abstractmethod
    def finish(self) -> None:
        """All is written: take the place of what was there."""

    @abstractmethod
    def give_up(self) -> None:
        """Leave what was there, and nothing else."""

    def __call__(self, block: Any, extent: Box) -> np.ndarray[Any, Any]:
        """Write, as a function of blocks; it gives as many trues."""
        if block.size:
            self.write(np.asarray(block), extent)
        return np.broadcast_to(_DONE, block.shape)
