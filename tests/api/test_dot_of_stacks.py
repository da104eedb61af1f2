"""`dot` of more than two dimensions, which NumPy adds up line by line: of small arrays in its bits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy
import pytest

import spartan_ng as np

SHAPES = [(3,), (4, 3), (3, 4), (2, 4, 3), (2, 3, 4), (2, 2, 4, 3), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0)]


@pytest.mark.parametrize(("one", "other"), [("f8", "f8"), ("u1", "f8"), ("c16", "f4"), ("?", "?")])
def test_they_have_numpys_bits(one: str, other: str) -> None:
    random = numpy.random.default_rng(0)
    for a, b in itertools.product(SHAPES, SHAPES):
        x, y = (random.random(a) * 5).astype(one), (random.random(b) * 5).astype(other)
        found: list[Any] = []
        for m in (numpy, np):
            try:
                z = numpy.asarray(m.dot(m.array(x), m.array(y)))
                found.append((z.dtype, z.shape, z.tobytes()))
            except ValueError:
                found.append(ValueError)
        assert found[0] == found[1], (a, b)


def test_a_picture_and_a_list() -> None:
    """A last bit more or less is another grey."""
    picture = numpy.random.default_rng(13).integers(0, 256, (40, 50, 3)).astype("u1")
    grey = numpy.dot(picture, [0.299, 0.587, 0.114])
    assert numpy.asarray(np.dot(np.array(picture), [0.299, 0.587, 0.114])).tobytes() == grey.tobytes()
