"""Layouts: which rows have which of a group's tuples, in the three forms of compressed linear algebra.

A code for each row (DDC), the rows of all tuples but the most frequent one (OLE), runs of equal tuples (RLE).
What is here is NumPy's; loops over rows are compiled in `kernels.compiled.dictionaries`.

Elgohary et al., "Compressed Linear Algebra for Large-Scale Machine Learning" (VLDB 2016), section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

Array = np.ndarray[Any, Any]


class Codes(Struct, frozen=True, eq=False):
    """DDC: row i has the tuple `codes[i]`."""

    codes: Array

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes beside the dictionary."""
        return self.codes.nbytes

    def counts(self, distinct: int) -> Array:
        """How many rows have each tuple."""
        return np.bincount(self.codes, minlength=distinct)

    def of_rows(self) -> Array:
        """Each row's tuple."""
        return self.codes

    def gather(self, v: Array, distinct: int) -> Array:
        """For each tuple the sum of `v` over its rows."""
        return np.bincount(self.codes, v, distinct)

    def part(self, lo: int, hi: int) -> Codes:
        """The rows from lo to hi."""
        return Codes(self.codes[lo:hi])


class Offsets(Struct, frozen=True, eq=False):
    """OLE: the rows of tuple k > 0 are `offsets[starts[k - 1] : starts[k]]`; all others have tuple 0."""

    offsets: Array
    starts: Array
    rows: int

    @property
    def nbytes(self) -> int:
        """Bytes beside the dictionary."""
        return self.offsets.nbytes + self.starts.nbytes

    def counts(self, distinct: int) -> Array:
        """How many rows have each tuple."""
        listed = np.diff(self.starts)
        return np.concatenate([[self.rows - listed.sum()], listed])

    def of_rows(self) -> Array:
        """Each row's tuple."""
        out = np.zeros(self.rows, np.min_scalar_type(len(self.starts) - 1))
        out[self.offsets] = self._listed()
        return out

    def gather(self, v: Array, distinct: int) -> Array:
        """For each tuple the sum of `v` over its rows."""
        out = np.zeros(distinct, np.result_type(v, np.float64))
        common = np.ones(self.rows, bool)
        common[self.offsets] = False
        out[0] = v[common].sum()
        return out + np.bincount(self._listed(), v[self.offsets], distinct)

    def _listed(self) -> Array:
        """The tuple of each offset."""
        return np.repeat(np.arange(1, len(self.starts)), np.diff(self.starts))

    def part(self, lo: int, hi: int) -> Offsets:
        """The rows from lo to hi."""
        kept = (self.offsets >= lo) & (self.offsets < hi)
        before = np.concatenate([[0], np.cumsum(kept)])
        return Offsets((self.offsets[kept] - lo).astype(self.offsets.dtype), before[self.starts], hi - lo)


class Runs(Struct, frozen=True, eq=False):
    """RLE: rows from `starts[k]` to `starts[k + 1]` have tuple `codes[k]`; the last start is the end."""

    codes: Array
    starts: Array

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        """Bytes beside the dictionary."""
        return self.codes.nbytes + self.starts.nbytes

    def counts(self, distinct: int) -> Array:
        """How many rows have each tuple."""
        return np.bincount(self.codes, np.diff(self.starts), distinct).astype(np.int64)

    def of_rows(self) -> Array:
        """Each row's tuple."""
        return np.repeat(self.codes, np.diff(self.starts))

    def gather(self, v: Array, distinct: int) -> Array:
        """For each tuple the sum of `v` over its rows."""
        return np.bincount(self.codes, np.add.reduceat(v, self.starts[:-1]), distinct)

    def part(self, lo: int, hi: int) -> Runs:
        """The rows from lo to hi."""
        first = int(np.searchsorted(self.starts, lo, "right")) - 1
        last = int(np.searchsorted(self.starts, hi, "left"))
        starts = np.clip(self.starts[first : last + 1], lo, hi) - lo
        return Runs(self.codes[first:last], starts.astype(self.starts.dtype))


Layout = Codes | Offsets | Runs
NAMES = {Codes: "DDC", Offsets: "OLE", Runs: "RLE"}
