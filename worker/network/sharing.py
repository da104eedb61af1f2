"""Arrays in memory, or in files without a name, that processes of one host share: where one lies, another's
mapped, one handed over.

What another process says of its memory is checked before it is read: memory that is not there ends its
reader.
"""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.stride_tricks import as_strided

from spartan_ng.arrays.copying import address, owner
from spartan_ng.system import segments
from spartan_ng.system.mapping import Mapping
from spartan_ng.wire.transfers import SharedArray
from spartan_ng.worker.memory.pool import SharedSegment, size_class

_MOST_MAPPINGS = 1024
"""Peers' segments that stay mapped, at most."""


class Mappings:
    """Other processes' segments, mapped read-only; the ones used least recently are let go."""

    def __init__(self) -> None:
        self._maps: OrderedDict[tuple[int, int, int], Mapping] = OrderedDict()
        self._files: WeakValueDictionary[tuple[int, int, int], Mapping] = WeakValueDictionary()
        """Whoever has mapped a file keeps its place on the disk: no longer than it is looked at."""

    def view(self, where: SharedArray, when_dead: Callable[[], None]) -> np.ndarray[Any, Any]:
        """The array at `where`; OSError if its process's memory may not be mapped."""
        mapped = self._map(where)
        root = mapped.array(where.size_bytes)
        weakref.finalize(root, when_dead).atexit = False
        if where.dtype.itemsize == 0 or 0 in where.shape:
            return np.empty(where.shape, where.dtype)
        return _strided(root, where)

    def _map(self, where: SharedArray) -> Mapping:
        key = (where.pid, where.segment, where.size_bytes)
        mapped = (self._files if where.of_file else self._maps).get(key)
        if mapped is not None:
            # The segment is known, the place in it is another peer's word.
            _check_inside(where)
            if not where.of_file:
                self._maps.move_to_end(key)
            return mapped
        descriptor = open_shared(where, os.O_RDONLY)
        try:
            mapped = Mapping(descriptor, where.size_bytes, writable=False, of_file=where.of_file)
        finally:
            os.close(descriptor)
        if where.of_file:
            self._files[key] = mapped
            return mapped
        self._maps[key] = mapped
        if len(self._maps) > _MOST_MAPPINGS:
            self._maps.popitem(last=False)
        return mapped


def open_shared(where: SharedArray, flags: int) -> int:
    """A descriptor of our own for another process's segment.

    Raises OSError where it may not be had, ValueError where it is no segment of that size, or the array does
    not lie in it.
    """
    _check_inside(where)
    try:
        descriptor = segments.open_of(where.pid, where.descriptor, flags)
    except OSError as error:
        text = f"shared memory of {where.size_bytes:,} bytes cannot be opened: {error.strerror}"
        raise OSError(error.errno, text) from error
    try:
        if where.of_file:
            _check_file(descriptor, where)
        else:
            _check_segment(descriptor, where.size_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_inside(where: SharedArray) -> None:
    last = sum((n - 1) * s for n, s in zip(where.shape, where.strides, strict=True) if n > 0)
    if where.offset < 0 or min(where.shape + where.strides, default=0) < 0:
        raise ValueError("an array in shared memory begins before its segment")
    if where.offset + last + where.dtype.itemsize > where.size_bytes:
        raise ValueError("an array in shared memory ends behind its segment")


def _check_segment(descriptor: int, size_bytes: int) -> None:
    try:
        is_whole = segments.is_of(descriptor, size_bytes)
    except OSError as error:
        raise ValueError("what is named as shared memory is none") from error
    if not is_whole:
        raise ValueError(f"a segment is not of {size_bytes:,} bytes for good")


def _check_file(descriptor: int, where: SharedArray) -> None:
    found = os.fstat(descriptor)
    if not segments.is_nameless(found) or found.st_size < where.size_bytes or found.st_ino != where.segment:
        raise ValueError(f"what is named as a file without a name of {where.size_bytes:,} bytes is none")


def describe_in_file(array: np.ndarray[Any, Any]) -> SharedArray | None:
    """Where `array` lies in a file without a name, for a process that maps it; None where it lies in none."""
    mapping = getattr(owner(array), "mapping", None)
    if not isinstance(mapping, Mapping) or mapping.descriptor < 0:
        return None
    found = os.fstat(mapping.descriptor)
    if not segments.is_nameless(found):
        return None
    offset = mapping.place_of(address(array))
    size, descriptor = found.st_size, mapping.descriptor
    return SharedArray(
        os.getpid(), descriptor, found.st_ino, size, offset, array.dtype, array.shape, array.strides, True
    )


def describe_shared(segment: SharedSegment, offset: int, array: np.ndarray[Any, Any]) -> SharedArray:
    """Where `array` lies, for a process that maps our memory."""
    return SharedArray(
        os.getpid(),
        segment.descriptor,
        segment.serial,
        segment.size,
        offset,
        array.dtype,
        array.shape,
        array.strides,
    )


def _strided(root: np.ndarray[Any, Any], where: SharedArray) -> np.ndarray[Any, Any]:
    """The array of `where` inside the bytes `root`; negative strides never occur in a region."""
    first = root[where.offset : where.offset + where.dtype.itemsize].view(where.dtype)
    view: np.ndarray[Any, Any] = as_strided(first, where.shape, where.strides, writeable=False)
    return view


class Handover:
    """A segment that another process takes over: we close our descriptor, its pages live on there."""

    def __init__(self, segment: SharedSegment) -> None:
        weakref.finalize(self, os.close, segment.descriptor).atexit = False


def copy_out(tile: np.ndarray[Any, Any]) -> tuple[Handover, SharedArray]:
    """A copy of `tile` in a segment of its own, in C order."""
    segment = SharedSegment.create(size_class(tile.nbytes))
    segment.map.in_large_pages(0, tile.nbytes)
    target = segment.map.array(tile.nbytes).view(tile.dtype).reshape(tile.shape)
    target[...] = tile
    return Handover(segment), describe_shared(segment, 0, target)
