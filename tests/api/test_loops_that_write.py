"""Loops over what they write to: each element is what it is when the loop comes to it, as in NumPy."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.config import config

VIEWS = {
    "line": lambda a: a[3],
    "column": lambda a: a[:, 1],
    "part": lambda a: a[2, 1:4],
    "back": lambda a: a[::-1, 2],
    "rows": lambda a: a[1:4],
    "turned": lambda a: a.T[:3],
    "ravelled": lambda a: a.reshape(-1)[:9],
    "whole": lambda a: a,
}
LOOPS = {
    "iter": lambda np, view: iter(view),
    "flat": lambda np, view: view.flat,
    "ndenumerate": lambda np, view: (x for _, x in np.ndenumerate(view)),
    "generator": lambda np, view: (x * 2 for x in view),
    "zip": lambda np, view: (x + y for x, y in zip(view, view[::-1], strict=True)),
    "reversed": lambda np, view: reversed(view),
}
WRITES = {
    "adds": lambda np, a, x: a.__iadd__(1),
    "sets": lambda np, a, x: a.__setitem__((slice(2, None), slice(1, 4)), x.sum() % 50 + a[2:, 1:4]),
    "by mask": lambda np, a, x: a.__setitem__(a > 20, a[a > 20] - 3),
    "out": lambda np, a, x: np.add(a, 1, out=a),
    "copyto": lambda np, a, x: np.copyto(a, a[::-1].copy()),
    "reads, too": lambda np, a, x: a.__imul__(float(a[0, 0]) % 3 + 1),
}


@pytest.mark.some(60)
@pytest.mark.parametrize("small", [0, 100, 1 << 20])
@pytest.mark.parametrize(("view", "loop", "write"), list(product(VIEWS, LOOPS, WRITES)))
def test_elements_are_those_of_the_moment(small, view, loop, write):
    def run(np):
        a, found = np.array(numpy.arange(30.0).reshape(6, 5)), []
        for x in LOOPS[loop](np, VIEWS[view](a)):
            found.append(numpy.array(x))
            WRITES[write](np, a, x)
        return found, numpy.array(a)

    with config.override(small_bytes=small):
        (found, after), (wanted, then) = run(sp), run(numpy)
    numpy.testing.assert_equal(found, wanted)
    numpy.testing.assert_array_equal(after, then)
