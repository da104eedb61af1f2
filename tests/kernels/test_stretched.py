"""Views that stretch axes count in full, whatever the function that reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.config import config

A, B = np.random.default_rng(0).random((2, 5, 1))


@pytest.mark.parametrize(
    "program",
    [
        lambda xp, a, b: xp.where(a > 0.5, a, b).sum(axis=1),
        lambda xp, a, b: a.astype("f4").sum(axis=1),
        lambda xp, a, b: (a * 2).sum(axis=1),
        lambda xp, a, b: a.astype("f4") @ xp.ones(4, "f4"),
        lambda xp, a, b: xp.cumsum(a, axis=1),
        lambda xp, a, b: xp.sort(a.T, axis=0) + a.T,
        lambda xp, a, b: xp.concatenate([a, b]),
    ],
)
def test_broadcast_operands(program: Callable[..., Any]) -> None:
    wide = (5, 4)
    with config.override(small_bytes=0):
        a, b = (sp.broadcast_to(sp.asarray(x), wide) for x in (A, B))
        found = np.asarray(program(sp, a, b))
    expected = program(np, *(np.broadcast_to(x, wide) for x in (A, B)))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
