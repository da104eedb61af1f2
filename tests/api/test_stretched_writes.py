"""Writes to arrays where several elements are one, in every way, while others wait for the old elements."""

from __future__ import annotations

import random
import warnings

import numpy
import pytest

import spartan_ng
from spartan_ng.config import config

WRITES = {
    "in place": lambda np, c, v: c.__iadd__(v),
    "out": lambda np, c, v: np.add(c, v, out=c),
    "out, where": lambda np, c, v: np.add(c, v, out=c, where=c > 1),
    "all": lambda np, c, v: c.__setitem__(..., v),
    "row": lambda np, c, v: c.__setitem__(1, v),
    "mask": lambda np, c, v: c.__setitem__(c > 2, v),
    "rows": lambda np, c, v: c.__setitem__([0, 2], v),
    "view": lambda np, c, v: c[1:, ::2].__iadd__(v),
    "turned": lambda np, c, v: c.T.__imul__(v),
    "more axes": lambda np, c, v: c[:, None].__iadd__(v),
    "fill": lambda np, c, v: c.fill(v),
    "sort": lambda np, c, v: c.sort(0),
    "sort lines": lambda np, c, v: c.sort(),
    "partition": lambda np, c, v: c.partition(1),
    "partition lines": lambda np, c, v: c.partition(v % 7, axis=0),
    "rows swapped": lambda np, c, v: c.__setitem__([0, 1], c[[1, 0]]),
    "rows turned": lambda np, c, v: c.__setitem__(..., c[::-1]),
    "bytes": lambda np, c, v: c.byteswap(True),
    "mask of many": lambda np, c, v: c.__setitem__(c > 2, c[c > 2][::-1]),
    "placed": lambda np, c, v: np.place(c, c > 1, [v, 1, 7]),
    "flat": lambda np, c, v: c.flat.__setitem__(slice(2, 9), v),
    "flat, places": lambda np, c, v: c.flat.__setitem__([3, 0, 5, 4], [v, 2, 8, 1]),
    "at": lambda np, c, v: np.add.at(c, (slice(0, 3), 1), v),
    "at of one": lambda np, c, v: np.negative.at(c, (np.array([0, 2]), 1)),
    "put": lambda np, c, v: np.put(c, [0, 4], v),
    "putmask": lambda np, c, v: np.putmask(c, c > 2, v),
    "place": lambda np, c, v: np.place(c, c > 1, [v]),
    "copyto": lambda np, c, v: np.copyto(c, v),
    "cumsum": lambda np, c, v: np.cumsum(c, axis=1, out=c),
    "clip": lambda np, c, v: np.clip(c, 1, v, out=c),
}
OVERLAPPING = [
    lambda np, a: np.broadcast_arrays(a, np.zeros((7, 1)))[0],
    lambda np, a: np.lib.stride_tricks.sliding_window_view(line_of(np, a), 3, writeable=True),
    lambda np, a: np.lib.stride_tricks.as_strided(line_of(np, a), (7, 3), (8, 16)),
    lambda np, a: np.lib.stride_tricks.as_strided(line_of(np, a), (7, 3), (24, 8)),
    lambda np, a: np.broadcast_arrays(a, np.zeros((7, 1)))[0],
]
READS = {
    "nothing": lambda np, c: c[:0],
    "choice": lambda np, c: np.where(c > 1, c, 0) * 1,
    "sum": lambda np, c: c.sum(0),
    "product": lambda np, c: c * 2,
}


def line_of(np, a):
    """A line of memory that more is shown of than it has."""
    return np.arange(21) * 1 + int(a[0, 1])


def steps_of(seed):
    """A random program."""
    draw = random.Random(seed)
    return [(draw.choice(list(READS)), draw.choice(list(WRITES)), draw.randint(1, 5)) for _ in range(3)]


def run(np, seed, steps):
    """What a program's arrays are at its end."""
    a = np.arange(3).reshape(1, -1) * 1
    if seed % 2:
        a = (np.interp(np.arange(3.0), np.arange(4.0), np.arange(4.0) * 2) + 0)[None]
    c = OVERLAPPING[seed % len(OVERLAPPING)](np, a)
    kept = []
    for read, write, value in steps:
        kept.append(READS[read](np, c))
        WRITES[write](np, c, value)
    return [numpy.asarray(x) for x in (a, c, *kept)]


@pytest.mark.slow
@pytest.mark.parametrize("small", [0, 1 << 20])
def test_writes(small):
    for seed in range(160):
        steps = steps_of(seed)
        with warnings.catch_warnings(), config.override(small_bytes=small):
            warnings.simplefilter("ignore")  # NumPy's, of such writes
            found, expected = run(spartan_ng, seed, steps), run(numpy, seed, steps)
        for f, e in zip(found, expected, strict=True):
            numpy.testing.assert_array_equal(f, e, err_msg=f"seed {seed}: {steps}")
