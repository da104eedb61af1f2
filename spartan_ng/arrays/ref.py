"""A reference to an array that has a value: on the driver, in a backend's tiles, or both; or in a source.

The graph's DATA leaves hold one. A backend that keeps tiles for it registers `release`, called once
when nobody refers to the array any more.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from types import CodeType
from typing import Any

import numpy as np

from spartan_ng.arrays.sparse import csr_bytes
from spartan_ng.arrays.tiling import Tiling

Key = tuple[str, int]
"""A tile's name: who owns the array, a client or one of its jobs, and its number there."""
_serial = count(1)


_SKEW = 1.2
"""A part of the rows may have this many times the mean of non-zeros before its array counts as skewed."""


def _skewed(ends: np.ndarray[Any, Any]) -> bool:
    """Whether eight even parts of the rows, of which `ends` counts the non-zeros, are unequal."""
    bounds = np.linspace(0, len(ends) - 1, 9).astype(int)
    return bool(len(ends) > 64 and np.diff(ends[bounds]).max() * 8 > _SKEW * ends[-1])


class ArrayRef:
    """An array with a value.

    Parameters
    ----------
    shape, dtype, format : the array's; format is "dense", "csr" or "compressed"
    value : the driver's own copy (numpy.ndarray, scipy.sparse.csr_array, CompressedMatrix), or None
    """

    __slots__ = (
        "__weakref__",
        "also",
        "backend",
        "computed",
        "dtype",
        "format",
        "nnz",
        "on_disk",
        "origin",
        "private",
        "serial",
        "shape",
        "skewed",
        "source",
        "tiling",
        "value",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *,
        value: Any = None,
        format: str = "dense",
        tiling: Tiling | None = None,
        nnz: int | None = None,
        source: Any = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.format = format
        self.value = value
        self.tiling = tiling
        self.source = source
        """Where the elements are read from (`sources.Source`), or None. What is not mapped has no value
        here."""
        self.nnz = nnz
        self.skewed = format == "csr" and value is not None and _skewed(value.indptr)
        """Whether the rows of a CSR array are so unequal that its plan looks at them."""
        self.also: tuple[ArrayRef, ...] = ()
        """The same array in other tilings, where the workers keep it more than once."""
        self.on_disk = False
        """Whether the value lies in a file: the user's, or because memory had no room for it."""
        self.private = False
        """Whether nobody else sees the value's memory, though it is a view of a buffer."""
        self.backend: object | None = None
        """The backend whose workers hold tiles under this `serial`, if any."""
        self.origin: object | None = None
        """What it came from, where it could be lost: see `lineage`."""
        self.computed: tuple[CodeType, int, float] | None = None
        """Where in the program a job was asked for that made it (`callers.user_step`), and its seconds."""
        self.serial = next(_serial)

    @property
    def nbytes(self) -> int:
        """Bytes of the dense form, or of a CSR array's data and indices (12 bytes a non-zero)."""
        if self.format == "csr" and self.nnz is not None:
            return csr_bytes(self.nnz, self.shape[0], self.dtype.itemsize)
        if self.format == "compressed" and self.value is not None:
            return int(self.value.nbytes)
        n = self.dtype.itemsize
        for s in self.shape:
            n *= s
        return n

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Of an array that is read as it is worked on, the shape of what is read best."""
        return self.source.chunks if self.source is not None and self.value is None else None

    @property
    def beside_bytes(self) -> int:
        """What reading it takes at a time besides what is read."""
        return self.source.beside_bytes if self.source is not None and self.value is None else 0

    @property
    def whole_bytes(self) -> int:
        """What no read of it does without."""
        return self.source.whole_bytes if self.source is not None and self.value is None else 0

    @property
    def is_mapped(self) -> bool:
        """Whether the elements are in the memory of a file, here or on the workers."""
        return self.on_disk or (self.source is not None and self.value is not None)

    def reshaped(self, shape: tuple[int, ...]) -> ArrayRef | None:
        """What lies in a file that nobody writes to through it, under another shape; None for all else."""
        value = self.value if self.is_mapped and self.format == "dense" else None
        if value is None or value.flags.writeable or not value.flags.c_contiguous:
            return None
        source = None if self.source is None else self.source.reshaped(shape)
        if self.source is not None and source is None:
            return None
        found = ArrayRef(shape, self.dtype, value=value.reshape(shape), source=source)
        found.on_disk = self.on_disk
        return found

    def on_release(self, backend: object, release: Callable[[int], None]) -> None:
        """Record that `backend` holds tiles, to be dropped by `release(serial)` with this reference."""
        self.backend = backend
        weakref.finalize(self, release, self.serial).atexit = False

    def __repr__(self) -> str:
        where = "driver" if self.value is not None else "workers"
        return f"ArrayRef({self.shape}, {self.dtype}, {self.format}, on {where}, tiling={self.tiling})"

    def with_axes(self, axes: tuple[int, ...]) -> ArrayRef:
        """The same value with its axes in another order, which copies nothing: whose the memory was, it still
        is."""
        assert self.value is not None, "its value is on the driver"
        value = self.value.transpose(axes)
        found = ArrayRef(value.shape, self.dtype, value=value)
        found.private = self.private or self.value.flags.owndata
        found.on_disk, found.computed = self.on_disk, self.computed
        return found
