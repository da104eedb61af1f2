"""Numbers as text, some rows at a time where memory has no room for all."""

from __future__ import annotations

import inspect
import os
import warnings
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.files.saving import rows_in_parts
from spartan_ng.memory import copied_bytes
from spartan_ng.scratch import on_disk

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_SAVED, _LOADED = inspect.signature(np.savetxt), inspect.signature(np.loadtxt)
_ROWS = 32
"""Rows that tell how long all are, as texts, about."""
_READ_BYTES = 1 << 22
"""Numbers that are read from a text at a time take about so many."""
_LOOKED_BYTES = 1 << 18
"""What is looked at together for the ends of lines."""
_SAID = ("loadtxt: input contained no data", "Input line .* contained no data")
_LEAST = 2
"""Characters of a number, with what is between it and the next."""
_WHAT = "numbers from a text"


class TextOfRows:
    """An array as `numpy.savetxt` writes it with these arguments."""

    def __init__(self, array: ndarray, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self._array = array
        self._options = _SAVED.bind("", array, *args, **keywords).arguments
        del self._options["fname"], self._options["X"]
        self._parts = rows_in_parts(array) if array.ndim in (1, 2) else None

    def option(self, name: str, usual: Any) -> Any:
        """One of the arguments."""
        return self._options.get(name, usual)

    @property
    def nbytes(self) -> int:
        """How long it is, about."""
        value: Any = self._array if self._parts is not None else self._array._force()
        some = np.asarray(value[:: max(len(value) // _ROWS, 1)] if value.ndim else value)
        text = BytesIO()
        np.savetxt(text, some, **self._options)
        return len(text.getbuffer()) * int(value.size) // max(some.size, 1)

    def write(self, file: Any) -> None:
        """Write to an open file."""
        if self._parts is None:
            np.savetxt(file, self._array._force(), **self._options)
            return
        parts = self._parts()
        part: Any = next(parts)
        is_first = True
        for after in chain(parts, (None,)):
            options = dict(self._options)
            if not is_first:
                options["header"] = ""
            if after is not None:
                options["footer"] = ""
            np.savetxt(file, part, **options)
            part, is_first = after, False


def text_in_parts(fname: Any, *args: Any, **keywords: Any) -> np.ndarray[Any, Any] | None:
    """What `numpy.loadtxt` gives of a file whose numbers have no room in memory, in a file without a name;
    None where they have, and for all else that NumPy reads, or refuses with the number of a row."""
    if not isinstance(fname, str | os.PathLike) or not os.path.isfile(fname):
        return None
    try:
        given = _LOADED.bind(fname, *args, **keywords)
        given.apply_defaults()
        dtype = np.dtype(given.arguments["dtype"])
    except TypeError:
        return None
    options = {k: v for k, v in given.arguments.items() if k not in ("fname", "ndmin", "unpack", "like")}
    most = os.path.getsize(fname) // _LEAST * dtype.itemsize
    is_plain = dtype.kind in "biufc" and options["max_rows"] is None and given.arguments["like"] is None
    if not is_plain or most <= copied_bytes():
        return None
    encoding = None if options["encoding"] == "bytes" else options["encoding"]
    try:
        opened = np.lib.npyio.DataSource(os.curdir).open(os.fspath(fname), "rt", encoding)
        with opened as file, warnings.catch_warnings():
            for said in _SAID:  # of parts, which nobody has asked for
                warnings.filterwarnings("ignore", said, UserWarning)
            found = _put_together(file, _lines(fname), options, dtype)
    except ValueError:
        return None
    if found is None:
        return None
    if found.shape[1] == 1 and given.arguments["ndmin"] < 2:
        found = found[:, 0]
    return found.T if given.arguments["unpack"] else found


def _put_together(
    file: Any, lines: int, options: dict[str, Any], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any] | None:
    """The rows of an open text of no more than so many lines; None where it has no rows, or such of another
    length."""
    asked, count = _ROWS, 0
    part = np.loadtxt(file, **(options | {"max_rows": asked}), ndmin=2)
    if not len(part):
        return None
    columns = part.shape[1]
    out = on_disk((lines, columns), dtype, _WHAT)
    while len(part):
        if part.shape[1] != columns:
            return None
        out[count : count + len(part)] = part
        count += len(part)
        if len(part) < asked:
            break
        asked = max(min(_READ_BYTES, copied_bytes()) // (columns * dtype.itemsize), 1)
        part = np.loadtxt(file, **(options | {"max_rows": asked, "skiprows": 0}), ndmin=2)
    return out[:count]


def _lines(path: str | os.PathLike[str]) -> int:
    """How many lines a file has, at most."""
    with open(path, "rb") as file:
        return 1 + sum(
            block.count(b"\n") + block.count(b"\r") for block in iter(lambda: file.read(_LOOKED_BYTES), b"")
        )
