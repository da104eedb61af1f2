"""Lazy arrays that are written by masks of themselves: answers, and how often they are computed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.core import forcing
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.graph import evaluation
from spartan_ng.graph.node import Node, topological
from tests.test_programs import running_on

SIDE = 24
Space = Any
MASKS: dict[str, Callable[[Space, Any, Any], Any]] = {
    "more": lambda s, d, e: d > 2.0,
    "less": lambda s, d, e: d < -2,
    "between": lambda s, d, e: (d > 1) & (d < 3.5),
    "magnitude": lambda s, d, e: s.abs(d) > 2,
    "no number": lambda s, d, e: s.isnan(d / (d - d[0, 0])) | (d == 1),
    "another's": lambda s, d, e: e > 0,
    "both": lambda s, d, e: (d > 0) & ~(e > 1),
    "turned": lambda s, d, e: d.T > 1,
    "rows": lambda s, d, e: d[:, 1] > 0,
    "sums of rows": lambda s, d, e: d.sum(axis=1) > 0,
    "mean": lambda s, d, e: d > d.mean(),
    "zeros": lambda s, d, e: d * -0.0 == 0,
    "none": lambda s, d, e: d > 1e9,
}
VALUES: dict[str, Callable[[Space, Any, Any, Any, Any], Any]] = {
    "less a number": lambda s, d, m, e, again: d[m] - 4,
    "by its formula": lambda s, d, m, e, again: d[again(s, d, e)] - 4,
    "twice": lambda s, d, m, e, again: d[m] * 0.5 + d[again(s, d, e)],
    "another's": lambda s, d, m, e, again: e[again(s, d, e)] + 1,
    "with another's": lambda s, d, m, e, again: d[m] - e[again(s, d, e)],
    "turned round": lambda s, d, m, e, again: d[again(s, d, e)][::-1],
    "sorted": lambda s, d, m, e, again: s.sort(d[m], axis=0),
    "summed up": lambda s, d, m, e, again: s.cumsum(d[again(s, d, e)], axis=0),
    "ready": lambda s, d, m, e, again: numpy.arange(float(numpy.asarray(d[m]).size)).reshape(
        numpy.asarray(d[m]).shape
    ),
    "number": lambda s, d, m, e, again: 0.25,
    "whole": lambda s, d, m, e, again: (d[m] * 1.5).astype(int),
    "mean": lambda s, d, m, e, again: d[m] - d.mean(),
    "too many": lambda s, d, m, e, again: numpy.arange(3.0),
    "of the next": lambda s, d, m, e, again: d[s.roll(again(s, d, e), 1, 0)],
}
MADE: dict[str, Callable[[Space, Any, Any], Any]] = {
    "product": lambda s, x, y: x * y + 1,
    "differences": lambda s, x, y: x[:, :1] - x[0],
    "turned": lambda s, x, y: (x * y).T - y,
    "root": lambda s, x, y: s.sqrt(s.abs(x)) * y,
    "ready": lambda s, x, y: x.copy(),
    "integers": lambda s, x, y: (x * 3).astype(int),
    "view": lambda s, x, y: (s.concatenate([x, y]) * 2)[1 : SIDE + 1],
    "column order": lambda s, x, y: s.asfortranarray(x) + y,
}


def arrays() -> list[Any]:
    """Multiples of an eighth: sums of them are the same in any order."""
    rng = numpy.random.default_rng(5)
    return [rng.integers(-40, 40, (SIDE, SIDE)) / 8 for _ in range(3)]


def written(space: Space, made: str, lines: Sequence[tuple[str, str, str]]) -> list[Any]:
    """What an array, and others that have something to do with it, are after some writes."""
    x, y, e = (space.array(a) for a in arrays())
    e = e + y
    d = MADE[made](space, x, y)
    before, part, line = d * 2, d[1:, ::2], d.T[3]
    kept = []
    for mask, value, way in lines:
        make = MASKS[mask]
        m = make(space, d, e)
        try:
            new = VALUES[value](space, d, m, e, make)
            if way == "held":
                d[m] = new
            elif way == "in place":
                d[make(space, d, e)] -= new
            elif way == "of a view":
                d[:][make(space, d, e)] = new
            else:
                d[make(space, d, e)] = new
        except (ValueError, TypeError) as error:
            kept.append(isinstance(error, ValueError))
        kept.append(d[::3] + 1 if way == "looked at" else d.sum())
    return [d, before, part, line, x, y, e, m, *kept]


WAYS = ["by formula", "held", "in place", "of a view", "looked at"]
BACKENDS: dict[str, Callable[[], Any]] = {
    "threads": lambda: EmbeddedBackend(2),
    "workers": lambda: SimulatedBackend(3),
}


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_answers_are_numpys(backend: str, request: Any) -> None:
    draw = random.Random(request.config.option.seed)
    with running_on(BACKENDS[backend]()):
        for _ in range(30 if backend == "threads" else 12):
            small_bytes = draw.choice([0, 64, 4096])
            made = draw.choice([*MADE])
            lines = [
                (draw.choice([*MASKS]), draw.choice([*VALUES]), draw.choice(WAYS))
                for _ in range(draw.randint(1, 3))
            ]
            with np.config.override(small_bytes=small_bytes), numpy.errstate(all="ignore"):
                expected, found = (written(s, made, lines) for s in (numpy, np))
                for theirs, ours in zip(expected, found, strict=True):
                    said = f"{small_bytes} {made} {lines}"
                    numpy.testing.assert_array_equal(numpy.asarray(ours), theirs, said, strict=True)


@contextmanager
def counted() -> Iterator[Counter[Any]]:
    """How often each function is computed, in all evaluations; those are counted under their own name."""
    found: Counter[Any] = Counter()
    evaluate = evaluation.evaluate

    def counting(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> Any:
        found["evaluations"] += 1
        found.update(n.fn for n in topological(nodes))
        return evaluate(nodes, order)

    with mock.patch.object(forcing, "evaluate", counting):
        yield found


PASSES = ["less a number", "by its formula", "twice", "another's", "with another's", "number"]
OTHERWISE = [v for v in VALUES if v not in PASSES and v not in ("ready", "too many", "of the next")]
OWN = [mask for mask in MASKS if mask not in ("rows", "sums of rows", "no number", "mean")]


@pytest.mark.some(12)
@pytest.mark.parametrize("small_bytes", [0, 64])
@pytest.mark.parametrize("value", PASSES)
@pytest.mark.parametrize("mask", OWN)
def test_elements_of_one_mask_are_written_in_the_pass_that_makes_them(
    mask: str, value: str, small_bytes: int
) -> None:
    x, y, e = (np.array(a) for a in arrays())
    make = MASKS[mask]
    with np.config.override(small_bytes=small_bytes), counted() as computed:
        d = np.hypot(x, y) - 3
        for _ in range(2):
            d[make(np, d, e)] = VALUES[value](np, d, make(np, d, e), e, make)
        assert not computed, "nobody has asked"
        numpy.asarray(d)
    assert computed["evaluations"] == computed["hypot"] == 1


@pytest.mark.some(12)
@pytest.mark.parametrize("value", OTHERWISE)
@pytest.mark.parametrize("mask", MASKS)
def test_what_is_written_otherwise_is_computed_once(mask: str, value: str) -> None:
    x, y, e = (np.array(a) for a in arrays())
    make = MASKS[mask]
    with np.config.override(small_bytes=64), numpy.errstate(all="ignore"), counted() as computed:
        d = np.hypot(x, y) - 3
        m = make(np, d, e)
        d[m] = VALUES[value](np, d, m, e, make)
        numpy.asarray(d)
    assert computed["hypot"] == 1, computed
