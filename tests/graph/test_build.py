"""Nodes that are built of others: what is computed, and how little it is stretched before."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spartan_ng.graph import build
from tests import reference

SHAPES = [(4,), (3, 4), (1, 4), (2, 3, 4), (5, 1, 3, 4), (5, 2, 1, 4)]
"""Operands on the left; their last axis meets"""
OTHERS = [(4,), (4, 6), (4, 1), (2, 4, 6), (1, 4, 6), (5, 1, 4, 6)]
"""the last but one of these."""


@pytest.mark.parametrize(("left", "right"), list(product(SHAPES, OTHERS)), ids=str)
def test_only_batches_are_stretched_for_a_product(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """A matrix or a vector meets each matrix of a batch as it is: it is not copied for each."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 9, left).astype(float), rng.integers(0, 9, right).astype(float)
    a, b = map(build.constant, values)
    node = build.matmul(a, b, np.dtype(float))
    (found,) = reference.evaluate([node])
    np.testing.assert_array_equal(found.value, np.matmul(*values))
    for given, taken, value in zip((a, b), node.inputs, values, strict=True):
        batch = np.broadcast_shapes(left[:-2], right[:-2]) if value.ndim > 2 else ()
        assert taken.shape == batch + value.shape[-2:]
        assert taken is given or batch != value.shape[:-2]
