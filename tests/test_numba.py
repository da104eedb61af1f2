"""Functions that numba compiles take arrays of ours for NumPy's, and the package for NumPy."""

from __future__ import annotations

import importlib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy
import pytest

import spartan_ng as np
from spartan_ng import as_numpy

DTYPES = ("i1", "u8", "?", "f4", "f8", "c8", "c16", "M8[D]", "m8[s]", "U3", "i4,f8")
LAYOUTS: dict[str, Any] = {
    "whole": lambda a: a,
    "turned": lambda a: a.T,
    "stepped": lambda a: a[:, ::2],
    "reversed": lambda a: a[::-1, ::-1],
    "row": lambda a: a[1],
    "element": lambda a: a[1:2, 1:2].reshape(()),
    "none": lambda a: a[:0],
}
SMALL = pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])


@pytest.fixture(scope="module", autouse=True)
def registered():
    """What numba does where the package is installed as it is now."""
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    module, name = tomllib.loads(text)["project"]["entry-points"]["numba_extensions"]["init"].split(":")
    getattr(importlib.import_module(module), name)()


@cache
def _compiled(name: str) -> Any:
    return numba.njit(globals()[name])


def same(a):
    return a


def overwritten(a, value):
    for i in range(len(a)):
        a[i] = value
    return a


def of_two(pair):
    return pair[0].sum() + 2 * pair[1].sum()


def one_of(a, b, takes):
    return a if takes else b * 2


def _array(dtype: str, xp: Any) -> Any:
    if dtype == "i4,f8":
        return xp.array([[(i, j / 2) for j in range(4)] for i in range(3)], dtype)
    return xp.arange(12).reshape(3, 4).astype(dtype)


@pytest.mark.slow
@pytest.mark.some(20)
@SMALL
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_typed_and_handed_over_as_numpys(dtype, layout, small, monkeypatch):
    monkeypatch.setattr(np.config, "small_bytes", small)
    ours, theirs = (LAYOUTS[layout](_array(dtype, xp)) for xp in (np, numpy))
    assert numba.typeof(ours) == numba.typeof(theirs)
    wanted, found = (_compiled("same")(a) for a in (theirs, ours))
    assert type(found) is numpy.ndarray
    assert (found.dtype, found.strides) == (wanted.dtype, wanted.strides)
    numpy.testing.assert_array_equal(found, wanted)


@SMALL
@pytest.mark.parametrize("layout", ["whole", "row", "stepped", "turned"])
def test_what_a_function_writes_is_in_the_array_and_in_nothing_built_before(layout, small, monkeypatch):
    monkeypatch.setattr(np.config, "small_bytes", small)
    ours, theirs = _array("f8", np), _array("f8", numpy)
    before, copied = ours + 1, theirs + 1
    for a in (ours, theirs):
        _compiled("overwritten")(LAYOUTS[layout](a), -1.0)
    numpy.testing.assert_array_equal(ours, theirs)
    numpy.testing.assert_array_equal(before, copied)
    numpy.testing.assert_array_equal(ours + 1, theirs + 1)


def test_what_is_read_only_is_not_written_to():
    a = np.arange(4.0)
    shown = np.broadcast_to(a, (2, 4))
    a.flags.writeable = False
    for given in (a, shown):
        assert not numba.typeof(given).mutable
        with pytest.raises(numba.TypingError):
            _compiled("overwritten")(given, -1.0)
    numpy.testing.assert_array_equal(a, numpy.arange(4.0))


def test_memory_is_on_loan_as_long_as_somebody_has_it():
    a = np.ones(1000)
    kept = _compiled("overwritten")(a, 2.0)
    a += 1
    assert kept[0] == 3
    kept[0] = 5
    assert a[0] == 5
    del kept
    assert not a._cell.shared


@SMALL
def test_arrays_among_other_arguments(small, monkeypatch):
    monkeypatch.setattr(np.config, "small_bytes", small)
    a, b = np.arange(4.0), numpy.ones(4)
    assert _compiled("of_two")((a, b)) == 14
    assert _compiled("of_two")((b, a)) == 16
    numpy.testing.assert_array_equal(_compiled("one_of")(a, b, True), a)
    numpy.testing.assert_array_equal(_compiled("one_of")(a, b, False), b * 2)


def test_one_compiled_function_serves_both():
    twice = numba.njit(lambda a: a * 2)
    for a in (numpy.ones(3), np.ones(3), np.ones(4) + 1):
        twice(a)
    assert len(twice.signatures) == 1


@pytest.mark.slow
@pytest.mark.parametrize("signature", ["f8(f8[:])", "f8(f8[::1])", "(f8[:],)"])
def test_declared_signatures(signature):
    total = numba.njit(signature)(lambda a: a.sum())
    assert total(np.arange(4.0)) == 6
    with pytest.raises(TypeError):
        total(np.arange(4))


def test_what_is_no_array_is_refused_as_before():
    class Other:
        pass

    total = numba.njit("f8(f8[:])")(lambda a: a.sum())
    with pytest.raises(TypeError):
        total(Other())


@pytest.mark.parametrize("dtype", ["i8", "f4", "f8", "c8", "c16"])
def test_numbers_that_have_yet_to_be_computed(dtype, monkeypatch):
    monkeypatch.setattr(np.config, "small_bytes", 0)
    number = (np.ones(5, dtype) * (2 + 1j if dtype[0] == "c" else 2)).sum()
    assert _compiled("same")(number) == number.compute()


TABLE = np.arange(4.0)
LARGE = np.arange(300_000.0)[::2]


def looked_up(i):
    return TABLE[i] + LARGE[i]


def test_arrays_that_a_function_refers_to():
    assert _compiled("looked_up")(3) == 9


def made(n):
    a = np.arange(n, dtype=np.float64) * np.pi
    return np.linalg.norm(a), a[np.newaxis, :], np.zeros_like(a) + np.nan, np.int64(n)


@pytest.mark.slow
def test_the_package_is_numpy_inside():
    for found, wanted in zip(_compiled("made")(5), made(5), strict=True):
        numpy.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["numpy of a script", "linalg"])
def test_modules_by_other_names(name):
    module = getattr(np, name, as_numpy._numpy)
    found = {
        "linalg": lambda a: module.norm(a),
        "numpy of a script": lambda a: module.sum(a),
    }[name]
    assert numba.njit(found)(np.array([3.0, 4.0])) == (5 if name == "linalg" else 7)


@pytest.mark.slow
def test_numpys_own_modules_are_typed_as_before():
    module = numpy.random
    assert 0 <= numba.njit(lambda: module.random())() < 1
    assert numba.njit(lambda: numpy.linalg.norm(numpy.ones(4)))() == 2
