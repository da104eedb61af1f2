"""Zeros that a program makes and then writes to: in memory where a budget has room for them, else on disk."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import cell, door
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.scratch import to_be_written
from tests.test_programs import running_on

ROWS, COLUMNS = 1000, 300
LIMIT = ROWS * COLUMNS * 8

MADE: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda m: m.zeros((ROWS, COLUMNS)),
    "empty": lambda m: m.zeros((ROWS, COLUMNS)) if m is numpy else m.empty((ROWS, COLUMNS)),
    "in Fortran's order": lambda m: m.zeros((ROWS, COLUMNS), order="F"),
    "integers": lambda m: m.zeros((ROWS, COLUMNS), "i8"),
    "like": lambda m: m.zeros_like(m.ones((ROWS, COLUMNS))),
    "turned": lambda m: m.zeros((COLUMNS, ROWS)).T,
    "too large to be asked for at once": lambda m: _lazy(m, (ROWS, COLUMNS)),
}


def _lazy(m: Any, shape: tuple[int, ...], **keywords: Any) -> Any:
    """Zeros of so many bytes that there is a node in place of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "_BLANK_BYTES", 0)
        return m.zeros(shape, **keywords)


def _rows(m: Any, a: Any, draw: random.Random) -> None:
    a[draw.randrange(10) :: 3] = numpy.arange(COLUMNS)


def _by_places(m: Any, a: Any, draw: random.Random) -> None:
    order = m.argsort(m.asarray(numpy.random.default_rng(draw.randrange(99)).random(ROWS)))
    a[order] = m.arange(ROWS)[:, None]


def _by_mask(m: Any, a: Any, draw: random.Random) -> None:
    mask = numpy.random.default_rng(draw.randrange(99)).random((ROWS, COLUMNS)) > 0.5
    a[m.asarray(mask)] = 7


def _through_a_view(m: Any, a: Any, draw: random.Random) -> None:
    view = a[draw.randrange(5) : 90, ::-2]
    view[1:3] = 4
    view[0] += 2


def _elements(m: Any, a: Any, draw: random.Random) -> None:
    for _ in range(9):
        a[draw.randrange(ROWS), draw.randrange(COLUMNS)] += 1


def _added(m: Any, a: Any, draw: random.Random) -> None:
    a += 3
    m.add(a, draw.randrange(9), out=a)


def _put(m: Any, a: Any, draw: random.Random) -> None:
    m.put(a, [1, 5, 700 + draw.randrange(99)], 5)
    a.flat[3] = 8
    a[-1].fill(2)


WRITES: dict[str, Callable[[Any, Any, random.Random], None]] = {
    "rows": _rows,
    "by places": _by_places,
    "by a mask": _by_mask,
    "through a view": _through_a_view,
    "elements": _elements,
    "in place": _added,
    "put": _put,
}


@pytest.mark.some(24)
@pytest.mark.parametrize("share", [4, 1])
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("first", WRITES)
def test_what_has_no_room_is_written_on_disk(first: str, made: str, share: int) -> None:
    """All of it was memory of the program's, however little there was."""
    seed = random.randrange(1000)
    second = random.Random(seed).choice([*WRITES])
    budget = LIMIT * share
    with config.override(memory_bytes=budget, small_bytes=1000), running_on(EmbeddedBackend(2, budget)):
        found, expected = MADE[made](np), MADE[made](numpy)
        before = (found + 1).sum(axis=0)  # which has the zeros, whatever is written meanwhile
        for name in (first, second):
            WRITES[name](np, found, random.Random(seed))
            WRITES[name](numpy, expected, random.Random(seed))
            said = f"{name} behind {first}, seed {seed}"
            numpy.testing.assert_array_equal((found * 1).compute(), expected, said)
        numpy.testing.assert_array_equal(before, numpy.full(COLUMNS, ROWS))
        value = found._cell.value
        assert value is None or is_mapped(value) == (share == 1), said
        assert found.dtype == expected.dtype


FEW = (300, 100)
FEW_BYTES = 300 * 100 * 8
PLACES = numpy.random.default_rng(3).integers(0, 100, 500)

LAID: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda m: m.zeros(FEW),
    "empty": lambda m: m.zeros(FEW) if m is numpy else m.empty(FEW),
    "in Fortran's order": lambda m: m.zeros(FEW, order="F"),
    "lazy": lambda m: _lazy(m, FEW),
    "lazy in Fortran's order": lambda m: _lazy(m, FEW, order="F"),
    "like": lambda m: m.zeros_like(m.ones(FEW)),
    "empty like": lambda m: m.zeros(FEW) if m is numpy else m.empty_like(m.ones(FEW)),
    "integers": lambda m: _lazy(m, FEW, dtype="i8"),
    "complex": lambda m: m.zeros(FEW, "c16"),
    "lazy dates": lambda m: _lazy(m, FEW, dtype="m8[s]"),
    "a line": lambda m: m.zeros(30_000).reshape(FEW),
    "a lazy line": lambda m: _lazy(m, (30_000,)).reshape(FEW),
    "a stack": lambda m: _lazy(m, (3, *FEW))[1],
}

ONE_WRITE = """
o[5, 5] = 1
o[5] = 1
o[:, 7] = 1
o[:, 7] += 1
o[:, ::3] = 1
o[::2] = 1
o[::-2, 1:] = 1
o[...] = 3
o += 1
o[PLACES] = 1
o[PLACES[:3]] = 1
o[m.asarray(PLACES)] = 1
o[PLACES] += 1
o[:, PLACES] = 1
o[PLACES, PLACES] = 1
o[PLACES, PLACES] = m.arange(500)
o[1:][:, 2:][PLACES[:9]] = 4
o[o == 0] = 2
o[o[:, 0] == 0] = 2
o[numpy.arange(300) % 2 == 0] = 2
o.reshape(-1)[PLACES] = 1
o.reshape(-1)[::7] = 1
o.T[::2] = 1
o.T[3] = 1
o.T[PLACES[:7]] = 1
o.view(o.dtype)[::2] = 1
o.real[::2] = 1
o[None][0, ::2] = 1
o[::2][::3] = 4
o.flat[3] = 1
o.flat[PLACES] = 1
o.fill(3)
o.put(PLACES, 1)
m.put(o, PLACES, 1)
m.putmask(o, o == 0, 2)
m.place(o, o == 0, [2, 3])
m.copyto(o, 3)
m.copyto(o[::2], 3)
m.copyto(o, 3, where=o == 0)
m.fill_diagonal(o, 3)
m.put_along_axis(o, PLACES[:300, None], 3, 1)
m.add.at(o, (PLACES, PLACES), 1)
m.add(o, 1, out=o)
m.add(o[::2], 1, out=o[::2])
m.sum(m.ones(FEW).astype(o.dtype), axis=0, out=o[3])
m.cumsum(o, axis=0, out=o)
m.clip(o, 1, 2, out=o)
o.sort()
o.sort(axis=0)
o.partition(5)
o[::2], o[1::2] = 1, 2
m.random.default_rng(1).shuffle(o)
numpy.asarray(o)[::2] = 1
numpy.copyto(numpy.asarray(o), 2)
m.lib.stride_tricks.sliding_window_view(o, (2, 2), writeable=True)[3] = 2
m.lib.stride_tricks.as_strided(o, (9,), (16,))[:] = 2
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore:numpy.accumulate is not distributed")
@pytest.mark.parametrize("made", LAID)
def test_one_write_of_any_kind_is_on_disk(made: str) -> None:
    """Of lazy zeros, a part, or places, were written to memory that was as large as all of them."""
    in_memory = list[str]()
    with config.override(memory_bytes=FEW_BYTES, small_bytes=1000):
        for write in ONE_WRITE:
            names = {"numpy": numpy, "FEW": FEW, "PLACES": PLACES}
            expected = LAID[made](numpy)
            try:
                exec(write, names | {"m": numpy, "o": expected})
            except TypeError:  # not of these elements
                continue
            with running_on(EmbeddedBackend(2, FEW_BYTES)):
                found = LAID[made](np)
                if "numpy.asarray(o)" in write and not found._is_lendable():
                    continue  # a copy, as of every part of what is to be computed and has no room
                exec(write, names | {"m": np, "o": found})
                numpy.testing.assert_array_equal(numpy.asarray(found * 1), expected, write)
                numpy.testing.assert_array_equal(numpy.asarray(found), expected, write)
                if not is_mapped(found._cell.value):
                    in_memory.append(write)
    assert not in_memory


@pytest.mark.parametrize("made", LAID)
def test_zeros_that_fit_stay_in_memory(made: str) -> None:
    budget = 8 * FEW_BYTES
    with config.override(memory_bytes=budget, small_bytes=1000), running_on(EmbeddedBackend(2, budget)):
        for write in ("o[::2] = 1", "o[PLACES] = 1", "numpy.asarray(o)[0] = 1"):
            found = LAID[made](np)
            exec(write, {"numpy": numpy, "o": found, "PLACES": PLACES})
            assert not is_mapped(numpy.asarray(found)), write


@pytest.mark.parametrize("made", MADE)
def test_on_disk_axes_are_in_the_order_that_they_had(made: str) -> None:
    for budget in (LIMIT * 4, LIMIT):
        with config.override(memory_bytes=budget, small_bytes=1000), running_on(EmbeddedBackend(2, budget)):
            found, expected = MADE[made](np), MADE[made](numpy)
            found[3, 4] = expected[3, 4] = 5
            assert numpy.asarray(found).strides == expected.strides
            numpy.testing.assert_array_equal(found.ravel("K"), expected.ravel("K"))


def test_others_write_to_zeros_once_they_are_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """C writes to what is not blank, and asks nobody: in another thread to what the zeros had been."""
    blank = list[bool]()

    def seen(zeros: Any) -> Any:
        blank.append(found._cell.blank)
        return to_be_written(zeros)

    monkeypatch.setattr(cell, "to_be_written", seen)
    with config.override(memory_bytes=LIMIT, small_bytes=1000), running_on(EmbeddedBackend(2, LIMIT)):
        found = np.zeros(ROWS * COLUMNS)
        for at in range(3):
            found[at] = at
        assert (blank, found._cell.blank) == ([True], False)
        assert numpy.asarray(found)[:4].tolist() == [0, 1, 2, 0]


@pytest.mark.filterwarnings("ignore:numpy.accumulate is not distributed")
@pytest.mark.parametrize("dtype", ["m8[s]", ">m8[s]", "M8[s]"])
@pytest.mark.parametrize("function", ["add", "maximum", "fmin", "subtract", "logical_and"])
@pytest.mark.parametrize("laid", ["line", "rows", "turned"])
def test_sums_so_far_of_durations_go_to_disk(laid: str, function: str, dtype: str) -> None:
    value = numpy.random.default_rng(7).integers(-50, 50, ROWS * COLUMNS).astype(dtype)
    value[::1001] = "NaT"
    value = {"line": value, "rows": value.reshape(ROWS, -1), "turned": value.reshape(-1, ROWS).T}[laid]
    with config.override(memory_bytes=LIMIT, small_bytes=1000), running_on(EmbeddedBackend(2, LIMIT)):
        for axis in range(value.ndim):
            try:
                expected = getattr(numpy, function).accumulate(value, axis)
            except TypeError:
                with pytest.raises(TypeError):
                    getattr(np, function).accumulate(np.array(value), axis)
                continue
            found = getattr(np, function).accumulate(np.array(value), axis)
            shown = numpy.asarray(found)
            numpy.testing.assert_array_equal(shown, expected)
            assert (shown.dtype, shown.strides) == (expected.dtype, expected.strides)
            is_large = expected.dtype == value.dtype and expected.dtype.isnative and function != "subtract"
            assert is_mapped(found._cell.value) == is_large
