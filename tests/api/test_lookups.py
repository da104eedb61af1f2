"""Arrays of integers name rows: small ones at once, block by block where much is read."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from spartan_ng.config import config

INTEGERS = "bBhHiIlLqQ"
ROWS = [(300,), (7,), (40, 3), (5, 2, 2), (1, 1), (3, 0), (0, 2)]
SHAPES = [(30,), (65,), (9_000,), (40_000,), (130, 300), (90, 1, 2), (0, 70)]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda a: a,
    "every second": lambda a: numpy.repeat(a, 2, 0)[::2],
    "turned": numpy.asfortranarray,
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
}


def told(call):
    """What a call gives, to the bit and as it lies, or that it is an error."""
    try:
        found = numpy.asarray(call())
    except IndexError:
        return IndexError
    lies = tuple(s for s, n in zip(found.strides, found.shape, strict=True) if n > 1)
    return found.dtype, found.shape, lies, found.tobytes()


def tables(draw):
    """Rows, and places of them in any integers: some from the end, now and then one that there is not."""
    dtype, rows = draw.choice("?bhifdFDgm"), draw.choice(ROWS)
    table = numpy.arange(numpy.prod(rows)).astype("m8[s]" if dtype == "m" else dtype).reshape(rows)
    kind, n = numpy.dtype(draw.choice(INTEGERS)), len(table)
    least, most = -n if kind.kind == "i" and draw.random() < 0.5 else 0, n - 1
    least, most = max(least, numpy.iinfo(kind).min), min(max(most, least), numpy.iinfo(kind).max)
    index = numpy.random.default_rng(draw.randrange(1000)).integers(least, most + 1, draw.choice(SHAPES))
    index = index.astype(kind)
    if draw.random() < 0.2 and index.size:
        index.flat[draw.randrange(index.size)] = min(numpy.iinfo(kind).max, numpy.iinfo("q").max)
    lay = [LAYOUTS[draw.choice(list(LAYOUTS))] if draw.random() < 0.3 else LAYOUTS["plain"] for _ in "ab"]
    return lay[0](table), lay[1](index)


def test_rows_are_numpys_to_the_bit(request):
    """Small ones at once."""
    draw = random.Random(request.config.option.seed)
    for _ in range(300):
        table, index = tables(draw)
        expected = told(lambda t=table, i=index: t[i])
        assert told(lambda t=table, i=index: quick.selected(t, i)) == expected, (table, index)
        ours, places = np.array(table), np.array(index)
        if expected is IndexError:
            with pytest.raises(IndexError):
                ours[places]
        else:
            assert told(lambda t=ours, i=places: t[i])[3:] == expected[3:]


@pytest.mark.parametrize("kind", INTEGERS)
def test_places_of_what_is_read_lazily(kind, monkeypatch):
    """They are those of the call, whatever becomes of the array that had them."""
    monkeypatch.setattr(config, "small_bytes", 1 << 12)
    table = numpy.arange(1_000.0)
    least = -100 if numpy.dtype(kind).kind == "i" else 0
    for low in {0, least}:
        index = numpy.random.default_rng(3).integers(low, 100, 9_000).astype(kind)
        ours, places, lent = np.array(table), np.array(index), index.copy()
        one, two = ours[places], ours[lent]
        places[:] = 0
        lent[:] = 0
        assert numpy.array_equal(one, table[index])
        assert numpy.array_equal(two, table[index])


def test_a_table_of_an_image_makes_no_places_of_its_own(monkeypatch):
    """Places take eight times what such an index takes."""
    image = np.array(numpy.arange(1 << 20).astype(numpy.uint8))
    monkeypatch.setattr(config, "small_bytes", 1 << 21)
    made = np.arange(256.0)[image]
    assert made._peek() is None
    places = made._node().inputs[1]
    assert places.fn == "cast"
    assert places.inputs[0].nbytes == image.nbytes
    assert numpy.array_equal(made, numpy.arange(256.0)[numpy.asarray(image)])
