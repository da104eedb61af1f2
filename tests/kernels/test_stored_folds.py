"""Folds over inner axes that are stored, and used again in the pass that makes them: compiled loops, in
blocks that divide nothing."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as sp
from spartan_ng.config import config

SHAPES = [(100, 400, 9), (20, 61, 63, 8), (7001, 5), (5, 5714, 7), (1, 3000, 1, 7)]
USES = {
    "a map": lambda np, y, r: (r, r / 3),
    "a map alone": lambda np, y, r: (np.maximum(r, r),),
    "new axes": lambda np, y, r: (r, r[..., None]),
    "stretched": lambda np, y, r: (r, y - 0.01 * r[..., None]),
    "stretched by hand": lambda np, y, r: (r, y + np.broadcast_to(np.sqrt(r[..., None] + 1), y.shape)),
    "a fold": lambda np, y, r: (r, np.max(r, axis=0)),
    "all of it": lambda np, y, r: (y, r, r * 2, r.sum(axis=0)),
    "a second one": lambda np, y, r: (r, (y - r[..., None]).max(axis=-1)),
}
FOLDS = {
    "sum": lambda np, y: np.sum(y, axis=-1),
    "product": lambda np, y: np.prod(1 + y * 1e-3, axis=-1),
    "largest": lambda np, y: np.max(y, axis=-1),
    "least number": lambda np, y: np.fmin.reduce(y, axis=-1),
    "any": lambda np, y: np.any(y > 1.9, axis=-1) * 1.0,
    "two axes": lambda np, y: np.sum(y, axis=(-2, -1)),
}
CASES = [
    ("a map", SHAPES[0], "sum", "f8"),
    ("a map alone", SHAPES[3], "product", "f4"),
    ("new axes", SHAPES[1], "largest", "i4"),
    ("stretched", SHAPES[2], "sum", "f8"),
    ("stretched", SHAPES[4], "least number", "f8"),
    ("stretched by hand", SHAPES[2], "sum", "f8"),
    ("stretched by hand", SHAPES[1], "largest", "f8"),
    ("a fold", SHAPES[0], "largest", "f8"),
    ("all of it", SHAPES[1], "sum", "i4"),
    ("a second one", SHAPES[1], "any", "f8"),
    ("all of it", SHAPES[1], "two axes", "f8"),
]


@pytest.mark.parametrize(("use", "shape", "fold", "dtype"), CASES)
def test_as_numpy(use, shape, fold, dtype):
    x = (numpy.random.default_rng(0).random(shape) * 9).astype(dtype)

    def program(np, x):
        y = x * 2
        return USES[use](np, y, FOLDS[fold](np, y))

    with config.override(small_bytes=0, kernels="compile"):
        found = sp.compute(*program(sp, sp.asarray(x)))
    for a, b in zip(program(numpy, x), found, strict=True):
        numpy.testing.assert_allclose(b, a, rtol=1e-5 if dtype == "f4" else 1e-12)
