"""Views of views that loops carry: NumPy's wherever the elements are, the last no dearer than the first."""

from __future__ import annotations

import random
import sys
from itertools import pairwise

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.api.core.chains import CHAIN, node_through, seen_through, short_chain
from spartan_ng.config import config

ROUNDS = {
    "turned": lambda np, a: a.T,
    "turned round": lambda np, a: np.rot90(a),
    "mirrored": lambda np, a: np.flipud(a).T[:, ::-1],
    "in another shape": lambda np, a: a.reshape(a.shape[::-1]),
    "flat and back": lambda np, a: a.reshape(-1).reshape(a.shape[::-1]),
    "halves": lambda np, a: a.reshape(2, -1)[::-1].reshape(-1, 30),
    "squeezed": lambda np, a: np.squeeze(a[None]),
    "an axis more": lambda np, a: a[:, None][:, 0],
    "an axis more, turned": lambda np, a: a[:, None].transpose(2, 0, 1)[..., 0].T,
    "an axis more, backwards": lambda np, a: np.expand_dims(a, 1)[::-1][:, 0],
    "axes of length 1, moved": lambda np, a: np.moveaxis(a[None, :, None], 2, 0)[0, 0],
    "as integers": lambda np, a: a.view("i8") if a.dtype == "f8" else a.view("f8"),
    "whole": lambda np, a: a[:, :][...],
    "diagonal places": lambda np, a: a.swapaxes(0, 1)[::-1, ::-1].swapaxes(0, 1),
    "stretched": lambda np, a: np.broadcast_to(a, a.shape),
}
"""Ways from a matrix of 30 by 30 to another one of it."""


@pytest.mark.parametrize("small_bytes", [1 << 20, 0], ids=["eager", "lazy"])
@pytest.mark.parametrize("name", ROUNDS)
def test_the_last_of_many_views_is_no_dearer_than_the_first(name, small_bytes):
    """By calls of Python; a write through it reaches the first array."""
    again = ROUNDS[name]
    x = np.arange(900.0).reshape(30, 30) + 1
    with config.override(small_bytes=small_bytes):
        a = sp.asarray(x.copy()) * 1
        b, begun, counts, calls = x, a, [], 0

        def count(frame, event, argument):
            nonlocal calls
            calls += event == "call"

        for _ in range(8):
            calls = 0
            sys.setprofile(count)
            try:
                for _ in range(3 * CHAIN):
                    a = again(sp, a)
            finally:
                sys.setprofile(None)
            for _ in range(3 * CHAIN):
                b = again(np, b)
            counts.append(calls)
        assert max(counts[4:]) <= 1.5 * max(counts[:2]) + 20
        assert len(a._views) <= CHAIN + 4
        if name != "stretched":
            a[1, 2:5] = b[1, 2:5] = -7
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(begun, x)
        assert a.strides == b.strides


def steps(np, a, draw):
    """Views of an array, any of which may be the next."""
    whole = slice(None)
    found = [
        lambda x: x.T,
        lambda x: x[None],
        lambda x: np.squeeze(x),
        lambda x: x[..., ::-1],
        lambda x: x.view("u8" if x.dtype == "f8" else "f8"),
    ]
    if a.ndim:
        axis, other = draw.randrange(a.ndim), draw.randrange(a.ndim)
        n = a.shape[axis]
        lo = draw.randrange(n) if n > 24 else 0
        key = (whole,) * axis
        found += [
            lambda x: x.swapaxes(axis, other),
            lambda x: np.moveaxis(x, axis, other),
            lambda x: x[(*key, slice(None, None, -1))],
            lambda x: x[(*key, slice(lo // 8, None))],
            lambda x: x[(*key, whole, None)],
            lambda x: x[(*key, slice(0, max(n, 1)))],
        ]
        factors = [k for k in (2, 3, 4) if n % k == 0]
        if factors:
            k = draw.choice(factors)
            found.append(lambda x: x.reshape(*x.shape[:axis], k, n // k, *x.shape[axis + 1 :]))
        if n == 1:
            found.append(lambda x: x[(*key, 0)])
    if a.ndim > 1:
        at = draw.randrange(a.ndim - 1)
        joined = (*a.shape[:at], a.shape[at] * a.shape[at + 1], *a.shape[at + 2 :])
        try:
            np.reshape(a, joined, copy=False)
        except ValueError:
            return found
        found += [lambda x: x.reshape(joined)] * 3
    return found


@pytest.mark.slow
@pytest.mark.parametrize("small_bytes", [1 << 20, 0, 256], ids=["eager", "lazy", "mixed"])
@pytest.mark.parametrize("seed", range(12))
def test_views_of_views_are_numpys(seed, small_bytes):
    """Drawn chains of hundreds, over arrays that are here and that are not, read and written on the way."""
    draw = random.Random(seed)
    n, m = draw.choice([(24, 36), (48, 5), (7, 16), (1, 60)])
    x = np.arange(float(n * m)).reshape(n, m)
    with config.override(small_bytes=small_bytes):
        a = begun = sp.asarray(x.copy()) + 0
        b = x
        for k in range(300):
            if b.ndim > 6 or b.size < 3:
                a, b = begun, x
            step = draw.choice(steps(np, b, draw))
            a, b = step(a), step(b)
            assert np.shares_memory(b, x)
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            if not draw.randrange(12):
                at = tuple(draw.randrange(length) for length in b.shape)
                a[at] = b[at] = b.dtype.type(k)
            elif not draw.randrange(20):
                a += b.dtype.type(1)
                b += b.dtype.type(1)
            elif not draw.randrange(30):
                np.testing.assert_array_equal(a, b)
            elif not draw.randrange(30):
                begun += 0  # the array is another value from now on
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(begun, x)


@pytest.mark.parametrize("seed", range(40))
def test_a_short_chain_shows_what_the_long_one_does(seed):
    draw = random.Random(seed)
    base = np.arange(24.0 * 36).reshape(24, 36)
    a, b = sp.asarray(base.copy()), base
    long: list = []
    for _ in range(60):
        if b.ndim > 5 or b.size < 3:
            break
        step = draw.choice(steps(np, b, draw))
        before = a
        a, b = step(a), step(b)
        if a._views[: len(before._views)] != before._views:  # it is made short there
            break
        long.append(a)
    for seen in long:
        short = short_chain(seen._views, base)
        assert len(short) <= len(seen._views) * 2
        shown = seen_through(base, short)
        np.testing.assert_array_equal(shown, np.asarray(seen))
        node = node_through(sp.asarray(base)._node(), short)
        assert node.shape == shown.shape
        kinds = [type(view).__name__ for view in short]
        assert not any(one == other for one, other in pairwise(kinds)), kinds
