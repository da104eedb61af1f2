"""NumPy's own file as a sink: every block has its place in it."""

from __future__ import annotations

import os
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy

from spartan_ng.arrays import Box, box_slices
from spartan_ng.sinks.places import mode_of, new_file
from spartan_ng.sinks.sink import Sink
from spartan_ng.system.files import set_aside


class NpyFile(Sink):
    """A `.npy` file in C order.

    Parameters
    ----------
    path : whose place it takes at the end
    shape, dtype : the array's
    written : the shape in which its elements are written, if that is another
    """

    def __init__(
        self,
        path: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        written: tuple[int, ...] | None = None,
    ) -> None:
        self.path, self.dtype = path, dtype
        self.shape = shape if written is None else written
        descriptor, self.temporary = new_file(path)
        nbytes = prod(shape) * dtype.itemsize
        try:
            with open(descriptor, "wb") as file:
                os.chmod(self.temporary, mode_of(path))
                header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(file, header)
                self.offset = file.tell()
                file.flush()
                set_aside(descriptor, self.offset + nbytes)
        except OSError as error:
            self.give_up()
            raise OSError(error.errno, f"{path} of {nbytes:,} bytes: {error.strerror}") from error

    def write(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """Through a map of the file, which takes no memory that cannot be taken back."""
        self._map()[box_slices(box)] = block

    def finish(self) -> None:
        """Rename it."""
        os.replace(self.temporary, self.path)

    def give_up(self) -> None:
        """Remove it."""
        os.unlink(self.temporary)

    def _map(self) -> np.ndarray[Any, Any]:
        process, found = self.__dict__.get("_mapped", (None, None))
        if process != os.getpid() or found is None:
            found = np.memmap(self.temporary, self.dtype, "r+", self.offset, self.shape)
            self.__dict__["_mapped"] = os.getpid(), found
        return found  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        """All but the map."""
        return {k: v for k, v in self.__dict__.items() if k != "_mapped"}
