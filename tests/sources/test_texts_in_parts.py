"""Texts of what memory has no room for are written, and read, some rows at a time, as NumPy does it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

MEMORY = 1 << 16
VALUE = numpy.random.default_rng(0).random((3_000, 13))


@pytest.fixture(autouse=True)
def there_is_little_memory() -> Iterator[None]:
    with config.override(memory_bytes=MEMORY, small_bytes=1 << 10):
        yield


@contextmanager
def most(name: str) -> Iterator[list[int]]:
    """The bytes of each array that a function of NumPy's is given, or gives, inside the block."""
    found: list[int] = []
    function = getattr(numpy, name)

    def looked(file: Any, *args: Any, **keywords: Any) -> Any:
        result = function(file, *args, **keywords)
        found.append(numpy.asarray(args[0] if result is None else result).nbytes)
        return result

    with mock.patch.object(numpy, name, looked):
        yield found


WRITTEN: dict[str, dict[str, Any]] = {
    "plain": {},
    "with ends": {"header": "a,b\nc", "footer": "end", "fmt": "%.3f", "delimiter": ","},
    "by columns": {"fmt": ["%d"] * 13, "newline": "\r\n"},
}


@pytest.mark.parametrize("name", WRITTEN)
def test_rows_are_written_as_they_are_read(name: str, tmp_path: Path) -> None:
    numpy.save(tmp_path / "x.npy", VALUE)
    wanted = io.StringIO()
    numpy.savetxt(wanted, VALUE * 2, **WRITTEN[name])
    x = np.load(tmp_path / "x.npy")
    np.savetxt(tmp_path / "few.txt", x[:9] * 2)
    with most("savetxt") as nbytes:
        np.savetxt(tmp_path / "x.txt", x * 2, **WRITTEN[name])
    assert max(nbytes) <= MEMORY // 4
    with open(tmp_path / "x.txt", newline="") as file:
        assert file.read() == wanted.getvalue()
    opened = io.BytesIO()
    np.savetxt(opened, x * 2, **WRITTEN[name])
    assert opened.getvalue() == wanted.getvalue().encode()


@pytest.mark.parametrize("shape", [(-1,), (20, 1_950), (1, -1)])
def test_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    """Also of what has to be put together first."""
    for program in (lambda m, x: m.cumsum(x, axis=0), lambda m, x: x + 1):
        np.savetxt(tmp_path / "x.txt.gz", program(np, np.array(VALUE).reshape(shape)), fmt="%.5e")
        numpy.savetxt(tmp_path / "y.txt.gz", program(numpy, VALUE.reshape(shape)), fmt="%.5e")
        found, wanted = (numpy.loadtxt(tmp_path / f"{name}.txt.gz") for name in "xy")
        numpy.testing.assert_allclose(found, wanted, rtol=1e-4)


READ: dict[str, dict[str, Any]] = {
    "plain": {},
    "columns": {"unpack": True},
    "some columns": {"usecols": (1, 3)},
    "one column": {"usecols": 2},
    "of two axes": {"usecols": [0], "ndmin": 2},
    "from a row on": {"skiprows": 5},
    "singles": {"dtype": "f4"},
    "some rows": {"max_rows": 7, "skiprows": 2},
    "with its comments": {"comments": None, "skiprows": 2},
    "converted": {"converters": {0: lambda text: float(text) + 1}},
    "bytes": {"encoding": "bytes"},
}


@pytest.mark.parametrize("name", READ)
def test_numbers_are_read_into_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    footer = "" if name == "with its comments" else "end"
    numpy.savetxt(file, VALUE, "%.5f", header="x\ny", footer=footer)
    wanted = numpy.loadtxt(file, **READ[name])
    with most("loadtxt") as nbytes:
        found = np.loadtxt(file, **READ[name])
    assert max(nbytes) <= MEMORY // 4
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    numpy.testing.assert_array_equal(found, wanted)


def test_errors_name_the_row(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    numpy.savetxt(file, VALUE, "%.5f")
    for last in ("1 2 3", "a " * 13):
        with open(file, "a") as text:
            text.write(f"{last}\n")
        with pytest.raises(ValueError, match="at row") as theirs:
            numpy.loadtxt(file)
        with pytest.raises(ValueError, match="at row") as ours:
            np.loadtxt(file)
        assert str(ours.value) == str(theirs.value)
