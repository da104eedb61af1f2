"""Elements in C order behind the head of a file: every block has its place, whoever writes it.

Runs of a block that lie in one piece of the file are written there by the system, which takes a third of the
time of writing through a map: that fetches each page first. Several short runs go through a map.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape, box_slices
from spartan_ng.arrays.copying import address, owner
from spartan_ng.sinks.disks import check_room
from spartan_ng.sinks.places import mode_of, new_file, remove_unfinished
from spartan_ng.sinks.sink import Sink
from spartan_ng.system.files import set_aside, write_at
from spartan_ng.system.mapping import Mapping

_LEAST_RUN = 1 << 14
"""Bytes from which on each of several runs is written by a call of its own."""
_LARGE = 1 << 23
"""A block of more bytes that does not lie as in the file is not copied for that."""


class RawFile(Sink):
    """A new file, whose head is written by whoever makes it (`begin`).

    Parameters
    ----------
    path : whose place it takes at the end
    shape, dtype : of the elements
    """

    def __init__(self, path: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path, self.shape, self.dtype = path, shape, dtype
        nbytes = prod(shape) * dtype.itemsize
        remove_unfinished(path, nbytes)
        check_room(path, nbytes)
        descriptor, self.temporary = new_file(path)
        os.close(descriptor)
        try:
            os.chmod(self.temporary, mode_of(path))
            self.offset = self.begin()
            with open(self.temporary, "r+b") as file:
                set_aside(file.fileno(), self.offset, nbytes)
        except BaseException as error:
            self.give_up()
            if isinstance(error, OSError) and error.errno is not None:
                raise OSError(error.errno, f"{path} of {nbytes:,} bytes: {error.strerror}") from error
            raise

    @property
    def place(self) -> str:
        """The file."""
        return self.path

    def begin(self) -> int:
        """Write the head to `temporary`, and say where the first element goes."""
        return 0

    def tile(self, box: Box) -> np.ndarray[Any, Any] | None:
        """A map of the file, where whole rows of aligned elements are asked for."""
        whole = [(0, n) for n in self.shape[1:]]
        if list(box[1:]) != whole or self.offset % self.dtype.alignment:
            return None
        first, last = (self.offset + k * self._strides()[0] for k in box[0])
        with self._opened() as descriptor:
            mapping = Mapping(descriptor, last, of_file=True)
        self.__dict__.setdefault("_tiles", weakref.WeakSet()).add(mapping)
        return mapping.array(last)[first:].view(self.dtype).reshape(box_shape(box))

    def write(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Put the elements where they belong in the file, unless they are there already."""
        strides = self._strides()
        first = self.offset + sum(lo * s for (lo, _), s in zip(box, strides, strict=True))
        if self._is_there(block, first):
            return
        inner = len(box)  # axes behind this one are whole: its range lies in one piece
        while inner > 1 and box[inner - 1] == (0, self.shape[inner - 1]):
            inner -= 1
        outer = max(inner - 1, 0)
        run = prod(block.shape[outer:]) * self.dtype.itemsize
        is_laid_out = block.flags.c_contiguous and block.dtype == self.dtype
        several = prod(block.shape[:outer]) > 1
        if (several and run < _LEAST_RUN) or not (is_laid_out or block.nbytes <= _LARGE):
            self._map()[box_slices(box)] = block
            return
        laid_out = np.ascontiguousarray(block, self.dtype)
        with self._opened() as descriptor:
            for index in product(*map(range, block.shape[:outer])):
                part = laid_out[index].reshape(-1).view(np.uint8).data
                write_at(descriptor, part, first + sum(i * s for i, s in zip(index, strides, strict=False)))

    def finish(self) -> None:
        """Rename it."""
        os.replace(self.temporary, self.path)

    def give_up(self) -> None:
        """Remove it."""
        os.unlink(self.temporary)

    def _strides(self) -> list[int]:
        """Bytes of the file between neighbours along each axis."""
        return [prod(self.shape[d + 1 :]) * self.dtype.itemsize for d in range(len(self.shape))]

    def _is_there(self, block: np.ndarray[Any, Any], first: int) -> bool:
        """Whether a block in one piece is part of a `tile`, whose bytes lie from `first` on."""
        mapping = getattr(owner(block), "mapping", None)
        if mapping is None or mapping not in self.__dict__.get("_tiles", ()):
            return False
        is_alike = block.flags.c_contiguous and block.dtype == self.dtype
        return is_alike and mapping.place_of(address(block)) == first

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """A descriptor of the file for a write: whoever kept one, as plans keep their sinks, would keep the
        file's place on the disk when another has taken its name."""
        descriptor = os.open(self.temporary, os.O_RDWR)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _map(self) -> np.ndarray[Any, Any]:
        """All of it, for a write."""
        return np.memmap(self.temporary, self.dtype, "r+", self.offset, self.shape)

    def __getstate__(self) -> dict[str, Any]:
        """All but what this process has made tiles of."""
        return {k: v for k, v in self.__dict__.items() if k != "_tiles"}
