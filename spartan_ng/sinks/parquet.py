"""A folder of Parquet files as a sink: each block of rows is a file of its own, by whoever makes it.

A file's name says which rows it has. Where workers' parts of the array cut rows, each writes its columns, and
these are put together at the end. A block may be written again, by others that cut the array otherwise: at
the end each row is taken from one file, or from files of columns beside each other.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import Box
from spartan_ng.extras import needed
from spartan_ng.memory import budget_bytes
from spartan_ng.sinks.folder import FolderSink
from spartan_ng.sinks.places import new_folder, take_place
from spartan_ng.sources.pools import unpacked

FILE_BYTES = 1 << 26
"""A file has rows of about this size before they are packed."""

GROUP_BYTES = 1 << 24
"""Row groups are of about this size: who reads a file in parts has one of them at a time."""

SHARE = 32
"""It is no more than one part in so many of the memory: several are made and packed at a time."""

_GROUP_SHARE = 8
"""Nor is a row group that is made here more than one part in so many: pyarrow has it several times over."""

DICTIONARY_BYTES = 1 << 16
"""What distinct values of a column take at most where it is written as their numbers. pyarrow's own bound is
1 MB: until it is reached, a column of many values takes 20 MB of memory, and four times as long to write."""

Span = tuple[int, int]
_NAME = re.compile(r"rows-(\d+)-(\d+)(?:-columns-(\d+)-(\d+))?\.parquet")


class ParquetFolder(FolderSink):
    """A folder that is one array of rows, or of rows by columns.

    Parameters
    ----------
    path : the folder whose place it takes at the end
    shape, dtype : the array's
    names : of the columns
    options : of pyarrow's `write_table`
    """

    def __init__(
        self,
        path: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        names: list[str],
        options: dict[str, Any],
    ) -> None:
        self.path, self.shape, self.names = path, shape, names
        line = max(prod(shape[1:]) * dtype.itemsize, 1)
        rows = max(min(FILE_BYTES, budget_bytes() // SHARE) // line, 1)
        rows_of_group = max(GROUP_BYTES // line, 1)
        self.options = {"row_group_size": rows_of_group, **with_bounds(options)}
        self.chunks = (min(rows, max(shape[0], 1)), *(max(n, 1) for n in shape[1:]))
        self.folder = new_folder(path)
        self.begin()

    @property
    def place(self) -> str:
        """The folder."""
        return self.path

    def put(self, block: np.ndarray[Any, Any], box: Box) -> None:
        """A file of its own, which is there whole or not at all."""
        columns = box[1] if len(box) > 1 else (0, 1)
        self._store(table(block, self.names[slice(*columns)]), box[0], columns)

    def finish(self) -> None:
        """Put together what was cut, remove what is there twice, and rename the folder."""
        self.end()
        found = [p for p in map(self._piece, os.listdir(self.folder)) if p is not None]
        pieces = sorted(found, key=lambda p: p.rows)
        kept: set[str] = set() if self.shape[0] else {p.name for p in pieces}
        waiting: list[Any] = []
        first = at = 0
        while at < self.shape[0]:
            whole = [p for p in pieces if p.rows[0] == at and p.columns == (0, len(self.names))]
            if whole:
                self._flush(waiting, (first, at), kept)
                at = first = whole[-1].rows[1]
                kept.add(whole[-1].name)
                continue
            end = min(n for p in pieces for n in p.rows if n > at)
            waiting.append(self._cut(pieces, (at, end)))
            at = end
            if self.chunks is not None and at - first >= self.chunks[0]:
                self._flush(waiting, (first, at), kept)
                first = at
        self._flush(waiting, (first, at), kept)
        for name in set(os.listdir(self.folder)) - kept:
            os.unlink(os.path.join(self.folder, name))
        take_place(self.folder, self.path)

    def give_up(self) -> None:
        """Remove it."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _cut(self, pieces: list[_Piece], rows: Span) -> Any:
        """The table of rows that no piece begins or ends between, from pieces beside each other."""
        over = {p.columns: p for p in pieces if p.rows[0] <= rows[0] and rows[1] <= p.rows[1]}
        found: list[Any] = []
        for columns in chain(over, len(self.names)):
            path = os.path.join(self.folder, over[columns].name)
            read = needed("pyarrow.parquet", "tables").read_table(path)
            found += read.slice(rows[0] - over[columns].rows[0], rows[1] - rows[0]).columns
        return needed("pyarrow", "tables").table(found, names=self.names)

    def _flush(self, waiting: list[Any], rows: Span, kept: set[str]) -> None:
        """Write tables that follow each other to one file."""
        if waiting:
            together = needed("pyarrow", "tables").concat_tables(waiting)
            kept.add(self._store(together, rows, (0, len(self.names))))
            waiting.clear()

    def _store(self, found: Any, rows: Span, columns: Span) -> str:
        name = self._name(rows, columns)
        path = os.path.join(self.folder, name)
        temporary = f"{path}.{os.getpid()}-{id(found):x}"
        unpacked(needed("pyarrow.parquet", "tables").write_table, found, temporary, **self.options)
        os.replace(temporary, path)
        return name

    def _name(self, rows: Span, columns: Span) -> str:
        """Names in order are rows in order."""
        digits = len(str(self.shape[0]))
        cut = "" if columns == (0, len(self.names)) else f"-columns-{columns[0]}-{columns[1]}"
        return f"rows-{rows[0]:0{digits}}-{rows[1]:0{digits}}{cut}.parquet"

    def _piece(self, name: str) -> _Piece | None:
        """What a file has; None of one that was not completed."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        lo, hi, *columns = (int(n) for n in match.groups() if n is not None)
        return _Piece(name, (lo, hi), (columns[0], columns[1]) if columns else (0, len(self.names)))


class _Piece(Struct, frozen=True):
    """A file, and the rows and columns that it has."""

    name: str
    rows: Span
    columns: Span


def group_bytes() -> int:
    """What a row group takes that is made here before it is packed."""
    return min(GROUP_BYTES, budget_bytes() // _GROUP_SHARE)


_WAYS = {
    "c": "write real and imaginary parts as columns (np.stack([a.real, a.imag], axis=1)), or .npy or .zarr",
    "V": "write each field as a column (np.stack([a[name] for name in a.dtype.names], axis=1)), or .npy",
    "M": "have them as days (a.astype('M8[D]')) or a finer unit",
    "m": "have them as seconds (a.astype('m8[s]')) or a finer unit",
}
"""What to do with elements that pyarrow has no type for."""


def with_bounds(options: dict[str, Any]) -> dict[str, Any]:
    """Options of pyarrow's, with ours where they are not said."""
    return {"dictionary_pagesize_limit": DICTIONARY_BYTES, **options}


def table(rows: np.ndarray[Any, Any], names: list[str]) -> Any:
    """Rows, or rows by columns, as a table of pyarrow's, which knows the machine's order of bytes alone.

    Raises
    ------
    TypeError : Parquet has no such elements
    """
    arrow = needed("pyarrow", "tables")
    block = rows.reshape(len(rows), len(names))
    block = block.astype(block.dtype.newbyteorder("="), copy=False)
    try:
        kind = arrow.from_numpy_dtype(block.dtype)
    except arrow.ArrowNotImplementedError as error:
        way = _WAYS.get(block.dtype.kind, "have them as another dtype, or write .npy, .zarr or .h5")
        raise TypeError(f"to_parquet: tables have no elements of {rows.dtype}: {way}") from error
    every = [arrow.array(_whole(block[:, k]), kind) for k in range(len(names))]
    return arrow.table(every, schema=arrow.schema([(n, kind) for n in names]))


def _whole(column: np.ndarray[Any, Any]) -> Any:
    """A column as pyarrow takes it; texts of NumPy's end for it at their first zero."""
    return column.tolist() if column.dtype.kind in "US" else np.ascontiguousarray(column)


def chain(spans: Iterable[Span], end: int) -> list[Span]:
    """Some of the spans that follow each other from 0 to `end`; AssertionError where no such are among
    them."""
    reaching: dict[int, Span | None] = {end: None}
    """By where they begin, spans from which the end is reached."""
    for lo, hi in sorted(spans, reverse=True):
        if hi in reaching:
            reaching.setdefault(lo, (lo, hi))
    assert 0 in reaching, "every block has been written"
    found: list[Span] = []
    span = reaching[0]
    while span is not None:
        found.append(span)
        span = reaching[span[1]]
    return found
