"""A dataset of a new HDF5 file that lies in one piece: the library writes what is around it, and workers the
elements, of which it then asks nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.extras import needed
from spartan_ng.sinks.raw import RawFile

_NUMBERS = frozenset("?bBhHiIlLqQefdFD")
"""Dtypes, by their letters, whose elements lie in the library's files as in memory."""


class Hdf5File(RawFile):
    """A file of one dataset.

    Parameters
    ----------
    path : whose place it takes at the end
    name : the dataset's
    shape, dtype : the array's, which has elements
    """

    def __init__(self, path: str, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.name = name
        super().__init__(path, shape, dtype)

    def begin(self) -> int:
        """A file whose dataset has its place, and nothing in it."""
        h5py = needed("h5py", "hdf5")
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        early.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        with h5py.File(self.temporary, "w") as file:
            dataset = file.create_dataset(self.name, self.shape, self.dtype, dcpl=early)
            return int(dataset.id.get_offset())


def lies_as_in_memory(dtype: np.dtype[Any]) -> bool:
    """Whether workers can write elements of a dtype."""
    return dtype.char in _NUMBERS and dtype.isnative
