"""A matrix in groups of compressed columns, with the little of SciPy's sparse interface that kernels ask for.

Rows and columns can be cut out without decompressing. What has no rule here works on `toarray()`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from spartan_ng.compressed.groups import Array, Group

_PARTS = 64
"""Row ranges that a matrix remembers: those of the blocks that runs ask for again and again."""


@dataclass(frozen=True, slots=True, eq=False)
class CompressedMatrix:
    """`groups` cover the columns of a `rows` by `width` matrix; `turned`: the matrix is its transpose."""

    groups: tuple[Group, ...]
    rows: int
    width: int
    dtype: np.dtype[Any]
    turned: bool = False
    _known: dict[Any, Any] = field(default_factory=dict)

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
        """Bytes of all groups."""
        return sum(g.nbytes for g in self.groups)

    @property
    def T(self) -> CompressedMatrix:
        """The transpose: the same groups."""
        return CompressedMatrix(self.groups, self.rows, self.width, self.dtype, not self.turned, self._known)

    def toarray(self) -> Array:
        """All elements."""
        out = np.empty((self.rows, self.width), self.dtype)
        for g in self.groups:
            out[:, list(g.columns)] = g.values()
        return out.T if self.turned else out

    def tocsr(self) -> Any:
        """All elements as a CSR array."""
        return sparse.csr_array(self.toarray())

    def copy(self) -> CompressedMatrix:
        """Itself: it never changes."""
        return self

    def astype(self, dtype: Any, copy: bool = True) -> CompressedMatrix:
        """Another dtype."""
        return self.map(lambda d: d.astype(dtype, copy=False))

    def map(self, function: Callable[[Array], Array]) -> CompressedMatrix:
        """A function of single elements, on distinct ones."""
        groups = tuple(g.map(function) for g in self.groups)
        return CompressedMatrix(
            groups, self.rows, self.width, groups[0].dictionary.dtype, self.turned, self._known
        )

    def __getitem__(self, key: Any) -> Any:
        """A range of rows and one of columns stay compressed; anything else is decompressed."""
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if self.turned:
            part = self.T[columns, rows]
            return part.T
        if not all(isinstance(k, slice) and k.step in (None, 1) for k in (rows, columns)):
            return self.toarray()[rows, columns]
        lo, hi, _ = rows.indices(self.rows)
        left, right, _ = columns.indices(self.width)
        found = self if (lo, hi) == (0, self.rows) else self._part(lo, max(lo, hi))
        if (left, right) == (0, self.width):
            return found
        groups = tuple(g for g in (g.some(left, right) for g in found.groups) if g is not None)
        return CompressedMatrix(groups, found.rows, max(right - left, 0), self.dtype)

    def _part(self, lo: int, hi: int) -> CompressedMatrix:
        """A range of rows; where they are is worked out once, whatever the dictionaries hold."""
        layouts = self._known.get((lo, hi))
        if layouts is None:
            if len(self._known) > _PARTS:
                self._known.clear()
            layouts = self._known[lo, hi] = ([g.part(lo, hi).layout for g in self.groups], {})
        groups = tuple(
            g.part(lo, hi) if layout is None else Group(g.columns, g.dictionary, layout)
            for g, layout in zip(self.groups, layouts[0], strict=True)
        )
        return CompressedMatrix(groups, hi - lo, self.width, self.dtype, False, layouts[1])

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copies: what is remembered may hold addresses, and stays here."""
        return CompressedMatrix, (self.groups, self.rows, self.width, self.dtype, self.turned)

    def counts(self) -> list[Array]:
        """How many rows have each tuple of each group; counted once."""
        return self.remembered("counts", lambda: [g.counts() for g in self.groups])  # type: ignore[no-any-return]

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """What depends on the layouts alone, made once for all matrices that share them."""
        if name not in self._known:
            self._known[name] = make()
        return self._known[name]

    # --- folds and products --------------------------------------------------------------------------

    def fold(self, name: str, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """The fold "add", "maximum" or "minimum" over distinct values; None where there is no rule."""
        if name not in ("add", "maximum", "minimum"):
            return None
        inner = tuple(1 - a for a in axes) if self.turned else axes
        if inner == (1,):
            return self._fold_rows(name, dtype)
        out = np.empty(self.width, dtype)
        for g, counts in zip(self.groups, self.counts(), strict=True):
            here = counts > 0  # a part of the rows need not have every tuple
            d = g.dictionary[here].astype(dtype, copy=False)
            if name == "add":
                part = counts[here].astype(dtype, copy=False) @ d
            else:
                part = getattr(np, name).reduce(d, axis=0)
            out[list(g.columns)] = part
        return out if len(axes) == 1 else getattr(np, name).reduce(out, dtype=dtype)

    def _fold_rows(self, name: str, dtype: np.dtype[Any]) -> Array:
        """For each row the fold of its elements."""
        ufunc = getattr(np, name)
        out: Any = None
        for g in self.groups:
            part = g.spread(ufunc.reduce(g.dictionary, axis=1, dtype=dtype))
            out = part if out is None else ufunc(out, part)
        return np.array(out)

    def __matmul__(self, other: Array) -> Any:
        """The product with a dense matrix or vector: each tuple's once, then the rows' sum."""
        if self.turned:
            return self.T._from_left(other)
        out: Any = None
        for g in self.groups:
            part = g.spread(g.dictionary @ other[list(g.columns)])
            if out is None:
                out = np.array(part)
            else:
                out += part
        return out

    def _from_left(self, other: Array) -> Any:
        """`self.T @ other`: the vector summed for each tuple, then a product with the dictionary."""
        columns = [other] if other.ndim == 1 else list(other.T)
        out = np.empty((self.width, len(columns)), np.result_type(self.dtype, other.dtype, np.float64))
        for g, counts in zip(self.groups, self.counts(), strict=True):
            here = counts > 0
            sums = np.stack([g.gather(v) for v in columns], axis=1)
            out[list(g.columns)] = g.dictionary[here].T @ sums[here]
        return out[:, 0] if other.ndim == 1 else out


def is_compressed(value: Any) -> bool:
    """Whether a value is a compressed matrix."""
    return type(value) is CompressedMatrix
