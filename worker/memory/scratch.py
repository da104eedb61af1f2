"""Arrays in files without a name, for what memory has no room for.

Such a file is mapped: its pages count as no memory of the process, since the kernel writes them out when it
needs their place, and reads them when they are used. The file is gone as soon as no array looks at it,
however the process ends.
"""

from __future__ import annotations

import tempfile
from math import prod
from typing import IO, Any

import numpy as np

from spartan_ng.arrays.copying import address, owner
from spartan_ng.errors import OutOfResources
from spartan_ng.memory import disk_folder
from spartan_ng.system.files import set_aside, write_at
from spartan_ng.system.mapping import Mapping


def nameless() -> IO[bytes]:
    """A new file without a name, open."""
    return tempfile.TemporaryFile(buffering=0, dir=disk_folder())


def on_disk(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array of zeros in a file.

    Its place on the disk is set aside at once: a disk that is full is an OutOfResources here, and not the end
    of the process when it writes.
    """
    nbytes = max(prod(shape) * dtype.itemsize, 1)
    try:
        with nameless() as file:
            set_aside(file.fileno(), 0, nbytes)
            found = Mapping(file.fileno(), nbytes, of_file=True).array(nbytes)
    except OSError as error:
        raise no_room(nbytes, error) from error
    return found[: prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


def no_room(nbytes: int, error: OSError) -> OutOfResources:
    """What is raised where the disk does not take so many bytes."""
    return OutOfResources(
        f"a tile of {nbytes:,} bytes cannot be written to {disk_folder()}, where tiles beyond the memory "
        f"budget go (config.disk_folder, or TMPDIR, names another folder): {error.strerror or error}"
    )


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
