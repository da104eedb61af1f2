"""Columns of tables as arrays: Parquet, Arrow and CSV files, by pyarrow.

A table is read in batches: row groups, record batches, runs of lines. Columns have one dtype, which all their
elements fit (`column_kinds`); what is missing is NaN among floats, NaT among dates, and a SourceError among
others. Columns of several files are found by their names (`together`): those of the first file are those of
all. A file may have columns of one value each, of the folders around it (`partitioned_files`).
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.memory import budget_bytes, free_disk_bytes
from spartan_ng.scratch import on_disk, put
from spartan_ng.sources.column_elements import Lists, checked_fill, lists_of, numpy_elements, plain
from spartan_ng.sources.column_kinds import common_kind, kinds_of
from spartan_ng.sources.files import Path, absolute, is_url, open_file, signs, tells_of_writes
from spartan_ng.sources.kept import DISK_SHARE, KEPT, kept_bytes, one_go_bytes, owner_of, piece_bytes
from spartan_ng.sources.keys import Keys, with_keys
from spartan_ng.sources.pools import each_unpacked, free_unused, in_systems_pool, pool_bytes, unpacked
from spartan_ng.sources.servers import patient
from spartan_ng.sources.source import OpenedSource, Serial, checked_dtype, said_of

_BUFFER_BYTES = 1 << 18
"""A column of a local Parquet file is read so many bytes at a time: pyarrow would have all that are packed of
a row group in memory before it unpacks any, which saves requests to a server."""
_READINGS = 1
"""Row groups of a file, or columns of one, that are read on in where somebody left off."""
COLUMN_BYTES = 5 << 19
"""What pyarrow has of a column while it is unpacked: its dictionary, and a page, packed and not;"""
_READINGS_SHARE = 8
"""and what all columns of a row group may take of it that are unpacked beside each other: one part in so many
of the memory."""
_GROUPS = 5
"""Row groups of a file that are on disk at a time: those of four threads that read ahead, and the next."""
_SHARE = 4
"""What is kept of tables takes no more than one part in so many of the memory."""
_MOST_COUNTS = 10_000
"""Counts of what lacks that are asked of a file's footer when it is opened."""


class Columns(OpenedSource):
    """Columns of a file as an array: 1-d of one that is named (2-d, if its elements are lists of one length),
    else 2-d, rows by columns.

    Parameters
    ----------
    path : the file, or a URL that fsspec knows
    columns : the name of one, names of several, or None for all
    dtype : of the elements; None for what all columns fit
    options : of the file system
    keys : columns that the file does not have itself, or not with these values
    fill : what stands for elements that lack; None where the dtype says it, or nothing does
    """

    def __init__(
        self,
        path: Path,
        columns: str | Sequence[str] | None = None,
        dtype: Any = None,
        options: dict[str, Any] | None = None,
        keys: Keys | None = None,
        fill: Any = None,
    ) -> None:
        self.path, self.keys, self.fill = absolute(path), keys or {}, fill
        self.options = patient(self.path, options)
        self._serial, self._signs = Serial(), signs(self.path, self.options)
        with said_of(path):
            schema, lengths = self._described()
        schema = with_keys(schema, self.keys)
        there = schema.names
        wanted = there if columns is None else columns
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        times = Counter(there)
        missing = [n for n in names if n not in times]
        if missing:
            raise KeyError(f"{path} has no column {missing[0]!r}; it has {', '.join(there)}")
        twice = [n for n in names if times[n] > 1]
        if twice:
            raise SourceError(
                f"{path} has several columns of the name {twice[0]!r}, which tells none of them"
            )
        self.names = names
        self._ends = [0, *accumulate(lengths)]
        self.lists: Lists | None = lists_of(schema, columns)
        self.shape = (self._ends[-1],) if isinstance(columns, str) else (self._ends[-1], len(names))
        if self.lists is not None:
            self.shape = (*self.shape, self.lists.length)
        self.kinds = kinds_of(self, schema) if dtype is None else []
        self.dtype = checked_dtype(common_kind([self]) if dtype is None else dtype, str(path))
        if fill is not None:
            checked_fill(fill, self.dtype, str(path))
        self._longest = max(lengths, default=1) or 1

    @property
    def chunks(self) -> tuple[int, ...]:
        """The longest batch, if it may be kept; else some rows."""
        rows = self._longest
        if rows * self._row_bytes(self.names) > one_go_bytes(_SHARE):
            rows = min(self._at_once(self.names), rows)
        return (rows, *self.shape[1:])

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """The longest batch, its columns as arrays, what pyarrow has of one while it is unpacked, and what is
        kept of others."""
        each = 2 * self._longest * self._row_bytes(self.names)
        return self._at_most(each + COLUMN_BYTES + self._kept_bytes)

    def _at_most(self, nbytes: int) -> int:
        """No more than a few times all there is."""
        return min(nbytes, 4 * self.shape[0] * self._row_bytes(self.names))

    @property
    def _kept_bytes(self) -> int:
        """What may be kept of it."""
        return min(kept_bytes(_SHARE), self.shape[0] * self._row_bytes(self.names))

    def _row_bytes(self, names: Sequence[str]) -> int:
        """Of columns that are unpacked."""
        return self.dtype.itemsize * len(names) * (1 if self.lists is None else self.lists.length)

    def _at_once(self, names: Sequence[str]) -> int:
        """Rows of columns that are unpacked together where a batch is larger than what may be kept."""
        return max(piece_bytes() // max(self._row_bytes(names), 1), 1)

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """The rows of the batches that have some of them."""
        (lo, hi), *rest = box
        within = slice(*rest[0]) if rest else slice(None)
        is_table = bool(rest) and self.lists is None
        names = self.names[within] if is_table else self.names
        out = np.empty(box_shape(box), self.dtype)
        columns = [(name, out[:, k] if is_table else out) for k, name in enumerate(names)]
        for name, column in columns:
            if name in self.keys:
                column[...] = self._key(name)
        columns = [(name, column) for name, column in columns if name not in self.keys]
        at = lo if columns else hi
        while at < hi:
            batch = bisect_right(self._ends, at) - 1
            first = self._ends[batch]
            rows = at - first, min(hi, self._ends[batch + 1]) - first
            start, found = self._piece(batch, rows, [name for name, _ in columns])
            start += first
            stop = min(start + len(found[0]), hi)
            if stop <= at:
                raise self._lacks_rows()
            for part, (name, column) in zip(found, columns, strict=True):
                own = self._elements(part[at - start : stop - start], name)
                column[at - lo : stop - lo] = own if self.lists is None else own[:, within]
            at = stop
        free_unused()
        return out

    def _lacks_rows(self) -> SourceError:
        return SourceError(f"{self} has fewer rows than it says: it may have been cut off")

    def _key(self, name: str) -> Any:
        """The value of a column that has one."""
        value = self.keys[name][1]
        if value is not None:
            return value
        if self.fill is not None:
            return self.fill
        if self.dtype.kind in "mM":
            return np.array("NaT", self.dtype)
        if self.dtype.kind in "fc":
            return np.nan
        raise SourceError(
            f"{self}: its folders do not say {name!r}, which {self.dtype} must have; {self._way()}"
        )

    def _piece(self, batch: int, rows: tuple[int, int], names: list[str]) -> tuple[int, Sequence[Any]]:
        """Rows of a batch, among them the first of `rows`, a range that is asked for: which is the first of
        them, and what some columns have there."""
        key = owner_of(self), batch, *names
        with self._serial:
            found = KEPT.get(key)
            if found is None:
                KEPT.make_room((self._ends[batch + 1] - self._ends[batch]) * self._row_bytes(names), _SHARE)
                found = self._batch(batch, names)
                KEPT.put(key, found, found.nbytes, _SHARE)
        return 0, found.columns

    def likeness(self) -> Hashable:
        """The file in its state, and which columns these are."""
        what = type(self), self.shape, self.dtype, repr(self.fill), *self.names
        is_known = tells_of_writes(self.path, self._signs)
        return (*what, self.path, str(self.options), str(self.keys), self._signs) if is_known else None

    def is_current(self) -> bool:
        """Whether the file is the one that was opened."""
        return signs(self.path, self.options) == self._signs

    def has_changed(self, box: Box) -> bool:
        """Whether the file has been written to, or another is there by now."""
        return not self.is_current()

    def _elements(self, column: Any, name: str) -> np.ndarray[Any, Any]:
        """What a column has as NumPy's array, as which it may have been put on disk already."""
        if isinstance(column, np.ndarray):
            return column
        column = plain(column)
        if self._cannot_say(column):
            raise self._lacks(name, column.null_count)
        return numpy_elements(column, self.dtype, self.fill)

    def _cannot_say(self, column: Any) -> bool:
        """Whether a column lacks elements, and the dtype has nothing for that."""
        return bool(column.null_count) and not self._says_what_lacks

    @property
    def _says_what_lacks(self) -> bool:
        return self.fill is not None or self.dtype.kind in "fcmM"

    def _lacks(self, name: str, count: int) -> SourceError:
        lacks = f"lacks {count:,} elements, which {self.dtype} cannot say"
        return SourceError(f"{self}: column {name!r} {lacks}; {self._way()}")

    def _way(self) -> str:
        """How what lacks is read."""
        example = {"U": "''", "S": "b''", "b": "False"}.get(self.dtype.kind, "0")
        numbers = "" if self.dtype.kind in "US" else "ask for dtype=float, or "
        return f"{numbers}say what stands for it (fill={example})"

    def check_lacking(self) -> None:
        """SourceError where the file says itself that elements lack which the dtype cannot say."""
        if not self._says_what_lacks:
            for name in self.names:
                if name not in self.keys and (count := self._lacking(name)):
                    raise self._lacks(name, count)

    def _lacking(self, name: str) -> int:
        """How many elements of a column lack, as far as the file says it."""
        return 0

    def parts_of(self, name: str) -> Iterator[Any]:
        """All elements of a column, part by part."""
        for number, (lo, hi) in enumerate(pairwise(self._ends)):
            if hi > lo:
                yield self._batch(number, [name]).column(0)

    @abstractmethod
    def _described(self) -> tuple[Any, list[int]]:
        """The schema, and the rows of each batch."""

    @abstractmethod
    def _batch(self, number: int, names: list[str]) -> Any:
        """A batch as a table of the columns."""

    def _file(self) -> Any:
        """What pyarrow reads."""
        return open_file(self.path, self.options) if is_url(self.path) else self.path

    def __str__(self) -> str:
        return self.path


class _Reading:
    """A row group that is unpacked from its first row on, so many rows at a time."""

    def __init__(self, batches: Iterator[Any], names: list[str], rows: int) -> None:
        self._batches, self._names, self._rows = batches, names, rows
        self._left: Any = None
        self.number = 0
        """Of the piece that comes next."""

    def next(self) -> Any:
        """The next rows, fewer at the end."""
        arrow = needed("pyarrow", "tables")
        found = [] if self._left is None else [self._left]
        while sum(t.num_rows for t in found) < self._rows:
            batch = next(self._batches, None)
            if batch is None:
                break
            found.append(arrow.Table.from_batches([batch]).select(self._names))
        table = arrow.concat_tables(found)
        self._left = table.slice(self._rows) if table.num_rows > self._rows else None
        self.number += 1
        return table.slice(0, self._rows)


class ParquetColumns(Columns):
    """Of a Parquet file."""

    def open(self) -> Any:
        """Pyarrow's file, who reads on in it, and row groups that are on disk, column by column."""
        parquet = needed("pyarrow.parquet", "tables").ParquetFile
        with in_systems_pool():
            file = parquet(self._file(), buffer_size=_BUFFER_BYTES, pre_buffer=is_url(self.path))
        return file, OrderedDict[Any, _Reading](), OrderedDict[Any, np.ndarray[Any, Any] | None]()

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """As of any table, beside what pyarrow's pool keeps; of larger row groups some rows, as pyarrow gives
        them and as they are put together, beside what it has of each column, or of one after the other."""
        row = self._row_bytes(self.names)
        if self._longest * row <= one_go_bytes(_SHARE):
            return super().beside_bytes + pool_bytes()
        beside = len(self.names) * COLUMN_BYTES
        each = COLUMN_BYTES if beside > budget_bytes() // _READINGS_SHARE else beside
        pieces = 3 * min(self._at_once(self.names), self._longest) * row
        return self._at_most(each + pieces + self._kept_bytes) + pool_bytes()

    def _described(self) -> tuple[Any, list[int]]:
        file, *_ = self.opened
        groups = range(file.metadata.num_row_groups)
        paths = (file.schema.column(i).path for i in range(len(file.schema)))
        self._leaves = {path: i for i, path in enumerate(paths)}
        return file.schema_arrow, [file.metadata.row_group(i).num_rows for i in groups]

    def _lacking(self, name: str) -> int:
        """As the footer counts them."""
        described = self.opened[0].metadata
        place = self._leaves.get(name)
        if place is None or described.num_row_groups * len(self.names) > _MOST_COUNTS:
            return 0
        said = (described.row_group(i).column(place).statistics for i in range(described.num_row_groups))
        return sum(found.null_count for found in said if found is not None and found.has_null_count)

    def _piece(self, batch: int, rows: tuple[int, int], names: list[str]) -> tuple[int, Sequence[Any]]:
        """Of a row group that may not be kept some rows, from the first on; or, for more than a few at its
        beginning, all of it on disk, where pyarrow would have too much of so many columns at a time."""
        nbytes = (self._ends[batch + 1] - self._ends[batch]) * self._row_bytes(names)
        if nbytes <= one_go_bytes(_SHARE):
            return super()._piece(batch, rows, names)
        beside = len(names) * COLUMN_BYTES * (self.lists is None)
        if beside > budget_bytes() // _READINGS_SHARE and nbytes <= free_disk_bytes() // DISK_SHARE:
            if rows[1] <= self._at_once(names) and (batch, *names) not in self.opened[2]:
                return 0, self._beginning(batch, names)
            found = self._on_disk(batch, names)
            if found is not None:
                return 0, [*found]
        return self._rows(batch, rows[0], names)

    def _beginning(self, batch: int, names: list[str]) -> Sequence[Any]:
        """What columns have in the first rows of a row group, unpacked one after the other."""
        file, *_ = self.opened
        rows, arrow = self._at_once(names), needed("pyarrow", "tables")
        key = owner_of(self), batch, rows, *names, 0
        with self._serial:
            found = KEPT.get(key)
            if found is None:
                each = (
                    (n, each_unpacked(file.iter_batches(rows, [batch], [n], use_threads=False)))
                    for n in names
                )
                parts = [_Reading(batches, [name], rows).next().column(0) for name, batches in each]
                found = 0, arrow.table(parts, names=names)
                KEPT.put(key, found, found[1].nbytes, _SHARE)
        return found[1].columns  # type: ignore[no-any-return]

    def _on_disk(self, batch: int, names: list[str]) -> np.ndarray[Any, Any] | None:
        """A row group, column by column; None where elements lack, which those who read them are told."""
        file, _, groups = self.opened
        key, arrow = (batch, *names), needed("pyarrow", "tables")
        with self._serial:
            if key in groups:
                groups.move_to_end(key)
                return groups[key]  # type: ignore[no-any-return]
            while len(groups) >= _GROUPS:
                groups.popitem(last=False)
            shape = len(names), self._ends[batch + 1] - self._ends[batch]
            found = on_disk(shape, self.dtype, "a row group")
            for name, place in zip(names, found, strict=True):
                at = 0
                parts = file.iter_batches(self._at_once([name]), [batch], [name], use_threads=False)
                for part in each_unpacked(parts):
                    column = arrow.chunked_array(part.columns)  # which NumPy may have a copy of, too
                    if self._cannot_say(column):
                        groups[key] = None
                        return None
                    own = self._elements(column, name).astype(self.dtype, copy=False)
                    put(place[at : at + len(own)], own)
                    at += len(own)
                if at < len(place):
                    raise self._lacks_rows()
            groups[key] = found
        return found

    def _rows(self, batch: int, row: int, names: list[str]) -> tuple[int, Sequence[Any]]:
        """Some rows of a row group, from the first on."""
        rows = self._at_once(names)
        own, number = (owner_of(self), batch, rows, *names), row // rows
        with self._serial:
            found = KEPT.get((*own, number))
            while found is None or found[0] < number:
                found = self._next(own, number)
                KEPT.put((*own, found[0]), found, found[1].nbytes, _SHARE)
        return number * rows, found[1].columns

    def _next(self, own: tuple[Any, ...], number: int) -> tuple[int, Any]:
        """The next piece of a row group that is read for a piece, with its number."""
        file, readings, _ = self.opened
        _, batch, rows, *names = own
        reading = readings.pop(own, None)
        if reading is None or reading.number > number:
            batches = file.iter_batches(rows, [batch], names, use_threads=False)
            reading = _Reading(each_unpacked(batches), names, rows)
        found = reading.number, reading.next()
        if found[0] * rows + found[1].num_rows < self._ends[batch + 1] - self._ends[batch]:
            readings[own] = reading
            while len(readings) > _READINGS:
                readings.popitem(last=False)
        return found

    def parts_of(self, name: str) -> Iterator[Any]:
        """Some rows at a time, as a row group may be larger than memory."""
        file, *_ = self.opened
        for batch in each_unpacked(file.iter_batches(columns=[name])):
            yield batch.column(0)

    def _batch(self, number: int, names: list[str]) -> Any:
        """Column by column: what is unpacked besides is of one of them."""
        file, *_ = self.opened
        arrow = needed("pyarrow", "tables")
        read = partial(unpacked, file.read_row_group, number, use_threads=False)
        return arrow.table([read([name]).column(0) for name in names], names=names)
