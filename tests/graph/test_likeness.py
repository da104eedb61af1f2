"""Formulas that are written twice are alike; what may differ in an element is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.places.blockwise import on_blocks
from spartan_ng.config import config
from spartan_ng.graph.likeness import surely_alike

X, Y = np.array(numpy.arange(12.0).reshape(3, 4)), np.array(numpy.ones((3, 4)))
Formula = Callable[[], Any]
ALIKE: list[Formula] = [
    lambda: X > 2.0,
    lambda: (X > 2) & ~(Y.T.reshape(3, 4) < X.sum(axis=0)),
    lambda: np.cumsum(X[::2], axis=1) == -0.0,
    lambda: np.sort(X @ Y.T)[1:] != Y[:2, :3],
    lambda: np.isnan(X * numpy.float32(0.1) + float("nan")),
    lambda: np.broadcast_to(X[1], (3, 4)).astype("f4") > 1,
]
UNLIKE: list[tuple[Formula, Formula]] = [
    (lambda: X > 2, lambda: X > 2.5),
    (lambda: X > 2, lambda: X >= 2),
    (lambda: X > 2, lambda: Y > 2),
    (lambda: X > Y, lambda: Y > X),
    (lambda: 1 / (X * 0.0) > 2, lambda: 1 / (X * -0.0) > 2),
    (lambda: X.sum(axis=0), lambda: X[:, :3].sum(axis=1)),
    (lambda: np.cumsum(X, axis=0), lambda: np.cumsum(X, axis=1)),
    (lambda: X[1:], lambda: X[:2]),
    (lambda: X.astype("f4"), lambda: X.astype("f8")),
]


def in_words(depth: int) -> Any:
    a = X
    for _ in range(depth):
        a = a + 1
    return a


@pytest.mark.parametrize("formula", ALIKE)
def test_one_formula_is_alike(formula: Formula) -> None:
    with config.override(small_bytes=0):
        assert surely_alike(formula()._node(), formula()._node())


@pytest.mark.parametrize(("one", "other"), UNLIKE)
def test_others_are_not(one: Formula, other: Formula) -> None:
    with config.override(small_bytes=0):
        assert not surely_alike(one()._node(), other()._node())


def test_draws_and_functions_of_the_programs_are_like_themselves_only() -> None:
    def flip(a: Any) -> Any:
        return a > numpy.random.random()

    with config.override(small_bytes=0):
        for make in (lambda: np.random.rand(3, 4) > 0.5, lambda: on_blocks(flip, [X], "flip")):
            one, other = make()._node(), make()._node()
            assert surely_alike(one, one)
            assert not surely_alike(one, other)


def test_long_ways_are_not_walked() -> None:
    with config.override(small_bytes=0):
        assert surely_alike(in_words(9)._node(), in_words(9)._node())
        assert not surely_alike(in_words(900)._node(), in_words(900)._node())
        a, b = X, X
        for _ in range(25):  # two ways at each step
            a, b = a + a, b + b
        assert surely_alike(a._node(), b._node())
