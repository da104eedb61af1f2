"""What commands read: arrays in files, and what is wrong with one, in a line that names it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

from scipy import sparse

import spartan_ng as np
from spartan_ng.errors import SpartanError
from spartan_ng.units import shape_text

FORMATS = (
    "Arrays are read from .npy files, tables (.csv, .parquet, .arrow, .feather), .zarr, .h5, images, folders "
    "or globs of these, and URLs; sparse ones from Matrix Market's .mtx or SciPy's .npz files. Columns of "
    "tables, or the array of a .zarr, .h5 or .npz file, stand behind a colon (day.csv:age,height); files of "
    "an option that is repeated follow each other."
)
_TABLES = frozenset({".csv", ".parquet", ".arrow", ".feather"})


def _columns(read: Callable[..., Any]) -> Callable[[Any, str], Any]:
    return lambda path, names: read(path, names.split(",") if "," in names else names)


class _NoArray(ValueError):
    """A file is none of one array; the message says it all."""


def _member(path: str, name: str) -> Any:
    """An array of an archive."""
    archive = np.load(path)
    if name not in archive.files:
        raise _NoArray(f"{path} has no array {name!r}; it has {_some(archive.files)}")
    return archive[name]


def _some(names: Sequence[str]) -> str:
    return f"the arrays {', '.join(names)}" if names else "no arrays"


_NAMED: dict[str, Callable[[Any, str], Any]] = {
    ".csv": _columns(np.from_csv),
    ".parquet": _columns(np.from_parquet),
    ".pq": _columns(np.from_parquet),
    ".arrow": _columns(np.from_arrow),
    ".feather": _columns(np.from_arrow),
    ".h5": np.from_hdf5,
    ".hdf5": np.from_hdf5,
    ".zarr": np.from_zarr,
    ".npz": _member,
}
"""Formats whose columns or arrays have names."""
_BEGINNINGS = {".npy": (b"\x93NUMPY",), ".npz": (b"PK\x03\x04", b"PK\x05\x06")}
_NUMBERS = "biuf"


@dataclass(frozen=True, slots=True)
class GivenArray:
    """An array and where it comes from, as the user has said it: the option and its file."""

    option: str
    path: str
    array: Any

    def __str__(self) -> str:
        return f"{self.option} {self.path} is {self.array.dtype} {shape_text(self.array.shape)}"

    def not_finite(self) -> str:
        """Which of its rows have NaN or infinite values; empty where none has."""
        if self.array.dtype.kind not in "fc" or self.array.format != "dense" or not self.array.ndim:
            return ""
        bad = ~np.isfinite(self.array)
        rows = np.flatnonzero(bad.any(axis=tuple(range(1, bad.ndim))) if bad.ndim > 1 else bad).compute()
        if not len(rows):
            return ""
        return (
            f"{self.path} has NaN or infinite values in {len(rows):,} of {self.array.shape[0]:,} rows, the "
            f"first of which is [{rows[0]}]: leave these out, or put numbers there"
        )


def load(*given: str, are_classes: bool = False) -> Any:
    """The array in a file, or in several one behind the other, by their suffix: what `np.load` reads, and
    sparse matrices; of tables, texts only as classes.

    Raises
    ------
    ValueError : it cannot be read, or has no array of numbers or names
    """
    (path, names), *others = map(_parted, given)
    suffix = Path(path).suffix.lower()
    paths = [path, *(p for p, _ in others)]
    if any(n != names or Path(p).suffix.lower() != suffix for p, n in others):
        raise ValueError(f"{', '.join(given)}: files of one array have one format, and the same columns")
    try:
        found = _read(paths, suffix, names)
    except _NoArray:
        raise
    except Exception as error:  # each library has its own
        if isinstance(error, SpartanError) or any(os.path.abspath(p) in str(error) for p in paths):
            raise ValueError(_text(error)) from error  # it names the file
        raise ValueError(f"{', '.join(given)}: {_why(path, suffix, error)}") from error
    if found.dtype.fields is not None:
        raise ValueError(
            f"{', '.join(given)}: it has records of {', '.join(found.dtype.fields)}: save the columns as one "
            "array"
        )
    if suffix in _TABLES and found.dtype.kind in "US" and not are_classes:
        raise ValueError(f"{', '.join(given)}: it has texts; none of its columns has numbers")
    one_column = suffix in _TABLES and found.ndim == 2 and found.shape[1] == 1
    return found[:, 0] if one_column else found


def _parted(given: str) -> tuple[str, str]:
    """A path, and the names behind its colon."""
    places = [k for k, letter in enumerate(given) if letter == ":"]
    named = [k for k in places if Path(given[:k]).suffix.lower() in _NAMED]
    if not named or os.path.exists(given):
        return given, ""
    # Names have colons, too, as file names may.
    at = next((k for k in reversed(named) if os.path.exists(given[:k])), named[0])
    return given[:at], given[at + 1 :]


def _read(paths: Sequence[str], suffix: str, names: str) -> Any:
    if len(paths) > 1 and suffix in (".mtx", ".npz", ".zarr"):
        raise _NoArray(f"{', '.join(paths)}: several {suffix} files make no array")
    if names:
        return _NAMED[suffix](_plain(paths), names)
    if suffix == ".mtx":
        return np.mmread(paths[0])
    if suffix == ".npz":
        with open(paths[0], "rb") as file:  # NumPy leaves one open that it does not understand
            inside = _arrays_in(file)
            if "format" in inside:
                return np.asarray(sparse.load_npz(file))
        if len(inside) != 1:
            raise _NoArray(f"{paths[0]} has {_some(inside)}: name one behind a colon")
        return np.load(paths[0])[inside[0]]
    return np.load(_plain(paths))


def _arrays_in(file: IO[bytes]) -> list[str]:
    """The names of an archive's arrays."""
    with ZipFile(file) as archive:
        found = [name.removesuffix(".npy") for name in archive.namelist()]
    file.seek(0)
    return found


def _plain(paths: Sequence[str]) -> Any:
    """One path for itself: it may be a glob or a folder."""
    return paths[0] if len(paths) == 1 else list(paths)


def _text(error: Exception) -> str:
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def _why(path: str, suffix: str, error: Exception) -> str:
    """What is wrong with a file, and the way out."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if os.path.isfile(path):
        with open(path, "rb") as file:
            begin = file.read(8)
        if not begin:
            return "the file is empty"
        if not begin.startswith(_BEGINNINGS.get(suffix, (b"",))):
            return f"it is no {suffix} file, whatever its name says: give it the suffix of what it is"
    if "allow_pickle" in str(error):
        if suffix in _BEGINNINGS:
            return "it has Python objects, which are not read: save it as an array of numbers"
        return f"cannot read {suffix or 'a file without suffix'}. {FORMATS}"
    text = " ".join(_text(error).split()) or type(error).__name__
    return f"cannot read it as {suffix or 'an array'}, it may be damaged or incomplete: {text}"


def told(error: Exception, files: Mapping[str, GivenArray]) -> str:
    """What an app says of what it has read, in one line, with the files that it is about."""
    text = " ".join(str(error).split())
    if "NaN" in text:
        bad = [why for read in files.values() if (why := read.not_finite())]
        if bad:
            return "; ".join(bad)
    return f"{text} ({'; '.join(map(str, files.values()))})" if files else text
