"""A record shows its array's memory: whatever is written into the array afterwards, by whatever way."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick

DTYPE = [("a", "i4"), ("b", "f8"), ("c", "f4", (2,))]
ROWS = numpy.array([(1, 2.5, (1, 2)), (2, 3.5, (3, 4)), (3, 1.5, (5, 6)), (4, 0.5, (7, 8))], DTYPE)
ARRAYS = {
    "array": lambda xp: xp.array(ROWS),
    "made of another": lambda xp: xp.asarray(ROWS.copy()),
    "slice": lambda xp: xp.array(ROWS)[1:],
    "backwards": lambda xp: xp.array(ROWS)[::-1],
    "two axes": lambda xp: xp.array(ROWS).reshape(2, 2)[1],
    "filled": lambda xp: xp.ones(4, DTYPE),
}


def _added(xp, d):
    b = d["b"]
    b += 1


def _sorted(xp, d):
    d["b"].sort()
    d["b"][::-1] *= 2


def _elements(xp, d):
    d["c"][0, 1] = 9
    d["a"][0] = 8


WRITES = {
    "field": lambda xp, d: d.__setitem__("b", 9),
    "in place": _added,
    "slice of a field": lambda xp, d: d["b"].__setitem__(slice(0, 1), d["a"][:1] * 2),
    "mask": lambda xp, d: d["b"].__setitem__(d["b"] > 0, 7),
    "out": lambda xp, d: xp.add(d["b"], d["a"], out=d["b"]),
    "scan": lambda xp, d: d["b"].__setitem__(slice(None), xp.cumsum(d["b"])),
    "method": _sorted,
    "elements": _elements,
    "record": lambda xp, d: d.__setitem__(0, (5, 6, (7, 8))),
    "subarray": lambda xp, d: d["c"].__setitem__(slice(None), d["b"][:, None] * 3),
    "at": lambda xp, d: xp.add.at(d["a"], [0, 0, 1], 1),
    "copyto": lambda xp, d: xp.copyto(d["b"], d["a"]),
    "several": lambda xp, d: d[["a", "b"]].__setitem__(slice(None), (3, 4)),
}


@pytest.mark.some(60)
@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize("write", WRITES)
def test_a_record_shows_what_is_written_afterwards(write, array, small):
    seen = []
    for xp in (numpy, np):
        with np.config.override(small_bytes=small):
            d = ARRAYS[array](xp)
            first, last = d[0], d[-1]
            WRITES[write](xp, d)
            first["a"] += 10
            seen.append([str(x) for x in (first, last, d, d["a"].sum())])
    assert seen[1] == seen[0]


NESTED = [("k", "i4"), ("p", [("x", "f4"), ("y", "f4", (2,))])]


def _swapped(d):
    kept = d[0].copy()
    d[0] = d[1]
    d[1] = kept


def _by_copy(d):
    kept = [copy.deepcopy(d[0]), copy.copy(d[1])]
    d["k"] = 9
    d[2:4] = numpy.array(kept, d.dtype)


def _taken(d):
    take = numpy.take if isinstance(d, numpy.ndarray) else np.take
    for record in (take(d, 0), d.take(1), d[numpy.array(2)], d[[3]][0], d.copy()[0]):
        record["k"] = 8


def _of_loops(d):
    for r in d:
        r["k"] += 1
        r["p"]["x"] = r["k"] * 2
        r["p"]["y"][1] = 5


def _of_parts(d):
    r = d[1]
    r[()]["k"] = 4
    p = r["p"]
    p["x"] = 6
    d[0][1][0] = 7
    r[["k"]]["k"] = 3


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("program", [_swapped, _by_copy, _of_loops, _of_parts, _taken])
def test_records_and_their_copies_are_numpys(program, small):
    seen = []
    for xp in (numpy, np):
        with np.config.override(small_bytes=small):
            d = xp.zeros(4, NESTED)
            d["k"] = xp.arange(4)
            program(d)
            seen.append(str(d))
    assert seen[1] == seen[0]


@pytest.mark.parametrize("dtype", ["u1", "i4", "f8", "?", "c8", "U2", NESTED])
def test_the_bytes_of_an_array_are_its_memory(dtype):
    for value in (numpy.ones(3, dtype), numpy.ones((2, 3), dtype)[:, ::2], numpy.ones((), dtype)):
        assert bytes(np.array(value)) == bytes(value)


FIELDS = [("a", "i4"), ("b", ">f8", (3,)), ("c", [("x", "f4", (2, 2)), ("y", "U2")], (2,)), ("d", "f8", (1,))]
PATHS = [("a",), ("b",), ("c",), ("c", "x"), ("c", "y"), ("d",), ("c", "x", 0), ("b", (slice(None), 1))]
BASES = {
    "line": lambda xp: xp.zeros(4, FIELDS),
    "backwards": lambda xp: xp.zeros((4, 3), FIELDS)[::-1, 1],
    "without axes": lambda xp: xp.zeros((), FIELDS),
    "nothing": lambda xp: xp.zeros(0, FIELDS),
}


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_fields_whose_elements_have_axes_are_numpys(path, base, small):
    """What they show, and what is written into them: numbers, arrays, rows and what does not fit."""
    seen = []
    for xp in (numpy, np):
        with np.config.override(small_bytes=small):
            d: Any = BASES[base](xp)
            told: list[Any] = []
            early = d["b"]
            for write in (7, "shown", "row", xp.ones(77)):
                part, shown = d, d
                for key in path[:-1]:
                    part = part[key]
                try:
                    shown = part[path[-1]]
                    plus = shown if shown.dtype.kind in "VU" else shown + 1
                    row = plus[-1:] if plus.ndim else plus
                    part[path[-1]] = (
                        {"shown": plus, "row": row}.get(write, write) if type(write) is str else write
                    )
                except (ValueError, TypeError, IndexError) as error:
                    told.append(next(c for c in type(error).__mro__ if c.__module__ == "builtins"))
                told += [str(d), shown.dtype, shown.shape, str(early)]
            early[...] = 3
            seen.append([*told, str(d), d.tobytes()])
    assert seen[1] == seen[0]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="it is Python that writes")
@pytest.mark.parametrize("name", ["v", "m", "x"])
def test_fields_are_shown_and_written_without_python(name):
    r = np.zeros(9, [("v", "f4", (3,)), ("m", "i4", (2, 2)), ("x", "f8")])
    q, called = np.ones(r[name].shape), []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        r[name] = q
        r[name] = 2
        r[name][...] = q
    finally:
        sys.setprofile(None)
    assert called == []
