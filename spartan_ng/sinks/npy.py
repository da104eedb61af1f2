"""NumPy's own file as a sink."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib import format as npy

from spartan_ng.sinks.raw import RawFile


class NpyFile(RawFile):
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
        self._said = shape
        super().__init__(path, shape if written is None else written, dtype)

    def begin(self) -> int:
        """NumPy's header."""
        with open(self.temporary, "wb") as file:
            descr = npy.dtype_to_descr(self.dtype)
            npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": self._said})
            return file.tell()
