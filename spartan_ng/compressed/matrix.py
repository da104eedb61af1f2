"""A matrix in groups of compressed columns, with the little of SciPy's sparse interface that kernels ask for.

Rows and columns can be cut out without decompressing; a range of rows is a window on the same codes. What
has no rule here works on the elements, which `kernels.formats.dense` makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays.sparse import csr_array
from spartan_ng.compressed.groups import Coding, ColumnGroup
from spartan_ng.compressed.layouts import Array

_STRIP = 4096
"""Rows of the elements that stay in the cache while all groups are written to them."""


class CompressedMatrix(Struct, frozen=True, eq=False):
    """The rows `lo` to `hi` of a matrix of `width` columns; `turned`: the matrix is its transpose.

    `coding` says which rows have which tuples of values, `words` are these values. Columns in which nothing
    repeats, `plain_columns`, are the columns of `plain`, which has these rows alone.
    """

    coding: Coding
    words: Array
    plain_columns: tuple[int, ...]
    plain: Array
    width: int
    lo: int
    hi: int
    turned: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        found: np.dtype[Any] = self.words.dtype
        return found

    @property
    def rows(self) -> int:
        """Number of rows, before the matrix is turned."""
        return self.hi - self.lo

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, as seen."""
        return (self.width, self.rows) if self.turned else (self.rows, self.width)

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    @property
    def nbytes(self) -> int:
        """Bytes of codes, dictionaries and plain columns; of a range of rows its share of the codes."""
        coded = self.coding.nbytes * self.rows // max(self.coding.rows, 1)
        return coded + self.words.nbytes + self.plain.nbytes

    @property
    def groups(self) -> tuple[ColumnGroup, ...]:
        """The groups of these rows."""
        return self.coding.within(self.lo, self.hi)

    @property
    def T(self) -> CompressedMatrix:
        """The transpose: the same groups."""
        return replace(self, turned=not self.turned)

    def described(self) -> str:
        """The layouts, as in "DDC 3, OLE 1, plain 2": columns of each."""
        names: dict[str, int] = {}
        for g in self.coding.groups:
            names[g.name] = names.get(g.name, 0) + len(g.columns)
        if self.plain_columns:
            names["plain"] = len(self.plain_columns)
        return ", ".join(f"{name} {n}" for name, n in names.items()) or "no columns"

    def dictionaries(self) -> Iterator[tuple[ColumnGroup, Array]]:
        """Each group with its words: a line for every column, one word a tuple."""
        for g, first in zip(self.groups, self.coding.first_words(), strict=True):
            yield g, self.words[first : first + g.words].reshape(len(g.columns), g.distinct)

    def toarray(self) -> Array:
        """All elements."""
        out = np.empty((self.rows, self.width), self.dtype)
        coded = [(g.columns, words, g.layout.of_rows()) for g, words in self.dictionaries()]
        for lo in range(0, self.rows, _STRIP):
            strip = slice(lo, lo + _STRIP)
            for columns, words, codes in coded:
                for column, known in zip(columns, words, strict=True):
                    out[strip, column] = known[codes[strip]]
        out[:, list(self.plain_columns)] = self.plain
        return out.T if self.turned else out

    def tocsr(self) -> Any:
        """All elements as a CSR array."""
        return csr_array(self.toarray())

    def copy(self) -> CompressedMatrix:
        """Itself: it never changes."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> CompressedMatrix:
        """Another dtype."""
        return self.map(lambda d: d.astype(dtype, copy=False))

    def map(self, function: Callable[[Array], Array]) -> CompressedMatrix:
        """A function of single elements, on the words and the plain columns."""
        return replace(self, words=function(self.words), plain=function(self.plain))

    def __getitem__(self, key: Any) -> Any:
        """A range of rows and one of columns stay compressed; other rows are looked up one by one."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if self.turned:
            part = self.T[columns, rows]
            return part.T
        if not all(isinstance(k, slice) and k.step in (None, 1) for k in (rows, columns)):
            return self._picked(rows)[:, columns] if _is_list(rows) else self.toarray()[rows, columns]
        lo, hi, _ = rows.indices(self.rows)
        left, right, _ = columns.indices(self.width)
        found = self.window(lo, max(lo, hi))
        return found if (left, right) == (0, self.width) else found._some(left, max(left, right))

    def window(self, lo: int, hi: int) -> CompressedMatrix:
        """A range of rows."""
        if (lo, hi) == (0, self.rows):
            return self
        return replace(self, lo=self.lo + lo, hi=self.lo + hi, plain=self.plain[lo:hi])

    def cut_out(self) -> CompressedMatrix:
        """The same rows with codes of their own, to be sent or kept without the others."""
        if self.rows == self.coding.rows:
            return self
        return replace(self, coding=Coding(self.groups, self.rows), lo=0, hi=self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copies: no more than these rows."""
        own = self.cut_out()
        fields = own.coding, own.words, own.plain_columns, own.plain, own.width, own.lo, own.hi, own.turned
        return CompressedMatrix, fields

    def _some(self, left: int, right: int) -> CompressedMatrix:
        """The columns from left to right."""
        name = "columns", left, right
        coding, places = self.coding.remembered(name, lambda: self.coding.some(left, right))
        kept = [k for k, c in enumerate(self.plain_columns) if left <= c < right]
        return replace(
            self,
            coding=coding,
            words=self.words[places],
            plain_columns=tuple(self.plain_columns[k] - left for k in kept),
            plain=self.plain[:, kept],
            width=right - left,
        )

    def _picked(self, rows: Any) -> Array:
        """The elements of some rows."""
        at = np.arange(self.rows)[rows]
        out = np.empty((len(at), self.width), self.dtype)
        for g, words in self.dictionaries():
            out[:, list(g.columns)] = words.T[g.layout.of_rows()[at]]
        out[:, list(self.plain_columns)] = self.plain[at]
        return out

    # --- folds and products --------------------------------------------------------------------------

    def counts(self) -> list[Array]:
        """How many rows have each tuple of each group; counted once."""
        return self.coding.counts(self.lo, self.hi)

    def fold(self, name: str, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """The fold "add", "maximum" or "minimum" over rows by words and their counts; None where there is no
        rule (what keeps the rows is a matter of loops over them)."""
        inner = tuple(1 - a for a in axes) if self.turned else axes
        if name not in ("add", "maximum", "minimum") or 0 not in inner:
            return None
        if name == "add":
            out = self._sums(len(inner) == 2, np.result_type(dtype, np.float64) if _rounds(dtype) else dtype)
            with np.errstate(over="ignore"):
                return out.astype(dtype)
        out = self._extremes(getattr(np, name), dtype)
        return out if len(inner) == 1 else getattr(np, name).reduce(out)

    def _sums(self, whole: bool, wide: np.dtype[Any]) -> Any:
        """Of each column, or of all of them, the sum in the dtype `wide`."""
        counts = self.coding.word_counts(self.lo, self.hi)
        products = self.words.astype(wide, copy=False) * counts.astype(wide, copy=False)
        if self.rows < self.coding.rows:
            products[counts == 0] = 0  # a part of the rows need not have every tuple
        if whole:
            return products.sum(dtype=wide) + self.plain.sum(dtype=wide)
        out = np.zeros(self.width, wide)
        if len(products):
            out[self.coding.columns] = np.add.reduceat(products, self.coding.starts)
        out[list(self.plain_columns)] = self.plain.sum(axis=0, dtype=wide)
        return out

    def _extremes(self, ufunc: Any, dtype: np.dtype[Any]) -> Array:
        """Of each column the extreme; there is a row."""
        out = np.empty(self.width, dtype)
        words, starts = self.words, self.coding.starts
        if self.rows < self.coding.rows:
            here = self.coding.word_counts(self.lo, self.hi) > 0
            before = np.concatenate([[0], np.cumsum(here)])
            words, starts = words[here], before[starts]
        if len(words):
            out[self.coding.columns] = ufunc.reduceat(words, starts)
        if self.plain_columns:
            out[list(self.plain_columns)] = ufunc.reduce(self.plain, axis=0)
        return out

    def __matmul__(self, other: Array) -> Any:
        """The product with a dense matrix or vector of floats: each tuple's once, then the rows' sum."""
        if self.turned:
            return self.T._from_left(other)
        out = np.zeros((self.rows, *other.shape[1:]), np.result_type(self.dtype, other.dtype))
        for g, words in self.dictionaries():
            out += np.take(words.T @ other[list(g.columns)], g.layout.of_rows(), axis=0)
        return out + self.plain @ other[list(self.plain_columns)]

    def _from_left(self, other: Array) -> Any:
        """`self.T @ other`: the vector summed for each tuple, then a product with the dictionary."""
        columns = [other] if other.ndim == 1 else list(other.T)
        out = np.zeros((self.width, len(columns)), np.result_type(self.dtype, other.dtype, np.float64))
        for (g, words), counts in zip(self.dictionaries(), self.counts(), strict=True):
            here = counts > 0
            sums = np.stack([g.layout.gather(v, g.distinct) for v in columns], axis=1)
            out[list(g.columns)] = words[:, here] @ sums[here]
        out[list(self.plain_columns)] = self.plain.T @ other.reshape(len(other), -1)
        out = out.astype(np.result_type(self.dtype, other.dtype), copy=False)
        return out[:, 0] if other.ndim == 1 else out


def _rounds(dtype: np.dtype[Any]) -> bool:
    """Whether sums of the dtype round: they are made in double precision."""
    return dtype.kind in "fc"


def _is_list(rows: Any) -> bool:
    return isinstance(rows, slice | np.ndarray | list)


def is_compressed(value: Any) -> bool:
    """Whether a value is a compressed matrix."""
    return type(value) is CompressedMatrix
