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


_PLACES = numpy.random.default_rng(0).integers(0, 10, 5000)


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", ">i8", "u8"])
@pytest.mark.parametrize("back", [0, 10])
@pytest.mark.parametrize(
    "look",
    [
        lambda np, p: np.linspace(0, 1, 10)[p],
        lambda np, p: np.linspace(0, 1, 10)[p].sum(),
        lambda np, p: np.arange(30).reshape(10, 3)[p].sum(axis=0),
        lambda np, p: np.arange(30).reshape(3, 10)[:, p][1],
        lambda np, p: np.arange(100).reshape(10, 10)[p, p[::-1]],
        lambda np, p: np.take(np.arange(10), p.reshape(50, 100)),
        lambda np, p: (np.arange(10) % 3 == 0)[p],
    ],
)
def test_a_small_table_is_looked_up_by_places_that_memory_has_no_room_for(look, back, dtype):
    """They are read where they are used, and checked before."""
    p = _PLACES.astype(dtype) - numpy.asarray(back, dtype)
    if back and numpy.dtype(dtype).kind == "u":
        p = _PLACES.astype(dtype)
    with np.config.override(memory_bytes=100_000, small_bytes=0):
        found = numpy.asarray(look(np, np.asarray(p)))
    expected = look(numpy, p)
    assert found.dtype == expected.dtype
    numpy.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("wrong", [10, -11])
def test_many_places_are_checked_before_they_are_looked_up(wrong):
    p = _PLACES.copy()
    p[4321] = wrong
    with (
        np.config.override(memory_bytes=100_000),
        pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0 with size 10"),
    ):
        np.arange(10)[np.asarray(p)]


def test_many_places_are_what_they_were_when_they_were_looked_up():
    with np.config.override(memory_bytes=100_000):
        p = np.asarray(_PLACES.copy())
        found = np.arange(10.0)[p]
        p[:] = 0
        numpy.testing.assert_array_equal(numpy.asarray(found), _PLACES)
