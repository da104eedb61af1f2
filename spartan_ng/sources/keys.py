"""Partitioned tables: folders that are called `year=2020` and the like say the values of columns that their
files do not have.

The layout is Hive's, as Spark, pyarrow, polars and DuckDB write it. Values that are all whole numbers,
numbers or dates are those; others are texts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from spartan_ng.extras import needed
from spartan_ng.sources.files import Path, absolute, folders_and_files, is_folder, is_pattern

Keys = dict[str, tuple[np.dtype[Any], Any]]
"""Of a file, for each column of one value: the dtype that all files' values have (texts of any width), and
its own; None where none is known."""

_LACKING = "", "__HIVE_DEFAULT_PARTITION__"
"""Texts that stand for no value."""
_MOST_DEEP = 32


def partitioned_files(
    path: Path | Sequence[Path], suffixes: Sequence[str], options: dict[str, Any] | None = None
) -> list[tuple[str, Keys]] | None:
    """The files of a partitioned table that a folder is, sorted by the folders' names, and what these say;
    None where it is none."""
    if not isinstance(path, str | os.PathLike) or is_pattern(path, options):
        return None
    name = absolute(path)
    if not is_folder(name, options):
        return None
    found = [(p, said) for p, said in _walk(name, {}, options) if p.lower().endswith(tuple(suffixes))]
    names = dict.fromkeys(key for _, said in found for key in said)
    if not names:
        return None
    columns = {key: _typed([said.get(key) for _, said in found]) for key in names}
    return [
        (p, {key: (dtype, values[k]) for key, (dtype, values) in columns.items()})
        for k, (p, _) in enumerate(found)
    ]


def with_keys(schema: Any, keys: Keys) -> Any:
    """A table's schema with such columns: in the place of those of their names, the others at the end."""
    arrow = needed("pyarrow", "tables")
    for name, (dtype, _) in keys.items():
        at = schema.get_field_index(name)
        field = arrow.field(name, arrow.from_numpy_dtype(dtype))
        schema = schema.append(field) if at < 0 else schema.set(at, field)
    return schema


def _walk(
    name: str, said: dict[str, str | None], options: dict[str, Any] | None
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """The files of a folder, and of those in it that say a value."""
    folders, files = folders_and_files(name, options)
    yield from ((file, said) for file in files)
    for folder in folders:
        key, is_said, value = folder.rpartition("/")[2].partition("=")
        if is_said and key and len(said) < _MOST_DEEP:
            text = unquote(value)
            yield from _walk(folder, {**said, unquote(key): None if text in _LACKING else text}, options)


def _typed(texts: list[str | None]) -> tuple[np.dtype[Any], list[Any]]:
    """What texts say, as elements of one dtype; texts, where they are neither numbers nor dates."""
    known = [t for t in texts if t is not None]
    for dtype, read in _KINDS.items():
        try:
            found = iter([read(t) for t in known])
        except ValueError:
            continue
        return np.dtype(dtype), [None if t is None else next(found) for t in texts]
    return np.dtype("U1"), list(texts)


def _number(text: str) -> float:
    if not set(text) <= set("0123456789+-.eE"):  # Python reads "1_000", "nan" and "infinity", too
        raise ValueError(text)
    return float(text)


def _whole(text: str) -> np.int64:
    if not set(text) <= set("0123456789-"):
        raise ValueError(text)
    try:
        return np.int64(int(text))
    except OverflowError as error:
        raise ValueError(text) from error


def _date(text: str) -> np.datetime64:
    if len(text) < len("2020-01-01") or not set(text) <= set("0123456789-:T. "):
        raise ValueError(text)  # NumPy reads "2020-01" and "NaT", too
    return np.datetime64(text, "s")


_KINDS: dict[str, Callable[[str], Any]] = {"i8": _whole, "f8": _number, "M8[s]": _date}
