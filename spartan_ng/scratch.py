"""Arrays in files without a name, for what memory has no room for.

Such a file is mapped: its pages count as no memory of the process, since the kernel writes them out when it
needs their place, and reads them when they are used. The file is gone as soon as no array looks at it,
however the process ends.
"""

from __future__ import annotations

import tempfile
import weakref
from math import prod
from typing import IO, Any

import numpy as np

from spartan_ng.arrays.copying import address, is_mapped, owner, private_copy
from spartan_ng.errors import OutOfResources
from spartan_ng.memory import block_bytes, budget_bytes, disk_folder
from spartan_ng.system.files import set_aside, write_at
from spartan_ng.system.mapping import Mapping

_TILE = "a tile"
_SHARE = 2
"""Of the memory, what a copy may take."""
_READ_BYTES = 1 << 18
_programs: weakref.WeakSet[Any] = weakref.WeakSet()
"""Files of what the program has made in its own memory."""


def nameless() -> IO[bytes]:
    """A new file without a name, open."""
    return tempfile.TemporaryFile(buffering=0, dir=disk_folder())


def on_disk(shape: tuple[int, ...], dtype: np.dtype[Any], what: str = _TILE) -> np.ndarray[Any, Any]:
    """An array of zeros in a file; an error says `what` it is.

    Its place on the disk is set aside at once: a disk that is full is an OutOfResources here, and not the end
    of the process when it writes.
    """
    nbytes = max(prod(shape) * dtype.itemsize, 1)  # nothing cannot be mapped
    try:
        with nameless() as file:
            set_aside(file.fileno(), 0, nbytes)
            found = Mapping(file.fileno(), nbytes, of_file=True).array(nbytes)
    except OSError as error:
        raise no_room(nbytes, error, what) from error
    return found[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def zeros(n: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A line of zeros to be filled, on disk where memory has no room for it."""
    return np.zeros(n, dtype) if copy_fits(n * dtype.itemsize) else on_disk((n,), dtype, "a line")


def no_room(nbytes: int, error: OSError, what: str = _TILE) -> OutOfResources:
    """What is raised where the disk does not take so many bytes."""
    return OutOfResources(
        f"{what} of {nbytes:,} bytes, which memory has no room for, cannot be written to {disk_folder()} "
        f"(config.disk_folder, or TMPDIR, names another folder): {error.strerror or error}"
    )


def copy_fits(nbytes: int) -> bool:
    """Whether memory has room for a copy of so many bytes that stays, and for what is worked on beside it."""
    return nbytes <= budget_bytes() // _SHARE


def own_copy(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same order of axes in memory, or on disk where memory has no room for it."""
    if copy_fits(value.nbytes) or value.dtype.hasobject or value.ndim == 0:
        return private_copy(value)
    order = _order(value)
    copy = c_copy(value.transpose(order))
    if not is_mapped(value):
        _programs.add(owner(copy).mapping)
    return copy.transpose(np.argsort(order))


def _order(value: np.ndarray[Any, Any]) -> list[int]:
    """Axes from the longest stride to the shortest: in that order a copy lies as the array does."""
    return sorted(range(value.ndim), key=lambda axis: (-abs(value.strides[axis]), axis))


def is_programs(value: np.ndarray[Any, Any]) -> bool:
    """Whether an array is a copy in a file of what the program has made in its own memory."""
    return getattr(owner(value), "mapping", None) in _programs


def to_be_written(zeros: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Zeros of the program's, of which nobody has touched any: on disk where memory has no room for them, in
    the same order of axes."""
    if copy_fits(zeros.nbytes) or zeros.dtype.hasobject:
        return zeros
    order = _order(zeros)
    found = on_disk(zeros.transpose(order).shape, zeros.dtype, "an array")
    _programs.add(owner(found).mapping)
    return found.transpose(np.argsort(order))


def read_from(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array on disk of a file's next bytes; EOFError where it has not so many."""
    found = on_disk((prod(shape) * dtype.itemsize,), np.dtype("u1"), "an array")
    done = 0
    while done < found.size:
        part = np.frombuffer(file.read(min(_READ_BYTES, found.size - done)), "u1")
        if not part.size:
            raise EOFError(f"{found.size - done} bytes lack")
        put(found[done : done + part.size], part)
        done += part.size
    return found.view(dtype).reshape(shape)


def c_copy(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in C order, on disk where memory has no room for it."""
    if copy_fits(value.nbytes) or value.dtype.hasobject or value.ndim == 0:
        return value.copy(order="C")
    copy = on_disk(value.shape, value.dtype, "a copy")
    _fill(copy, value, block_bytes())
    return copy


def _fill(copy: np.ndarray[Any, Any], value: np.ndarray[Any, Any], most_bytes: int) -> None:
    """Copy some of the elements at a time, since what lies otherwise is put in order first."""
    rows = most_bytes // value[0].nbytes
    # One row alone is too long.
    if not rows and value.ndim > 1:
        for place, part in zip(copy, value, strict=True):
            _fill(place, part, most_bytes)
        return
    rows = max(rows, 1)
    for start in range(0, len(value), rows):
        put(copy[start : start + rows], value[start : start + rows])


def put(place: np.ndarray[Any, Any], data: np.ndarray[Any, Any]) -> None:
    """Copy `data` to `place`; into a file by a call of the system, since through the map each page is read
    before it is written to."""
    mapping = getattr(owner(place), "mapping", None)
    is_alike = place.dtype == data.dtype and place.flags.c_contiguous
    if isinstance(mapping, Mapping) and mapping.descriptor >= 0 and is_alike:
        rest = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
        write_at(mapping.descriptor, rest, mapping.place_of(address(place)))
    else:
        np.copyto(place, data)
