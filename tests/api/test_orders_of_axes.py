"""Functions of several axes, named in every order, from either end: NumPy's values and errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.api.answers import answer, is_like

Call = Callable[[Any, Any, tuple[int, int]], Any]
VALUES = numpy.random.default_rng(0).random((4, 4, 4))
"""A cube: what takes one axis for another raises nothing, and has the right shape."""
WEIGHTS = numpy.random.default_rng(1).random((4, 4))
CALLS: dict[str, Call] = {
    "apply_over_axes": lambda m, y, axes: m.apply_over_axes(m.sum, y, axes),
    "average": lambda m, y, axes: m.average(y, axis=axes, weights=WEIGHTS),
    "average and weights": lambda m, y, axes: m.average(y, axis=axes, weights=WEIGHTS, returned=True),
    "count_nonzero": lambda m, y, axes: m.count_nonzero(y > 0.5, axes),
    "cross": lambda m, y, axes: m.cross(y[:3], y[1:], *axes, 0) if 0 in axes else m.cross(y[:3], y[:3], 0, 0),
    "diagonal": lambda m, y, axes: m.diagonal(y, -1, *axes),
    "expand_dims": lambda m, y, axes: m.expand_dims(y, axes),
    "fftn": lambda m, y, axes: m.fft.fftn(y, (3, 6), axes),
    "fftshift": lambda m, y, axes: m.fft.fftshift(y, axes),
    "flip": lambda m, y, axes: m.flip(y, axes),
    "gradient": lambda m, y, axes: m.gradient(y, 1.0, 2.0, axis=axes),
    "irfftn": lambda m, y, axes: m.fft.irfftn(y, axes=axes),
    "matmul": lambda m, y, axes: m.matmul(y, y + 1, axes=[axes, axes[::-1], axes]),
    "matrix norm": lambda m, y, axes: m.linalg.norm(y, 1, axis=axes),
    "matrix norm of rows": lambda m, y, axes: m.linalg.norm(y, numpy.inf, axis=axes, keepdims=True),
    "median": lambda m, y, axes: m.median(y, axis=axes, keepdims=True),
    "moveaxis": lambda m, y, axes: m.moveaxis(y, axes, (0, 2)),
    "quantile": lambda m, y, axes: m.quantile(y, [0.3, 0.4], axis=axes),
    "rfftn": lambda m, y, axes: m.fft.rfftn(y, (3, 6), axes),
    "roll": lambda m, y, axes: m.roll(y, (1, 2), axes),
    "rot90": lambda m, y, axes: m.rot90(y, 1, axes),
    "std": lambda m, y, axes: m.std(y, axis=axes),
    "sum": lambda m, y, axes: m.sum(y, axis=axes, where=y > 0.5),
    "swapaxes": lambda m, y, axes: m.swapaxes(y, *axes),
    "tensordot": lambda m, y, axes: m.tensordot(y, y + 1, (axes, axes[::-1])),
    "trace": lambda m, y, axes: m.trace(y, 1, *axes),
    "vector_norm": lambda m, y, axes: m.linalg.vector_norm(y, axis=axes, ord=3),
    "weighted quantile": lambda m, y, axes: m.quantile(
        y, 0.4, axis=axes, weights=WEIGHTS, method="inverted_cdf"
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_axes_are_those_that_are_named(name, mode):
    for axes in permutations(range(3), 2):
        for ours in (axes, (axes[0] - 3, axes[1] - 3)):
            got = answer(lambda m, axes=ours: CALLS[name](m, m.asarray(VALUES), axes), np)
            wanted = answer(lambda m, axes=ours: CALLS[name](m, m.asarray(VALUES), axes), numpy)
            assert is_like(got, wanted), (axes, got, wanted)
