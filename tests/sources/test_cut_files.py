"""Files of every format that end too early, or lack a piece, before they are opened or behind: an error that
names them, or the elements, and never a read that waits for ever, nor one that lets others wait."""

from __future__ import annotations

import gc
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.errors import SpartanError
from spartan_ng.sources import reading
from spartan_ng.sources.source import TRUSTED_NS
from tests.sources.test_kinds import CUBE, KINDS, TABLE
from tests.waiting import until

LOCAL = [kind for kind in KINDS if "URL" not in kind]


def outcome(read: Callable[[], Any]) -> Any:
    """What is read, or the error that it gives; on a thread of its own, so that a read that waits for ever
    can be left when the test's time is over."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(read())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    return found[0]


def cut(folder: Path, how: str) -> None:
    """Take something of one of the files away, at a place that is drawn."""
    path = random.choice(sorted(p for p in folder.rglob("*") if p.is_file()))
    text = path.read_bytes()
    at = random.randrange(len(text))
    if how == "end":
        path.write_bytes(text[:at])
    elif how == "shortened":  # the file that others have open
        with path.open("r+b") as file:
            file.truncate(at)
    else:
        path.write_bytes(text[: at // 2] + text[at:])


@pytest.fixture
def closed() -> Iterator[None]:
    """No file or connection waits for somebody to collect it, whatever became of the read."""
    gc.collect()  # what others left is theirs
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert not [w.message for w in given if issubclass(w.category, ResourceWarning)]


def _opened_again(kind: str, folder: Path) -> Any:
    """By the function that opened it, which writes nothing now."""
    names = {"npz": "x.npz", "images": "", "a folder": "", "a glob": "*.parquet"}
    if kind == "raw":
        return np.from_raw(folder / "x.bin", TABLE.shape, offset=6)
    if kind == "zarr of a group, in shards":
        return np.from_zarr(folder / "g.zarr", "deep/x")
    path = folder / names[kind] if kind in names else next(folder.iterdir())
    if kind != "npz":
        return np.load(path)
    with np.load(path) as archive:
        return archive["two"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("closed")
@pytest.mark.some(25)
@pytest.mark.parametrize("draw", range(6))
@pytest.mark.parametrize("memory_bytes", [None, 30_000])
@pytest.mark.parametrize("when", ["before", "opened", "read"])
@pytest.mark.parametrize("how", ["end", "shortened", "middle"])
@pytest.mark.parametrize("kind", LOCAL)
def test_what_ends_too_early(
    kind: str, how: str, when: str, memory_bytes: int | None, draw: int, tmp_path: Path
) -> None:
    value = CUBE if kind == "images" else TABLE
    whole, part = tmp_path / "whole", tmp_path / "part"
    whole.mkdir()
    part.mkdir()
    with config.override(small_bytes=0, **({} if memory_bytes is None else {"memory_bytes": memory_bytes})):
        x, y = KINDS[kind](part), KINDS[kind](whole)
        if when == "read":
            float(x[:3].sum())
        cut(part, how)
        time.sleep(2 * TRUSTED_NS / 1e9)
        if when == "before":
            x = outcome(lambda: _opened_again(kind, part))
        for read in (lambda: x[-3:].sum(), lambda: numpy.asarray(x), lambda: float(x[: len(x) // 2].sum())):
            if isinstance(x, BaseException):
                assert isinstance(x, SpartanError | ValueError | OSError | BadZipFile), repr(x)
                break
            found = outcome(read)
            if isinstance(found, BaseException):
                assert isinstance(found, SpartanError | FileNotFoundError), repr(found)
        until(lambda: not reading._ROOM._nbytes)  # threads that read ahead end behind the error
        numpy.testing.assert_array_equal(outcome(lambda: numpy.asarray(y[-9:])), value[-9:])


def test_a_header_that_ends_within_a_bracket(tmp_path: Path) -> None:
    """NumPy's parser of Python 2's headers says so by an error of its own."""
    numpy.save(tmp_path / "x.npy", TABLE)
    text = (tmp_path / "x.npy").read_bytes()
    cut_there = text.replace(b")", b" ")
    (tmp_path / "x.npy").write_bytes(cut_there)
    with ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("two.npy", cut_there)
    for read in (
        lambda: np.load(tmp_path / "x.npy"),
        lambda: np.load(tmp_path / "x.npy", "r"),
        lambda: np.load([tmp_path / "x.npy"]),
        lambda: np.load(tmp_path / "x.npz")["two"],
    ):
        with pytest.raises((ValueError, SpartanError), match="Cannot parse header"):
            read()
