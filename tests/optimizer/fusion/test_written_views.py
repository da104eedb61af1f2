"""Parts of views written again and again: every step reads the one before whole, and by its element.

Stages that see one value in two ways are hosts by one of them and may move by the other; each of a plan's
slots is still made once, by a stage that comes before those that read it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a,
    lambda a: a.T,
    lambda a: a.squeeze(),
    lambda a: a.reshape(-1),
    lambda a: a.getfield("i1"),
    lambda a: a[::-1],
    lambda a: a[None],
]
FIRST: list[Callable[[Any, Any], Any]] = [
    lambda np, v: v.sort(axis=-1),
    lambda np, v: np.add(v, -1, out=v, where=numpy.arange(v.shape[-1]) % 2 == 0),
    lambda np, v: v.__iadd__(v[::-1]),
    lambda np, v: v.__setitem__(slice(1, None), 7),
    lambda np, v: v.__imul__(2),
]
AGAIN: list[Callable[[Any], Any]] = [
    lambda v: v.__setitem__(0, v[0] + 1),
    lambda v: v.__setitem__(-1, v[0] - v[-1]),
    lambda v: v[0].__iadd__(1) if v.ndim > 1 else v.__setitem__(0, v[0] + 2),
    lambda v: v.__setitem__(Ellipsis, v + v[0]),
    lambda v: v[..., 1:].__iadd__(3),
]


def program(np: Any, seed: int) -> list[Any]:
    """Arrays after writes through views of each other."""
    draw = random.Random(seed)
    shape = tuple(draw.choice([1, 3, 4]) for _ in range(draw.randint(1, 4)))
    a = np.array(numpy.random.default_rng(seed).integers(-5, 6, (*shape, 4)).astype("i1"))
    shown = [a]
    for _ in range(draw.randint(1, 3)):
        shown.append(draw.choice(VIEWS)(draw.choice(shown)))
        if draw.random() < 0.7 and shown[-1].ndim:
            draw.choice(FIRST)(np, draw.choice(shown))
    for _ in range(draw.randint(1, 4)):
        v = draw.choice(shown)
        step = draw.choice(AGAIN)
        for _ in range(draw.randint(1, 3)):
            step(v)
    return shown


@pytest.mark.some(60)
@pytest.mark.parametrize("seed", range(400))
def test_every_step_is_numpys(seed: int) -> None:
    wanted = program(numpy, seed)
    with config.override(small_bytes=0, kernels="interpret"):
        found = np.compute(*program(np, seed))
    for f, w in zip(found, wanted, strict=True):
        numpy.testing.assert_array_equal(f, w)
