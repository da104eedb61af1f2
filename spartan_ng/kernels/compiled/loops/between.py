"""How many elements lie above bounds, and those between some of them, in one pass; see `compiled.between`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled

NUMBER = np.float64
MARK = np.int64
"""As wide as the numbers: then a comparison makes marks without moving anything."""
STRIP = 512
"""Elements that all bounds are asked about, two after two, while they are near: intervals have two."""


@compiled
def number_marks(x: Any, marks: Any, wanted: Any) -> Any:
    """How many elements are numbers; their marks are `wanted`, those of others nothing."""
    count = np.int64(0)
    for i in range(len(x)):
        is_number = np.int64(x[i] == x[i])
        marks[i] = wanted & is_number
        count += is_number
    return count


@compiled
def turn_marks(x: Any, marks: Any, bounds: Any, turns: Any, counts: Any) -> None:
    """To `counts` how many elements lie above each of two bounds; the marks of these are turned where a
    bound has a one among `turns`."""
    b0, b1, t0, t1 = bounds[0], bounds[1], turns[0], turns[1]
    c0 = c1 = np.int64(0)
    for i in range(len(x)):
        v = x[i]
        a0, a1 = np.int64(v > b0), np.int64(v > b1)
        c0 += a0
        c1 += a1
        marks[i] ^= (a0 & t0) ^ (a1 & t1)
    counts[0] += c0
    counts[1] += c1


@compiled
def collect(x: Any, marks: Any, out: Any, place: Any) -> Any:
    """Put what is marked behind the first `place` of `out`; how many are there then.

    Few are: eight that are not are left out at a glance. Which of eight is one nobody can guess.
    """
    eights = len(x) // 8 * 8
    for k in range(0, eights, 8):
        some = marks[k] | marks[k + 1] | marks[k + 2] | marks[k + 3]
        if some | marks[k + 4] | marks[k + 5] | marks[k + 6] | marks[k + 7]:
            for i in range(k, k + 8):
                out[place] = x[i]
                place += marks[i]
    for i in range(eights, len(x)):
        out[place] = x[i]
        place += marks[i]
    return place


@compiled
def kernel(t: Any) -> None:
    """Strip after strip: marks, counts, and what is marked, as long as there is room for all of a strip."""
    n, size, room, wanted, collects = t[0, 1], t[0, 3], t[0, 7], t[0, 9], t[0, 10]
    x, bounds, turns = (
        array_at(t[0, 0], (n,), NUMBER),
        array_at(t[0, 2], (size,), NUMBER),
        array_at(t[0, 4], (size,), np.int64),
    )
    counts, out = array_at(t[0, 5], (size + 2,), np.int64), array_at(t[0, 6], (room,), NUMBER)
    marks = array_at(t[0, 8], (STRIP,), MARK)
    place = 0
    for i in range(0, n, STRIP):
        part = x[i : min(i + STRIP, n)]
        counts[size] += number_marks(part, marks, wanted)
        for k in range(0, size, 2):
            turn_marks(part, marks, bounds[k : k + 2], turns[k : k + 2], counts[k : k + 2])
        if collects and place + len(part) <= room:
            place = collect(part, marks, out, place)
    counts[size + 1] = place
