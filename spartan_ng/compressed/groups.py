"""Groups of columns: the distinct tuples of their values, and which rows have which.

Four layouts: a code for each row (DDC), for all tuples but the most frequent one the rows that have it (OLE),
runs of equal tuples (RLE), and plain values where nothing repeats. A function of single elements changes the
dictionary alone; a product with a vector goes over the dictionary, then once over the rows.

"On Optimizing Operator Fusion Plans", section 5.2; Elgohary et al., "Compressed Linear Algebra for
Large-Scale Machine Learning" (VLDB 2016), section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
INDEX_BYTES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """DDC: `codes[i]` is the row of the dictionary that row i has."""

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

    def spread(self, values: Array) -> Array:
        """For each row its tuple's entry of `values`."""
        return np.take(values, self.codes, axis=0)

    def gather(self, v: Array, distinct: int) -> Array:
        """For each tuple the sum of `v` over its rows."""
        return np.bincount(self.codes, v, distinct)

    def part(self, lo: int, hi: int) -> Codes:
        """The rows from lo to hi."""
        return Codes(self.codes[lo:hi])


@dataclass(frozen=True, slots=True, eq=False)
class Offsets:
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

    def spread(self, values: Array) -> Array:
        """For each row its tuple's entry of `values`."""
        out = np.empty((self.rows, *values.shape[1:]), values.dtype)
        out[:] = values[0]
        out[self.offsets] = np.repeat(values[1:], np.diff(self.starts), axis=0)
        return out

    def gather(self, v: Array, distinct: int) -> Array:
        """For each tuple the sum of `v` over its rows."""
        out = np.zeros(distinct, np.result_type(v, np.float64))
        common = np.ones(self.rows, bool)
        common[self.offsets] = False
        out[0] = v[common].sum()
        code = np.repeat(np.arange(1, distinct), np.diff(self.starts))
        return out + np.bincount(code, v[self.offsets], distinct)

    def part(self, lo: int, hi: int) -> Offsets:
        """The rows from lo to hi."""
        kept = (self.offsets >= lo) & (self.offsets < hi)
        before = np.concatenate([[0], np.cumsum(kept)])
        return Offsets((self.offsets[kept] - lo).astype(self.offsets.dtype), before[self.starts], hi - lo)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
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

    def spread(self, values: Array) -> Array:
        """For each row its tuple's entry of `values`."""
        return np.repeat(values[self.codes], np.diff(self.starts), axis=0)

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


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Columns that share codes: row k of `dictionary` is the k-th distinct tuple of their values.

    Without a layout the dictionary is the columns themselves, row by row.
    """

    columns: tuple[int, ...]
    dictionary: Array
    layout: Layout | None

    @property
    def nbytes(self) -> int:
        """Bytes of the dictionary and of what says where its tuples are."""
        return self.dictionary.nbytes + (0 if self.layout is None else self.layout.nbytes)

    @property
    def name(self) -> str:
        """The layout's usual name."""
        return {Codes: "DDC", Offsets: "OLE", Runs: "RLE"}.get(type(self.layout), "plain")

    def values(self) -> Array:
        """The columns, row by row."""
        return self.spread(self.dictionary)

    def spread(self, values: Array) -> Array:
        """For each row the entry of `values`, which has one for each tuple."""
        return values if self.layout is None else self.layout.spread(values)

    def counts(self) -> Array:
        """How many rows have each tuple."""
        if self.layout is None:
            return np.ones(len(self.dictionary), np.int64)
        return self.layout.counts(len(self.dictionary))

    def gather(self, v: Array) -> Array:
        """For each tuple the sum of `v` over its rows."""
        return v if self.layout is None else self.layout.gather(v, len(self.dictionary))

    def map(self, function: Callable[[Array], Array]) -> Group:
        """A function of single elements, on distinct ones."""
        return replace(self, dictionary=function(self.dictionary))

    def part(self, lo: int, hi: int) -> Group:
        """The rows from lo to hi."""
        if self.layout is None:
            return replace(self, dictionary=self.dictionary[lo:hi])
        return replace(self, layout=self.layout.part(lo, hi))

    def some(self, lo: int, hi: int) -> Group | None:
        """The columns from lo to hi, numbered from 0; None where there are none."""
        kept = [k for k, c in enumerate(self.columns) if lo <= c < hi]
        if not kept:
            return None
        return Group(tuple(self.columns[k] - lo for k in kept), self.dictionary[:, kept], self.layout)
