"""Groups of columns that share codes, and what follows from them alone, whatever the dictionaries hold.

The dictionaries of all groups lie in one vector of words: group by group, in a group column by column, each
column's value for every tuple. A function of single elements is one call on this vector, and a fold of
columns one reduction by segments.

"On Optimizing Operator Fusion Plans", section 5.2: compressed linear algebra in generated operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field

from spartan_ng.compressed.layouts import NAMES, Array, Layout

_REMEMBERED = 256
"""Results that are kept, mostly of row ranges: those of the blocks that runs ask for again and again."""


class ColumnGroup(Struct, frozen=True, eq=False):
    """Columns that share the codes of `layout`, with `distinct` tuples."""

    columns: tuple[int, ...]
    distinct: int
    layout: Layout

    @property
    def name(self) -> str:
        """The layout's usual name."""
        return NAMES[type(self.layout)]

    @property
    def words(self) -> int:
        """Values in the dictionary."""
        return self.distinct * len(self.columns)

    def part(self, lo: int, hi: int) -> ColumnGroup:
        """The rows from lo to hi; the tuples stay, those without a row, too."""
        return ColumnGroup(self.columns, self.distinct, self.layout.part(lo, hi))


class Coding(Struct, frozen=True, eq=False):
    """The groups of a matrix of `rows`; a window of it shares their codes.

    `remembered` is what has been worked out of codes and windows, once for all matrices with this coding;
    it may hold addresses, and stays in the process.
    """

    groups: tuple[ColumnGroup, ...]
    rows: int
    _known: dict[Any, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copies: without what is remembered."""
        return Coding, (self.groups, self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all codes."""
        return sum(g.layout.nbytes for g in self.groups)

    def remembered(self, name: Any, make: Callable[[], Any]) -> Any:
        """What depends on codes alone: made once, and the same for threads that ask together."""
        found = self._known.get(name)
        if found is None:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            found = self._known.setdefault(name, make())
        return found

    @property
    def starts(self) -> Array:
        """Where each coded column's words begin."""
        return self.remembered("starts", self._starts)  # type: ignore[no-any-return]

    def _starts(self) -> Array:
        lengths = [g.distinct for g in self.groups for _ in g.columns]
        return np.cumsum([0, *lengths[:-1]]) if lengths else np.zeros(0, np.int64)

    @property
    def columns(self) -> Array:
        """The number of each coded column."""
        return self.remembered("columns", self._columns)  # type: ignore[no-any-return]

    def _columns(self) -> Array:
        return np.array([c for g in self.groups for c in g.columns], np.int64)

    def first_words(self) -> list[int]:
        """Where each group's words begin."""
        found = np.cumsum([0, *(g.words for g in self.groups)])
        return [int(f) for f in found[:-1]]

    def within(self, lo: int, hi: int) -> tuple[ColumnGroup, ...]:
        """The groups of a range of rows."""
        if (lo, hi) == (0, self.rows):
            return self.groups
        return self.remembered(  # type: ignore[no-any-return]
            ("part", lo, hi), lambda: tuple(g.part(lo, hi) for g in self.groups)
        )

    def counts(self, lo: int, hi: int) -> list[Array]:
        """How many rows from lo to hi have each tuple of each group."""
        return self.remembered(  # type: ignore[no-any-return]
            ("counts", lo, hi), lambda: [g.layout.counts(g.distinct) for g in self.within(lo, hi)]
        )

    def word_counts(self, lo: int, hi: int) -> Array:
        """For each word in how many rows from lo to hi its tuple is."""
        return self.remembered(("words", lo, hi), lambda: self._word_counts(lo, hi))  # type: ignore[no-any-return]

    def _word_counts(self, lo: int, hi: int) -> Array:
        pairs = zip(self.groups, self.counts(lo, hi), strict=True)
        return _joined([np.tile(counts, len(g.columns)) for g, counts in pairs])

    def some(self, left: int, right: int) -> tuple[Coding, Array]:
        """The columns from left to right, numbered from 0, and the places of their words."""
        kept, places = [], []
        for g, first in zip(self.groups, self.first_words(), strict=True):
            inside = [k for k, c in enumerate(g.columns) if left <= c < right]
            if inside:
                kept.append(ColumnGroup(tuple(g.columns[k] - left for k in inside), g.distinct, g.layout))
                places += [first + k * g.distinct + np.arange(g.distinct) for k in inside]
        return Coding(tuple(kept), self.rows), _joined(places)


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
