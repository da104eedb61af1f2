"""The smallest numbers are no zeros, in any tier and thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "any": lambda xp, x: x.any(axis=1),
    "all": lambda xp, x: x.all(axis=0),
    "count_nonzero": lambda xp, x: xp.count_nonzero(x, axis=0),
    "nonzero": lambda xp, x: xp.nonzero(x)[1],
    "where": lambda xp, x: xp.where(x, 1, 0).sum(axis=1),
    "less": lambda xp, x: (x < 0).sum(axis=0),
    "greater": lambda xp, x: (x > 0).sum(axis=1),
    "equal": lambda xp, x: (x == 0).sum(axis=1),
    "extremes": lambda xp, x: xp.maximum(x, 0) - xp.minimum(x, 0),
    "sum": lambda xp, x: (x + x).sum(axis=1),
    "half": lambda xp, x: x * 0.5,
    "sign": lambda xp, x: xp.sign(x),
    "not": lambda xp, x: xp.logical_not(x).sum(axis=0),
    "and": lambda xp, x: xp.logical_and(x, x[::-1]),
    "or": lambda xp, x: xp.logical_or.reduce(x, axis=0),
    "xor": lambda xp, x: xp.logical_xor.reduce(x, axis=1),
    "xor, stretched": lambda xp, x: xp.logical_xor.reduce(xp.broadcast_to(x, (3, *x.shape)), axis=(0, 2)),
    "cast": lambda xp, x: x.astype(bool).sum(axis=1),
}


@pytest.mark.parametrize("kernels", ["interpret", "numexpr", "compile"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_denormals_are_no_zeros(name: str, kernels: str) -> None:
    for dtype in (np.float32, np.float64):
        tiny: Any = np.finfo(dtype).smallest_subnormal
        x = np.random.default_rng(2).integers(-2, 3, (301, 7)).astype(dtype) * tiny
        with running_on(EmbeddedBackend(2)), config.override(kernels=kernels, small_bytes=0):
            found = np.asarray(PROGRAMS[name](sp, sp.asarray(x)))
        np.testing.assert_array_equal(found, PROGRAMS[name](np, x))
