"""How many elements lie above bounds, and those between some of them, in one pass; see `compiled.between`.

Elements are compared `WORD` at a time: a bit each says which are above a bound, how many that are, and which
marks turn.
"""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import (
    WORD,
    array_at,
    bits_above,
    bits_from,
    compiled,
    lowest,
    ones,
)

NUMBER = np.float64
LEAST = -np.inf
"""No number is less."""
WIDTH = 8
"""Bytes of a number."""
STRIP = 8
"""Words whose elements all bounds are asked about, four after four, while they are near."""


@compiled
def mark_numbers(at: Any, words: Any, valid: Any, wanted: Any, marks: Any) -> Any:
    """How many elements from an address on are numbers; the marks of these are `wanted`."""
    count = np.int64(0)
    for k in range(words):
        are_numbers = bits_from(at + k * (WORD * WIDTH), NUMBER(LEAST)) & valid
        count += ones(are_numbers)
        marks[k] = are_numbers & wanted
    return count


@compiled
def turn_marks(at: Any, words: Any, valid: Any, bounds: Any, counts: Any, marks: Any) -> None:
    """To `counts` how many elements lie above each of four bounds, which turn their marks."""
    b0, b1, b2, b3 = bounds[0], bounds[1], bounds[2], bounds[3]
    c0 = c1 = c2 = c3 = np.int64(0)
    for k in range(words):
        word = at + k * (WORD * WIDTH)
        a0, a1 = bits_above(word, b0) & valid, bits_above(word, b1) & valid
        a2, a3 = bits_above(word, b2) & valid, bits_above(word, b3) & valid
        c0 += ones(a0)
        c1 += ones(a1)
        c2 += ones(a2)
        c3 += ones(a3)
        marks[k] ^= a0 ^ a1 ^ a2 ^ a3
    counts[0] += c0
    counts[1] += c1
    counts[2] += c2
    counts[3] += c3


@compiled
def collect(x: Any, marks: Any, words: Any, out: Any, place: Any) -> Any:
    """Put what is marked behind the first `place` of `out`; how many are there then."""
    for k in range(words):
        mark = marks[k]
        while mark != 0:
            out[place] = x[k * WORD + lowest(mark)]
            place += 1
            mark &= mark - 1
    return place


@compiled
def kernel(t: Any) -> None:
    """Strip after strip: marks, counts, and what is marked, as long as there is room for all of a strip. The
    last word has the last elements, and leaves out those that the one before it had."""
    n, size, room, wanted, collects = t[0, 1], t[0, 3], t[0, 6], t[0, 8], t[0, 9]
    x, bounds = array_at(t[0, 0], (n,), NUMBER), array_at(t[0, 2], (size,), NUMBER)
    counts, out = array_at(t[0, 4], (size + 2,), np.int64), array_at(t[0, 5], (room,), NUMBER)
    marks = array_at(t[0, 7], (STRIP,), np.int64)
    whole, place, i = n // WORD, 0, 0
    while i < n:
        words, first, valid = min(whole - i // WORD, STRIP), i, np.int64(-1)
        if words == 0:
            words, first, valid = 1, n - WORD, np.int64(-1) << (WORD - n % WORD)
        at = t[0, 0] + first * WIDTH
        counts[size] += mark_numbers(at, words, valid, wanted, marks)
        for k in range(0, size, 4):
            turn_marks(at, words, valid, bounds[k : k + 4], counts[k : k + 4], marks)
        if collects and place + words * WORD <= room:
            place = collect(x[first:], marks, words, out, place)
        i += words * WORD
    counts[size + 1] = place
