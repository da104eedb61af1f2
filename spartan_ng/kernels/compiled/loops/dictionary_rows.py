"""What kernels over compressed columns share: codes of a strip of rows, and places in scratch memory."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled


@compiled
def taken(table: Any, numbers: Any) -> Any:
    """The address of so many numbers of scratch memory, nobody else's."""
    place = table[0, 6]
    table[0, 6] = place + 8 * numbers
    return place


@compiled
def strip_codes(t: Any, lo: Any, hi: Any, cursors: Any, codes: Any) -> None:
    """The codes of a strip of a group's rows."""
    if t[0] == 0:
        if t[1] == 1:
            narrow = array_at(t[2], (hi,), np.uint8)
            for i in range(lo, hi):
                codes[i - lo] = narrow[i]
        else:
            wide = array_at(t[2], (hi,), np.uint16)
            for i in range(lo, hi):
                codes[i - lo] = wide[i]
        return
    codes[: hi - lo] = 0
    if t[0] == 1:
        offsets = array_at(t[2], (t[4],), np.int32)
        starts = array_at(t[3], (t[5],), np.int64)
        for k in range(1, t[5]):
            p, end = cursors[k], starts[k]
            while p < end and offsets[p] < hi:
                codes[offsets[p] - lo] = k
                p += 1
            cursors[k] = p
        return
    starts = array_at(t[3], (t[4] + 1,), np.int32)
    p = cursors[0]
    while p < t[4] and starts[p] < hi:
        code = run_code(t, p)
        for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
            codes[i - lo] = code
        if starts[p + 1] > hi:
            break
        p += 1
    cursors[0] = p


@compiled
def run_code(t: Any, p: Any) -> Any:
    """The code of a run."""
    if t[1] == 1:
        return np.int64(array_at(t[2], (t[4],), np.uint8)[p])
    return np.int64(array_at(t[2], (t[4],), np.uint16)[p])


@compiled
def below(numbers: Any, a: Any, b: Any, row: Any) -> Any:
    """The first place in `[a, b)` whose number is not below `row`."""
    while a < b:
        middle = (a + b) // 2
        if numbers[middle] < row:
            a = middle + 1
        else:
            b = middle
    return a


@compiled
def most_cursors(table: Any) -> Any:
    """How many places a group has to remember at most."""
    most = 1
    for g in range(1, table.shape[0]):
        if table[g, 0] == 1:
            most = max(most, table[g, 5])
    return most


@compiled
def find_first_cursors(table: Any, cursors: Any) -> None:
    """The places in groups' lists at which the first row begins."""
    first = table[0, 0]
    for g in range(1, table.shape[0]):
        t = table[g]
        if t[0] == 1:
            offsets = array_at(t[2], (t[4],), np.int32)
            starts = array_at(t[3], (t[5],), np.int64)
            for k in range(1, t[5]):
                cursors[g, k] = below(offsets, starts[k - 1], starts[k], first)
        elif t[0] == 2:
            runs = array_at(t[3], (t[4] + 1,), np.int32)
            cursors[g, 0] = max(below(runs, 0, t[4], first + 1) - 1, 0)


@compiled
def find_first_words(table: Any, sizes: Any) -> None:
    """Where each group's tuples begin, one group's after another's."""
    for g in range(1, table.shape[0]):
        sizes[g + 1] = sizes[g] + table[g, 5]
