"""A source: an array that lies outside the program, of which any box can be asked for.

A file, a function, somebody's object. Nothing of it is read until a stage works on it, and then box by box,
by the worker that works on the box. The contract of every kind:

- `shape` and `dtype` never change, and there are no objects among the elements;
- `read(box)` gives the elements of a box inside the shape that is not empty: an array of the box's shape and
  of `dtype` that nobody writes to. It may be a view of something larger;
- `read` gives the same elements however often it is asked, in any order, in any process, and from several
  threads at a time (`Serial` is for what cannot do that);
- `has_changed` says, behind each read, that it was not what was opened: the file has been written to since;
- pickled it is small: it says where the elements are, and opens that in each process when it is first asked;
- `chunks` is a hint: the shape of the boxes, counted from the origin, that are read best. What is asked for
  is made of whole ones where memory allows it; nothing depends on it;
- `likeness` says of files which they are, and in which state: what is opened twice is one leaf, read once;
- `beside_bytes` says what a read has in memory at a time besides what it gives, as a chunk that is unpacked
  for a part of it, packed and unpacked: projections count it, and no more readers go at a time than have room
  for it (`reading.read_in_turn`);
- `whole_bytes` says what any read has to have in memory as a whole: with less there is no reading, and plans
  say so before they begin. What goes on with less memory, as tables do, has none;
- `mapped` gives the whole as an array in the memory of a file where that is possible. Then nobody asks for
  boxes.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.errors import SourceError, SpartanError
from spartan_ng.sources.kept import Chunks, owner_of
from spartan_ng.system.faults import any_spoiled

LOOPS: set[int] = set()
"""Threads with event loops that sources are read by: who waits in one for such a source waits for ever."""
ZARRS_LOOP = "zarr_io"
"""The thread of zarr's."""
TRUSTED_NS = 1_000_000
"""A mapped file that has not changed is asked again after so long."""
_PART_BYTES = 1 << 20
"""What is not packed is read well so many bytes at a time."""
_MOST_SAID = 200
"""Characters of a library's message."""
_OF_A_PROCESS = ("_held", "_looked_ns", "_opened", "_owner", "_unpacked")
"""What sources do not take along to another one."""


class Source(ABC):
    """What can be asked for boxes; see the module's contract."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    beside_bytes = 0
    """What a read has at a time besides what it gives."""
    whole_bytes = 0
    """What no read does without."""
    most_together: int | None = None
    """Bytes of whole chunks that are read best at a time; None where those of a band are."""
    waits_for_loop = False
    """Whether it is read by one of `LOOPS`."""
    _looked_ns = 0

    @abstractmethod
    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """The elements inside `box`."""

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of what is read best; a row along each axis where nothing is known."""
        return (1,) * len(self.shape)

    def mapped(self) -> np.ndarray[Any, Any] | None:
        """All elements as an array that is mapped from a file, which the kernel reads as it is used; or
        None."""
        return None

    def reshaped(self, shape: tuple[int, ...]) -> Source | None:
        """The same elements in C order under another shape, where that is as good; or None."""
        return None

    def hold(self) -> None:  # noqa: B027 - most have nothing to keep
        """Keep what is mapped, so that this process has it whatever becomes of the files' names."""

    @property
    def is_held(self) -> bool:
        """Whether this process has all elements, whatever becomes of the files' names."""
        return False

    def is_current(self) -> bool:
        """Whether what is there is still what was opened."""
        return True

    def has_changed(self, box: Box) -> bool:
        """Whether what has just been read of a box may be something else than was opened."""
        return False

    def likeness(self) -> Hashable:
        """What is the same of two that say that they have the same elements; None of what says nothing, and
        of files whose signs need not tell of a write (`files.tells_of_writes`)."""
        return None

    def goes_on(self, before: Source) -> bool:
        """Whether nothing has been written between the opening of one that is alike and this one's."""
        return True

    def is_written_to(self) -> bool:
        """Whether what was mapped, and may be there still, has changed since."""
        return False

    def is_spoiled(self) -> bool:
        """Whether somebody here has read of what was mapped what was no longer there."""
        return False

    def look(self, at_once: bool = False) -> None:
        """SourceError where what was mapped has changed since.

        Unless it is asked `at_once`, a file is asked again after `TRUSTED_NS`: asking takes longer than
        reading an element, and nobody rewrites one of that size within them. What is read meanwhile and is
        no longer there is known without asking (`system.faults`).
        """
        now = time.monotonic_ns()
        if at_once or now - self._looked_ns > TRUSTED_NS or any_spoiled():
            if self.is_spoiled() or self.is_written_to():
                raise SourceError(f"{self} has changed since it was opened")
            self._looked_ns = now

    def by_chunks(self, chunk: tuple[int, ...]) -> Chunks:
        """What this process has of its chunks, which have that shape."""
        process, found = self.__dict__.get("_unpacked", (None, None))
        if process != os.getpid():
            found = Chunks(owner_of(self), self.shape, self.dtype, chunk)
            self.__dict__["_unpacked"] = os.getpid(), found
        return found  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        """All but what a process has opened and keeps."""
        return {k: v for k, v in self.__dict__.items() if k not in _OF_A_PROCESS}

    def __str__(self) -> str:
        """What people call it."""
        return type(self).__name__


def note_loop() -> None:
    """Zarr has been asked for something: its thread is one of `LOOPS`."""
    LOOPS.update(t.ident for t in threading.enumerate() if t.name == ZARRS_LOOP and t.ident)


class OpenedSource(Source):
    """A source with something that each process opens when it is first asked, and that does not travel."""

    @abstractmethod
    def open(self) -> Any:
        """Open it."""

    @property
    def opened(self) -> Any:
        """What this process has opened; a fork opens its own."""
        process, found = self.__dict__.get("_opened", (None, None))
        if process != os.getpid():
            with said_of(self):
                found = self.open()
            self.__dict__["_opened"] = os.getpid(), found
        return found


class Serial:
    """A lock that every process has one of; it travels as nothing.

    For sources whose library serves one thread at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> Any:
        return Serial, ()


@contextmanager
def said_of(what: Any) -> Iterator[None]:
    """What a library raises that reads `what`, as a SourceError which names it.

    Errors of ours, and the system's own of files that are not there or may not be read, say it themselves.
    """
    try:
        yield
    except (SpartanError, FileNotFoundError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.filename is not None:
            raise
        words = " ".join(str(error).split())[:_MOST_SAID] or type(error).__name__
        text = "".join(c if c.isprintable() else "?" for c in words)  # some quote what is in the file
        cause = None if isinstance(error, StopIteration) else error  # which `with` takes for its own end
        raise SourceError(f"{what} cannot be read: {text}") from cause


def unmasked(found: Any, what: Any) -> Any:
    """What a library has given; SourceError where a mask hides some of it: arrays of ours have none."""
    if type(found) is not np.ndarray and isinstance(found, np.ma.MaskedArray) and np.ma.is_masked(found):
        raise SourceError(
            f"{what} gave masked elements, and arrays here have no masks: have it fill them (filled(value), "
            "or for netCDF4's variables set_auto_mask(False)), and give the mask as an array of its own"
        )
    return found


def read_box(source: Source, box: Box) -> np.ndarray[Any, Any]:
    """What `source` gives for a box, checked.

    Raises
    ------
    SourceError : it gives another shape or dtype than it has said, its library raises, or it has changed
    """
    changed = f"{source} has changed since it was opened"
    try:
        with said_of(source):
            found: Any = source.read(box)
    except (SourceError, FileNotFoundError) as error:  # by now there may be nothing, or another shape
        if source.has_changed(box):
            raise SourceError(changed) from error
        raise
    if source.has_changed(box):
        raise SourceError(changed)
    if not isinstance(found, np.ndarray) or found.shape != box_shape(box) or found.dtype != source.dtype:
        said = f"{found.dtype} {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        raise SourceError(
            f"{source} gave {said} for the box {box}, which has {source.dtype} {box_shape(box)}"
        )
    return found


def part_in_order(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """What lies together in an array of that shape in C order, of about `_PART_BYTES`. Who reads each
    run of bytes by itself takes as long for a column as for all columns."""
    found = [max(n, 1) for n in shape]
    for axis in range(len(found)):
        line = max(prod(found[axis + 1 :]) * itemsize, 1)
        found[axis] = max(min(found[axis], _PART_BYTES // line), 1)
    return tuple(found)


def checked_dtype(dtype: Any, what: str) -> np.dtype[Any]:
    """A dtype whose elements a source can have; TypeError for objects."""
    found: np.dtype[Any] = np.dtype(dtype)
    if found.hasobject:
        raise TypeError(f"{what}: elements of dtype {found} are objects, which no source can have")
    return found
