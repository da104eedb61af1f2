"""`take` of any indices, along any axis, into an output or not: down to single elements."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np

CASES: list[Any] = list(
    product(
        ((5,), (3, 4)),
        ((), (1,), (2,), (2, 2), (0,)),
        (None, 0, -1),
        ("raise", "wrap", "clip"),
        ("i8", "f4", "O", "U2"),
    )
)


def _taken(xp, case, has_out):
    shape, indices, axis, mode, dtype = case
    x = numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)
    i = numpy.ones(indices, int)
    shape_of = numpy.take(numpy.zeros(shape), i, axis=axis).shape
    out = {"out": xp.asarray(numpy.zeros(shape_of, dtype))} if has_out else {}
    found = xp.take(xp.asarray(x), xp.asarray(i), axis=axis, mode=mode, **out)
    return str(found), numpy.shape(found), found is out.get("out"), getattr(found, "dtype", None)


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("has_out", [False, True])
def test_what_is_taken_is_numpys(some, small, has_out):
    with np.config.override(small_bytes=small):
        for case in some(CASES, 60):
            assert _taken(np, case, has_out) == _taken(numpy, case, has_out), case


@pytest.mark.parametrize("turned", [lambda x: x, lambda x: x.T, lambda x: x[::2], lambda x: x[:, 1]])
@pytest.mark.parametrize("at", [[9], [1, 9], [1, -99, 0], [0, 1, 2, 99], [[0, 1], [99, 2]]])
def test_what_is_put_before_an_index_out_of_bounds(mode, turned, at):
    def after(np):
        x = np.zeros((2, 3))
        with pytest.raises(IndexError):
            np.put(turned(x), at, [5, 6, 7])
        return numpy.asarray(x).tolist()

    assert after(np) == after(numpy)
