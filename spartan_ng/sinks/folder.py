"""A folder that is written to by many, until one says that all is over.

A worker that does a part of another's may be at it still when all is over, by an error or because the other
was faster; libraries make a folder anew that is not there. So writes are waited for before the folder is
moved or removed, and none begins afterwards.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from typing import Any
from uuid import uuid4

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.sinks.disks import Leftover, leftover
from spartan_ng.sinks.sink import Sink
from spartan_ng.system.files import locked

LOCK = ".lock-"
"""Files that begin so are locks."""
_WAIT_S = 5.0
"""Writes are waited for so long at most: who is stopped in the middle of one does not hold up all."""


class FolderSink(Sink):
    """What is written to a folder: `begin` lets writes begin, `end` comes before it is moved or removed."""

    folder: str
    _left: Leftover
    _writing: str
    """A file that is there until all is over, and whose lock has who writes."""

    def begin(self) -> None:
        """Let writes begin."""
        self._left = leftover(self.place)
        self._writing = os.path.join(self.folder, f"{LOCK}writing-{uuid4().hex}")
        with open(self._writing, "xb"):
            pass

    def write(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Put the elements of `box`; FileNotFoundError where all is over."""
        with locked(self._writing, alone=False):
            os.stat(self._writing)  # it may have ended since it was opened
            self._left.check()
            self.put(block, box)

    @abstractmethod
    def put(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Put the elements of `box`, while the folder stays where it is."""

    def end(self) -> None:
        """Wait for what is being written, and let nothing more begin; once, if it is called again."""
        # Under another name nobody opens it any more; those who have it open are waited for by its lock.
        ended = f"{self._writing}-ended"
        try:
            os.rename(self._writing, ended)
        except FileNotFoundError:
            return
        until_s = time.monotonic() + _WAIT_S
        while True:
            with locked(ended, waits=False) as is_alone:
                if is_alone or time.monotonic() > until_s:
                    break
            time.sleep(0.01)
        os.unlink(ended)
