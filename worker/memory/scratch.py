"""Arrays in files without a name, for what memory has no room for.

Such a file is mapped: its pages count as no memory of the process, since the kernel writes them out when it
needs their place, and reads them when they are used. The file is gone as soon as no array looks at it,
however the process ends.
"""

from __future__ import annotations

import mmap
import tempfile
from math import prod
from typing import IO, Any

import numpy as np

from spartan_ng.errors import OutOfResources
from spartan_ng.memory import disk_folder
from spartan_ng.system.files import set_aside
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
            set_aside(file.fileno(), nbytes)
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


def is_mapped(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array's memory is a file's, which the kernel reads when it is used, and lets go."""
    base: Any = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap) or getattr(base, "of_file", False)
