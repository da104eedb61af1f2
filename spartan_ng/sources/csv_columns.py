"""Columns of CSV files, parsed by pyarrow, some lines at a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.memory import budget_bytes
from spartan_ng.sources.column_kinds import in_lines, is_number, with_room
from spartan_ng.sources.columns import Columns
from spartan_ng.sources.files import Path, open_file
from spartan_ng.sources.keys import Keys

CSV_BYTES = 1 << 22
"""The first lines of a CSV file, of about this size, say which types its columns have; and it is read in runs
of lines of this size,"""
_RUN_TIMES = 4
"""So many times it has the text of one, in its blocks and of what it makes of them,"""
_RUNS_SHARE = 64
"""where this is no more than one part in so many of the memory."""
_OTHER = re.compile(r"column #(\d+): .*conversion error to (\w+): invalid value '(.*?)'")


class CsvColumns(Columns):
    """Of a CSV file.

    Where its lines begin is found when it is made, by one look at the whole file; a text in quotes has no
    line breaks. What the first lines have says of which type a column is; whole numbers of which some are
    missing there are floats.

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
        keys: Keys | None = None,
        fill: Any = None,
        header: bool | None = None,
    ) -> None:
        self.header = header
        super().__init__(path, columns, dtype, options, keys, fill)

    def open(self) -> Any:
        """Pyarrow's module for it: the file is opened for each run of lines."""
        return needed("pyarrow.csv", "tables")

    def _described(self) -> tuple[Any, list[int]]:
        head, self._starts, lengths = _lines(self._file_of_bytes(), self.header is not False)
        if not self._starts[-1]:
            raise SourceError(f"{self} is empty")
        self._names = None if self.header is False else self._named(head)
        self._run_bytes = max((end - at for at, end in pairwise(self._starts)), default=0)
        seen = self._starts[0] + CSV_BYTES
        found = self._parsed(0, next((k for k, at in enumerate(self._starts) if at >= seen), None), None)
        self._names = found.schema.names
        self._head = with_room(found, self.fill)
        return self._head, lengths

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """A run of lines, as pyarrow has it, and what it makes of it."""
        return self._at_most(_RUN_TIMES * self._run_bytes + super().beside_bytes)

    def _named(self, head: bytes) -> list[str]:
        """The names in the first line; of those that stand there again the second is called "a.1"."""
        arrow, found = needed("pyarrow", "tables"), list[str]()
        names = self.opened.read_csv(arrow.BufferReader(head.rstrip() + b"\n")).schema.names
        if self.header is None and all(map(is_number, names)):
            raise SourceError(
                f"{self} begins with numbers, where names of columns are to stand: put a line of names "
                "there, or read it by np.from_csv(path, header=False); header=True takes them as names"
            )
        for name in names:
            others = (f"{name}.{k}" for k in count(1))
            found.append(name if name not in found else next(n for n in others if n not in (*found, *names)))
        return found

    def _batch(self, number: int, names: list[str]) -> Any:
        lines = self._ends[number + 1] - self._ends[number]
        return in_lines(self, self._parsed(number, number + 1, names), lines)

    def _file_of_bytes(self) -> Any:
        return open_file(self.path, self.options)

    def _parsed(self, first: int, last: int | None, names: list[str] | None) -> Any:
        csv, arrow = self.opened, needed("pyarrow", "tables")
        with self._file_of_bytes() as file:
            file.seek(self._starts[first])
            last = len(self._starts) - 1 if last is None else min(last, len(self._starts) - 1)
            text = file.read(self._starts[last] - self._starts[first])
        if not text.strip():  # pyarrow refuses that
            return arrow.table({n: arrow.nulls(0) for n in self._names or ()})
        options = {
            "read_options": csv.ReadOptions(
                use_threads=False, column_names=self._names, autogenerate_column_names=self._names is None
            ),
            "memory_pool": arrow.system_memory_pool(),
        }
        if names is not None:
            types = {n: self._type_of(n) for n in names}
            options["convert_options"] = csv.ConvertOptions(include_columns=names, column_types=types)
        try:
            return csv.read_csv(arrow.BufferReader(text), **options)
        except arrow.ArrowInvalid as error:
            found = _OTHER.search(str(error))
            if found is None or names is None:
                raise
            raise SourceError(self._other(names[int(found[1])], found[2], found[3])) from error

    def _other(self, name: str, kind: str, text: str) -> str:
        """What is said of an element that its column's first lines had no type for."""
        way = "ask for dtype=float" if is_number(text) else "take it out, or name other columns"
        first = f"its first lines have elements of type {kind}"
        return f"{self}: column {name!r} has {text!r}, where {first}: {way}"

    def _type_of(self, name: str) -> Any:
        """What a column is parsed as: floats, where whole numbers were seen and floats are wanted."""
        found, types = self._head.field(name).type, needed("pyarrow", "tables").types
        is_vague = types.is_integer(found) or types.is_null(found)
        return needed("pyarrow", "tables").float64() if is_vague and self.dtype.kind in "fc" else found


def _lines(file: Any, has_head: bool) -> tuple[bytes, list[int], list[int]]:
    """The first line that is not empty, where the runs of those behind it begin, with the end of the file,
    and how many lines each has."""
    with file:
        head = file.readline() if has_head else b""
        while has_head and head and not head.strip():
            head = file.readline()
        starts, lengths = [file.tell()], []
        run = max(min(CSV_BYTES, budget_bytes() // _RUNS_SHARE), 1)
        first_end = starts[0] + CSV_BYTES  # what says the types ends there, whatever the memory
        while part := file.read(min(run, first_end - starts[-1]) if starts[-1] < first_end else run):
            part += file.readline()
            starts.append(starts[-1] + len(part))
            lengths.append(sum(1 for line in part.split(b"\n") if line.strip()))  # pyarrow skips empty ones
    return head, starts, lengths
