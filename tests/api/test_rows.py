"""Rows that a loop goes over: one that somebody keeps, in whatever form, stays what it is, as NumPy's does.

What is compiled shows a row by the view of one that has gone, if nobody has that any more.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.api.core import quick

MATRICES = {
    "rows": lambda: numpy.arange(24.0).reshape(8, 3),
    "columns": lambda: numpy.asfortranarray(numpy.arange(24.0).reshape(8, 3)),
    "turned back": lambda: numpy.arange(48.0).reshape(8, 6)[::-1, ::2],
    "cube": lambda: numpy.arange(48).reshape(8, 3, 2),
    "no columns": lambda: numpy.zeros((8, 0)),
    "crooked": lambda: numpy.zeros(8, "u1,(3,)f4")["f1"],
    "numbers": lambda: numpy.arange(24, dtype=">i4").reshape(8, 3),
    "complex": lambda: numpy.arange(24).reshape(8, 3) * 1j,
}
BASES = {
    "own": lambda np, x: np.array(x),
    "view": lambda np, x: np.array(numpy.stack([x, x]))[1],
    "reshaped": lambda np, x: np.array(x.reshape(-1)).reshape(x.shape),
    "stretched": lambda np, x: np.broadcast_to(np.array(x[0]), x.shape),
    "zeros": lambda np, x: np.zeros(x.shape, x.dtype),
}


def shaped(r: Any) -> Any:
    r.shape = (*r.shape, 1)
    return r


def locked(r: Any) -> Any:
    r.setflags(write=False)
    return r


KEPT: dict[str, Any] = {
    "nothing": lambda np, r: None,
    "the row": lambda np, r: r,
    "a part": lambda np, r: r[:1],
    "all of it": lambda np, r: r[...],
    "turned": lambda np, r: r.T,
    "reshaped": lambda np, r: r.reshape(-1),
    "numpy's": lambda np, r: numpy.asarray(r),
    "a buffer": lambda np, r: memoryview(numpy.asarray(r) if np is sp and not quick.IS_COMPILED else r),  # type: ignore[arg-type]
    "an iterator": lambda np, r: iter(r),
    "flat": lambda np, r: r.flat,
    "a sum": lambda np, r: r + r,
    "a shape of its own": lambda np, r: shaped(r),
    "read-only": lambda np, r: locked(r),
}
DURING = {
    "nothing": lambda np, a, i: None,
    "writes": lambda np, a, i: a.__setitem__((i + 1) % 8, 7) if a.flags.writeable else None,
    "writes all": lambda np, a, i: a.__iadd__(1) if a.flags.writeable else None,
    "another shape": lambda np, a, i: setattr(a, "shape", (*a.shape, 1)) if i in (3, 4) else None,
}


def seen(kept):
    """What something that is kept shows."""
    if kept is None:
        return None
    if isinstance(kept, memoryview):
        return (kept.shape, kept.strides, kept.tobytes())
    if hasattr(kept, "dtype"):
        strides = [s for n, s in zip(kept.shape, kept.strides, strict=True) if n > 1] if kept.size else []
        return (kept.shape, strides, kept.flags.writeable, numpy.asarray(kept).tolist())
    return [numpy.asarray(x).tolist() for x in kept]


def gone_over(np, matrix, base, keeps, during):
    """What a loop sees, what stays of it, and the matrix behind it; it keeps some rows, and drops others."""
    a, found, kept = BASES[base](np, MATRICES[matrix]()), [], []
    if matrix == "crooked" and keeps == "a buffer":
        return None
    for i, row in enumerate(a):
        found.append((row.shape, row.flags.writeable, row.flags.aligned, numpy.array(row).tolist()))
        if i % 4 != 2:
            kept.append(KEPT[keeps](np, row))
        DURING[during](np, a, i)
        if during == "writes" and keeps != "read-only" and row.flags.writeable:
            row[...] = i
    return found, [seen(k) for k in kept], numpy.asarray(a).tolist()


@pytest.mark.some(120)
@pytest.mark.parametrize("during", DURING)
@pytest.mark.parametrize("keeps", KEPT)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("matrix", MATRICES)
def test_rows_that_are_kept_stay_what_they_are(matrix, base, keeps, during):
    case = (matrix, base, keeps, during)
    assert gone_over(sp, *case) == gone_over(numpy, *case)


@pytest.mark.parametrize(
    "loop", [iter, enumerate, lambda a: zip(a, a, strict=True), lambda a: map(sp.ravel, a)]
)
def test_no_two_rows_are_one(loop):
    a = sp.array(numpy.arange(60.0).reshape(20, 3))
    for keeps in (1, 2, 3, 5):
        kept = [r for i, r in enumerate(loop(a)) if i % keeps == 0]
        rows = [r[1] if isinstance(r, tuple) else r for r in kept]
        assert [r.tolist() for r in rows] == numpy.arange(60.0).reshape(20, 3)[::keeps].tolist()


def test_a_row_dies_when_nobody_has_it():
    a = sp.array(numpy.arange(12.0).reshape(6, 2))
    for row in a:
        gone = weakref.ref(row)
        assert row.base is a
        del row
        assert gone() is None
    rows = iter(a)
    first, again = next(rows), weakref.ref(a)
    del a
    assert first.tolist() == [0, 1]
    assert [r.tolist() for r in rows] == [[2, 3], [4, 5], [6, 7], [8, 9], [10, 11]]
    gc.collect()
    assert again() is None  # what has come to its end has nothing
    assert next(rows, None) is None


def test_rows_of_what_a_row_has():
    cube = numpy.arange(24.0).reshape(2, 3, 4)
    found = [[line.tolist() for line in rows] for rows in sp.array(cube)]
    assert found == cube.tolist()
    a = sp.array(cube)
    for rows in a:
        for line in rows:
            line *= 2
            line[0] -= 1
    cube *= 2
    cube[..., 0] -= 1
    assert a.tolist() == cube.tolist()
