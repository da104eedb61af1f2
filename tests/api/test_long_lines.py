"""Sorts along an axis whose lines the memory budget has no room for: NumPy's values, in parts that fit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.api.ordering import long_lines
from spartan_ng.config import config
from spartan_ng.optimizer.fusion import labels

MB = 1 << 20
CASES: dict[str, Callable[[Any, Any, int], Any]] = {
    "sort": lambda np, x, axis: np.sort(x, axis=axis),
    "argsort": lambda np, x, axis: np.argsort(x, axis=axis, kind="stable"),
    "partition": lambda np, x, axis: np.take(np.partition(x, 7, axis=axis), 7, axis=axis),
    "argpartition": lambda np, x, axis: np.take_along_axis(
        x, np.argpartition(x, (7, 50), axis=axis), axis
    ).take(50, axis=axis),
    "median": lambda np, x, axis: np.median(x, axis=axis),
    "percentile": lambda np, x, axis: np.percentile(x, [5, 50, 99.5], axis=axis),
    "nanmedian": lambda np, x, axis: np.nanmedian(x, axis=axis, keepdims=True),
    "lexsort": lambda np, x, axis: np.lexsort((x, x > 0), axis=axis),
}
SHAPES = [(60_000, 1), (1, 60_000), (60_000, 3), (2, 60_000), (2, 50_000, 2)]


def long_axis(shape: tuple[int, ...]) -> int:
    return shape.index(max(shape))


@pytest.mark.some(40)
@pytest.mark.parametrize("kind", ["a file", "a map", "computed"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_values_are_numpys(case: str, shape: tuple[int, ...], kind: str, tmp_path: Path) -> None:
    x = np.random.default_rng(3).integers(-999, 999, shape).astype(float)
    np.save(tmp_path / "x.npy", x)
    axis = long_axis(shape)
    wanted = CASES[case](np, x, axis)
    with config.override(memory_bytes=MB, small_bytes=1 << 14):
        y = sp.load(tmp_path / "x.npy", mmap_mode="r" if kind == "a map" else None)
        if kind == "computed":
            y = y * 1
        found = CASES[case](sp, y, axis)
        np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", [">f8", ">i4", ">u2", ">c16", ">M8[s]", "<f8"])
@pytest.mark.parametrize("shape", [(60_000, 3), (2, 60_000)], ids=str)
@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_lines_keep_their_byte_order(name: str, shape: tuple[int, ...], dtype: str, tmp_path: Path) -> None:
    """Whatever memory has room for: arrays that are put together have that of the machine."""
    x = np.random.default_rng(3).integers(0, 60_000, shape).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    axis = long_axis(shape)
    wanted = getattr(np, name)(x, axis=axis, kind="stable")
    with config.override(memory_bytes=MB, small_bytes=1 << 14):
        found = np.asarray(getattr(sp, name)(sp.load(tmp_path / "x.npy"), axis=axis, kind="stable"))
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(300_000, 1), (1, 300_000), (300_000, 3), (2, 300_000)], ids=str)
def test_each_line_is_sorted_in_runs(
    shape: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No stage has a whole line at work."""
    monkeypatch.setattr(labels, "_LONG_LINE_BYTES", 1 << 16)
    np.save(tmp_path / "x.npy", np.random.default_rng(3).random(shape))
    with config.override(memory_bytes=MB, small_bytes=1 << 14):
        y = sp.load(tmp_path / "x.npy", mmap_mode="r")
        text = str(sp.explain(sp.sort(y, axis=long_axis(shape))))
        assert text.count("sortparts over") == y.size // max(shape)
        assert "along_axis" not in text


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_lines_that_are_small_by_themselves_are_not_sorted_by_the_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy does what is small at once: lines by the dozen would all be in the program's own memory."""
    monkeypatch.setattr(long_lines, "work_fits", lambda arrays, nbytes: False)  # as on small workers
    monkeypatch.setattr(labels, "_LONG_LINE_BYTES", 1 << 16)
    x = np.random.default_rng(3).random((50_000, 12), np.float32)
    np.save(tmp_path / "x.npy", x)
    with config.override(memory_bytes=4 * MB):
        y = sp.load(tmp_path / "x.npy", mmap_mode="r")
        assert y[:, 0].nbytes <= config.small_bytes
        found = getattr(sp, name)(y, axis=0)
        assert str(sp.explain(found)).count("sortparts over") == 12
        np.testing.assert_array_equal(np.asarray(found), getattr(np, name)(x, axis=0, kind="stable"))


def test_what_has_room_is_sorted_together() -> None:
    y = sp.zeros((1000, 40))
    with config.override(memory_bytes=MB):
        assert not long_lines.are_long(y, 0, False)
        assert not long_lines.are_long(sp.zeros(1000_000), 0, False)


@pytest.mark.parametrize("code", ["?", "i2", "f4", "f8", "c16"])
def test_room_for_indices_is_what_numpy_takes_for_them(code: str) -> None:
    """Two threads sort a line each: a copy, its indices, a workspace, and the last line's indices."""
    dtype = np.dtype(code)
    workspace = 8 if dtype.itemsize <= 2 else 4  # by radix, or by merging
    each = dtype.itemsize + 8 + workspace
    y = sp.from_function(lambda box: pytest.fail("it is asked for"), (10_000, 3), dtype)
    with config.override(memory_bytes=2 * each * 10_000 - 1):
        assert long_lines.are_long(y, 0, True)
    with config.override(memory_bytes=2 * (each + 8) * 10_000):
        assert not long_lines.are_long(y, 0, True)
