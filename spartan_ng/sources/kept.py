"""What has been unpacked of sources, kept for those who read on there.

A chunk, or a group of rows, is unpacked as a whole, whatever part of it is asked for; boxes are cut as plans
need them. So the last few pieces stay in memory, in all of a process's sources together, and those of arrays
that are unpacked over and over go to disk as they are.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from itertools import count, product
from math import prod
from mmap import ACCESS_READ, mmap
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.memory import budget_bytes, disk_folder, free_disk_bytes
from spartan_ng.system.files import write_at

SHARE = 16
"""All that is kept takes no more than one part in so many of the memory,"""
MOST_BYTES = 1 << 30
"""and no more than this."""
ONE_GO_BYTES = 1 << 26
"""What takes more is not unpacked as one where parts of it can be."""
PIECE_BYTES = 1 << 22
"""Small chunks are unpacked together, about so many bytes at a time."""
DISK_SHARE = 4
"""What is put on disk takes no more than one part in so many of what is free there."""

_owners = count()


def kept_bytes(share: int = SHARE) -> int:
    """What may be kept, if it takes no more than one part in `share` of the memory."""
    return min(MOST_BYTES, budget_bytes() // share)


def one_go_bytes(share: int = SHARE) -> int:
    """What is unpacked as one and kept, whatever part of it is asked for, though parts of it could be."""
    return min(ONE_GO_BYTES, kept_bytes(share))


class Kept:
    """Values by their keys, of which the least recently used go first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._nbytes = 0

    def get(self, key: Hashable) -> Any:
        """What is kept under a key; None without."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, value: Any, nbytes: int, share: int = SHARE) -> None:
        """Keep a value that takes so many bytes, if there is room for it in one part in `share` of the
        memory."""
        most = kept_bytes(share)
        with self._lock:
            self._drop(key)
            if nbytes > most:
                return
            self._found[key] = value, nbytes
            self._nbytes += nbytes
            self._shrink(most)

    def make_room(self, nbytes: int, share: int = SHARE) -> None:
        """Let go of what would not be kept beside a value of so many bytes, before that is made."""
        with self._lock:
            self._shrink(max(kept_bytes(share) - nbytes, 0))

    def forget(self, owner: int) -> None:
        """Keep nothing that is one's own: keys begin with whose they are."""
        with self._lock:
            for key in [key for key in self._found if isinstance(key, tuple) and key[0] == owner]:
                self._drop(key)

    def _shrink(self, most: int) -> None:
        while self._nbytes > most:
            self._drop(next(iter(self._found)))

    def _drop(self, key: Hashable) -> None:
        found = self._found.pop(key, None)
        if found is not None:
            self._nbytes -= found[1]


KEPT = Kept()


def owner_of(source: Any) -> int:
    """A number for what a source keeps in this process, which goes with the source."""
    process, found = source.__dict__.get("_owner", (None, -1))
    if process != os.getpid():
        found = next(_owners)
        weakref.finalize(source, KEPT.forget, found)
        source.__dict__["_owner"] = os.getpid(), found
    return int(found)


def piece_bytes() -> int:
    """Of about which size pieces are unpacked, so that several of them can be kept."""
    return min(PIECE_BYTES, max(budget_bytes() // (4 * SHARE), 1 << 16))


class Chunks:
    """Boxes of an array that is packed in chunks, read by whole chunks, each unpacked once at a time.

    What is unpacked again, because it was not kept for so long, is put on disk then, and read there from then
    on.

    Parameters
    ----------
    owner : of what is kept
    shape, dtype : the array's
    chunk : the shape of what is unpacked as one
    """

    def __init__(
        self, owner: int, shape: tuple[int, ...], dtype: np.dtype[Any], chunk: tuple[int, ...]
    ) -> None:
        self._owner, self._shape, self._dtype, self._chunk = owner, shape, dtype, chunk
        self._run = max(piece_bytes() // max(prod(chunk) * dtype.itemsize, 1), 1)
        """Chunks that are read together."""
        self._waiting = threading.Condition()
        self._reading: set[Box] = set()
        """Chunks that somebody reads now, by their boxes."""
        self._seen: set[Box] = set()
        self._disk: _Spool | None = None

    def read(self, box: Box, whole: Callable[[Box], Any]) -> np.ndarray[Any, Any]:
        """The elements of a box; `whole` reads one of whole chunks."""
        edges = zip(box, self._chunk, self._shape, strict=True)
        are_whole = all(lo % c == 0 and (hi % c == 0 or hi == n) for (lo, hi), c, n in edges)
        # Of an array that may be kept nothing is unpacked twice. Of others whole chunks are unpacked into
        # their place: nothing is left over that others would want.
        if not box or (are_whole and prod(self._shape) * self._dtype.itemsize > kept_bytes()):
            return np.asarray(whole(box))
        out = np.empty(box_shape(box), self._dtype)
        spans = [range(lo // c, (hi - 1) // c + 1) for (lo, hi), c in zip(box, self._chunk, strict=True)]
        first, *rest = spans
        for others in product(*rest):
            for k in range(first.start, first.stop, self._run):
                run = [(i, *others) for i in range(k, min(k + self._run, first.stop))]
                for around, chunk in self._chunks([self._box(index) for index in run], whole):
                    pairs = zip(around, box, strict=True)
                    shared = tuple((max(a, lo), min(b, hi)) for (a, b), (lo, hi) in pairs)
                    out[_inside(shared, box)] = chunk[_inside(shared, around)]
        return out

    def _box(self, index: tuple[int, ...]) -> Box:
        sizes = zip(index, self._chunk, self._shape, strict=True)
        return tuple((i * c, min((i + 1) * c, n)) for i, c, n in sizes)

    def _chunks(
        self, run: list[Box], whole: Callable[[Box], Any]
    ) -> Iterator[tuple[Box, np.ndarray[Any, Any]]]:
        """Chunks that follow each other along the first axis, with their boxes."""
        with self._waiting:
            # Another thread unpacks some of these: to wait is cheaper than to do it again.
            while not self._reading.isdisjoint(run):
                self._waiting.wait()
            found = {box: self._kept(box) for box in run}
            missing = [box for box in run if found[box] is None]
            self._reading.update(missing)
        try:
            for together in _following(missing):
                around = ((together[0][0][0], together[-1][0][1]), *together[0][1:])
                value = np.asarray(whole(around))
                for box in together:
                    chunk = value[_inside(box, around)]
                    found[box] = chunk
                    # A view would keep the memory of all of its run.
                    self._keep(box, chunk if len(together) == 1 else chunk.copy())
        finally:
            with self._waiting:
                self._reading.difference_update(missing)
                self._waiting.notify_all()
        yield from found.items()  # type: ignore[misc]  # none is missing by now

    def _kept(self, box: Box) -> np.ndarray[Any, Any] | None:
        found: np.ndarray[Any, Any] | None = KEPT.get((self._owner, box))
        return self._disk.get(box) if found is None and self._disk is not None else found

    def _keep(self, box: Box, chunk: np.ndarray[Any, Any]) -> None:
        KEPT.put((self._owner, box), chunk, chunk.nbytes)
        with self._waiting:
            # Most arrays are read once: the disk is for those that are read on and on.
            if box not in self._seen:
                self._seen.add(box)
                return
            if self._disk is None:
                self._disk = _Spool(prod(self._shape) * self._dtype.itemsize)
        self._disk.put(box, chunk)


class _Spool:
    """Arrays in a file without a name, one behind the other.

    Parameters
    ----------
    nbytes : what all of them take at most
    """

    def __init__(self, nbytes: int) -> None:
        self._places: dict[Box, tuple[int, tuple[int, ...], np.dtype[Any]]] = {}
        self._end, self._lock = 0, threading.Lock()
        self._map: np.ndarray[Any, Any] | None = None
        if 0 < nbytes <= free_disk_bytes() // DISK_SHARE:
            # Mapped and open in this process alone, it goes with it, however that ends.
            with tempfile.TemporaryFile(buffering=0, dir=disk_folder()) as file:
                os.ftruncate(file.fileno(), nbytes)
                self._map = np.frombuffer(mmap(file.fileno(), nbytes, access=ACCESS_READ), np.uint8)
                self._descriptor = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._descriptor)

    def get(self, key: Box) -> np.ndarray[Any, Any] | None:
        """What has been put there; None without."""
        if self._map is None or key not in self._places:
            return None
        first, shape, dtype = self._places[key]
        return self._map[first : first + prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

    def put(self, key: Box, value: np.ndarray[Any, Any]) -> None:
        """Write an array, if the disk has room for it."""
        if self._map is None:
            return
        with self._lock:
            if key in self._places or self._end + value.nbytes > len(self._map):
                return
            first, self._end = self._end, self._end + value.nbytes
        # A disk that has become full: the next one unpacks it again.
        with suppress(OSError):
            write_at(self._descriptor, np.ascontiguousarray(value).reshape(-1).view(np.uint8).data, first)
            self._places[key] = first, value.shape, value.dtype


def _following(boxes: list[Box]) -> Iterator[list[Box]]:
    """Runs of boxes, each of which begins along the first axis where the one before ends."""
    run: list[Box] = []
    for box in boxes:
        if run and run[-1][0][1] != box[0][0]:
            yield run
            run = []
        run.append(box)
    if run:
        yield run


def _inside(box: Box, around: Box) -> tuple[slice, ...]:
    """A box as an index of one around it."""
    return tuple(slice(lo - first, hi - first) for (lo, hi), (first, _) in zip(box, around, strict=True))
