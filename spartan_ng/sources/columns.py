"""Columns of tables as arrays: Parquet, Arrow and CSV files, by pyarrow.

A table is read in batches: row groups, record batches, runs of lines. Columns have one dtype, which all their
elements fit; what is missing is NaN in a column of floats, and a SourceError in any other.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.sources.files import Path, absolute, is_url, opened
from spartan_ng.sources.source import OpenedSource, Serial, checked_dtype, said_of

CSV_BYTES = 1 << 22
"""Lines of a CSV file are read in runs of about this size."""


class Columns(OpenedSource):
    """Columns of a file as an array: 1-d of one that is named, else 2-d, rows by columns.

    Parameters
    ----------
    path : the file, or a URL that fsspec knows
    columns : the name of one, names of several, or None for all
    dtype : of the elements; None for what all columns fit
    options : of the file system
    """

    def __init__(
        self,
        path: Path,
        columns: str | Sequence[str] | None = None,
        dtype: Any = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.path, self.options = absolute(path), options
        self._serial = Serial()
        with said_of(path):
            schema, lengths = self._described()
        names = (
            list(schema.names)
            if columns is None
            else [columns]
            if isinstance(columns, str)
            else list(columns)
        )
        missing = [n for n in names if n not in schema.names]
        if missing:
            raise KeyError(f"{path} has no column {missing[0]!r}; it has {', '.join(schema.names)}")
        self.names = names
        self._ends = [0, *accumulate(lengths)]
        self.dtype = checked_dtype(self._dtype(schema) if dtype is None else dtype, str(path))
        self.shape = (self._ends[-1],) if isinstance(columns, str) else (self._ends[-1], len(names))
        self._longest = max(lengths, default=1) or 1

    @property
    def chunks(self) -> tuple[int, ...]:
        """The longest batch."""
        return (self._longest, *self.shape[1:])

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """The rows of the batches that have some of them."""
        (lo, hi), *rest = box
        names = self.names[slice(*rest[0])] if rest else self.names
        first, last = bisect_right(self._ends, lo) - 1, bisect_right(self._ends, hi - 1)
        with self._serial:
            table = self._batches(first, last, names)
        table = table.slice(lo - self._ends[first], hi - lo)
        out = np.empty(box_shape(box), self.dtype)
        for k, name in enumerate(names):
            out[(slice(None), k) if rest else slice(None)] = self._elements(table.column(name), name)
        return out

    def _dtype(self, schema: Any) -> np.dtype[Any]:
        """What all columns fit; TypeError where there is no such dtype."""
        found = {n: _dtype_of(schema.field(n)) for n in self.names}
        strange = [n for n, dtype in found.items() if dtype is None]
        if strange:
            wrong = f"column {strange[0]!r} has elements of type {schema.field(strange[0]).type}"
        else:
            try:
                return np.result_type(*[dtype for dtype in found.values() if dtype is not None])
            except TypeError:
                kinds = ", ".join(f"{n!r} {dtype}" for n, dtype in found.items())
                wrong = f"its columns have no dtype in common: {kinds}"
        usable = [n for n, dtype in found.items() if dtype is not None and dtype.kind in "biuf"]
        way = f"ask for columns={usable}" if usable else "none of its columns has numbers"
        if strange == list(schema.names) and len(strange) == 1:
            way += "; are they separated by commas?" if set(strange[0]) & set(";\t|") else ""
        raise TypeError(f"{self}: {wrong}, which no array can have; {way}")

    def _elements(self, column: Any, name: str) -> np.ndarray[Any, Any]:
        if column.null_count and self.dtype.kind not in "fc":
            raise SourceError(
                f"{self}: column {name!r} lacks {column.null_count} elements, which {self.dtype} cannot say; "
                "ask for a float dtype"
            )
        found: np.ndarray[Any, Any] = column.to_numpy()
        return found

    @abstractmethod
    def _described(self) -> tuple[Any, list[int]]:
        """The schema, and the rows of each batch."""

    @abstractmethod
    def _batches(self, first: int, last: int, names: list[str]) -> Any:
        """The batches `[first, last)` as a table of the columns."""

    def _file(self) -> Any:
        """What pyarrow reads."""
        return opened(self.path, self.options) if is_url(self.path) else self.path

    def __str__(self) -> str:
        return self.path


class ParquetColumns(Columns):
    """Of a Parquet file."""

    def open(self) -> Any:
        """Pyarrow's file."""
        return needed("pyarrow.parquet", "tables").ParquetFile(self._file())

    def _described(self) -> tuple[Any, list[int]]:
        meta = self.opened.metadata
        return self.opened.schema_arrow, [meta.row_group(i).num_rows for i in range(meta.num_row_groups)]

    def _batches(self, first: int, last: int, names: list[str]) -> Any:
        return self.opened.read_row_groups(list(range(first, last)), columns=names)


class ArrowColumns(Columns):
    """Of an Arrow file (Feather, format 2)."""

    def open(self) -> Any:
        """Pyarrow's reader, over a map of a local file."""
        arrow = needed("pyarrow", "tables")
        file = self._file() if is_url(self.path) else arrow.memory_map(self.path)
        return needed("pyarrow.ipc", "tables").open_file(file)

    def _described(self) -> tuple[Any, list[int]]:
        reader = self.opened
        return reader.schema, [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]

    def _batches(self, first: int, last: int, names: list[str]) -> Any:
        arrow = needed("pyarrow", "tables")
        batches = [self.opened.get_batch(i) for i in range(first, last)]
        return arrow.Table.from_batches(batches).select(names)


class CsvColumns(Columns):
    """Of a CSV file.

    Where its lines begin is found when it is made, by one look at the whole file; a text in quotes has no
    line breaks. What the first run of lines has says of which type a column is; whole numbers of which some
    are missing there are floats.

    Parameters
    ----------
    header : whether its first line has names; None: it has to, and numbers are none
    """

    def __init__(
        self,
        path: Path,
        columns: str | Sequence[str] | None = None,
        dtype: Any = None,
        options: dict[str, Any] | None = None,
        header: bool | None = None,
    ) -> None:
        self.header = header
        super().__init__(path, columns, dtype, options)

    def open(self) -> Any:
        """Pyarrow's module for it: the file is opened for each run of lines."""
        return needed("pyarrow.csv", "tables")

    def _described(self) -> tuple[Any, list[int]]:
        self._starts, lengths = _lines(self._file_of_bytes(), 0 if self.header is False else 1)
        if not lengths:
            raise SourceError(f"{self} has no rows" if self._starts[0] else f"{self} is empty")
        found = self._parsed(0, 1, None)
        if self.header is None and all(map(_is_number, found.schema.names)):
            raise SourceError(
                f"{self} begins with numbers, where names of columns are to stand: put a line of names "
                "there, or read it by np.from_csv(path, header=False); header=True takes them as names"
            )
        self._head = _with_room(found)
        return self._head, lengths

    def _batches(self, first: int, last: int, names: list[str]) -> Any:
        return self._parsed(first, last, names)

    def _file_of_bytes(self) -> Any:
        return opened(self.path, self.options)

    def _parsed(self, first: int, last: int, names: list[str] | None) -> Any:
        csv, arrow = self.opened, needed("pyarrow", "tables")
        with self._file_of_bytes() as file:
            head = file.read(self._starts[0])
            file.seek(self._starts[first])
            text = head + file.read(self._starts[last] - self._starts[first])
        options = {"read_options": csv.ReadOptions(autogenerate_column_names=self.header is False)}
        if names is not None:
            types = {n: self._head.field(n).type for n in names}
            options["convert_options"] = csv.ConvertOptions(include_columns=names, column_types=types)
        return csv.read_csv(arrow.BufferReader(text), **options)


def _lines(file: Any, left_out: int) -> tuple[list[int], list[int]]:
    """Where runs of lines begin, with the end of the file, and how many lines each has, but for the first
    ones."""
    with file:
        for _ in range(left_out):
            file.readline()
        starts, lengths = [file.tell()], []
        while part := file.read(CSV_BYTES):
            part += file.readline()
            lines = part.split(b"\n")
            starts.append(file.tell())
            lengths.append(sum(1 for line in lines if line.strip()))  # pyarrow skips empty ones
    return starts, lengths


def _with_room(table: Any) -> Any:
    """A table's schema, with room for what is missing where it is missing in the table."""
    arrow = needed("pyarrow", "tables")
    found = table.schema
    for i, field in enumerate(found):
        is_whole = arrow.types.is_integer(field.type) or arrow.types.is_null(field.type)
        if is_whole and table.column(i).null_count:
            found = found.set(i, arrow.field(field.name, arrow.float64()))
    return found


def _dtype_of(field: Any) -> np.dtype[Any] | None:
    """NumPy's dtype for a column; None where it has none."""
    try:
        found: np.dtype[Any] = np.dtype(field.type.to_pandas_dtype())
    except NotImplementedError:
        return None
    return None if found.hasobject else found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
