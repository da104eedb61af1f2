"""Arrays that a loop brings along together are computed together, whichever is asked for first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.core import forcing
from spartan_ng.api.places.blockwise import on_blocks
from spartan_ng.graph import evaluation
from spartan_ng.graph.node import OPERATORS, Node, topological
from tests.sampling import examples

SIDE = 12


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many operators each evaluation computes."""
    found: list[int] = []
    evaluate = evaluation.evaluate

    def counting(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> Any:
        found.append(sum(n.op in OPERATORS for n in (topological(nodes) if order is None else order)))
        return evaluate(nodes, order)

    with mock.patch.object(forcing, "evaluate", counting):
        yield found


def around(space: Any, u: Any) -> Any:
    return space.roll(u, 1, 0) + space.roll(u, -1, 0) + space.roll(u, 1, 1) + space.roll(u, -1, 1) - 4 * u


def gray_scott(space: Any, state: list[Any]) -> list[Any]:
    u, v = state
    both = u * v * v
    u, v = u + 0.16 * around(space, u) - both + 0.06 * (1 - u), v + 0.08 * around(space, v) + both - 0.12 * v
    return [u, v]


def lorenz(space: Any, state: list[Any]) -> list[Any]:
    x, y, z = state
    dx, dy, dz = y - x, x * (1 - z) - y, x * y - z
    return [x + 0.1 * dx, y + 0.1 * dy, z + 0.1 * dz]


def leapfrog(space: Any, state: list[Any]) -> list[Any]:
    x, v = state
    v = v - 0.1 * space.sin(x)
    return [x + 0.1 * v, v]


LOOPS: dict[str, tuple[int, Callable[[Any, list[Any]], list[Any]]]] = {
    "Gray-Scott": (2, gray_scott),
    "Lorenz": (3, lorenz),
    "leapfrog": (2, leapfrog),
}
ASKS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: float(a.sum()),
    "elements": lambda a: numpy.asarray(a).copy(),
    "persist": lambda a: numpy.asarray(a.persist() if hasattr(a, "persist") else a).copy(),
    "part": lambda a: numpy.asarray(a[2:5, 1]).copy(),
    "least": lambda a: float((a * 2).min()),
}


def states(count: int) -> list[Any]:
    return [*numpy.random.default_rng(count).random((count, SIDE, SIDE))]


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("ask", ["sum", "persist", "least"])
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("turns", [12, 31])
def test_one_after_the_other_takes_no_more_than_all_together(loop: str, ask: str, turns: int) -> None:
    count, step = LOOPS[loop]
    taken = []
    for together in (True, False):
        with np.config.override(small_bytes=0), counted() as operators:
            state = [np.array(a) for a in states(count)]
            for _ in range(turns):
                state = step(np, state)
            if together:
                np.compute(*state)
            for a in state:
                ASKS[ask](a)
        taken.append(sum(operators))
    assert taken[1] <= 1.3 * taken[0], taken


@pytest.mark.slow
@examples(40)
@given(
    st.sampled_from(sorted(LOOPS)),
    st.integers(1, 25),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(sorted(ASKS)), st.integers(0, 9)), max_size=5),
    st.sampled_from([0, SIDE * SIDE * 8]),
)
def test_the_answers_are_numpys(
    loop: str, turns: int, asks: list[tuple[int, str, int]], small_bytes: int
) -> None:
    count, step = LOOPS[loop]
    with np.config.override(small_bytes=small_bytes):
        theirs, ours = states(count), [np.array(a) for a in states(count)]
        kept = []
        for which, ask, more in [(0, "sum", turns), *asks, (1, "elements", 0)]:
            for _ in range(more):
                theirs, ours = step(numpy, theirs), step(np, ours)
            kept.append((theirs[0], ours[0]))
            found, expected = (ASKS[ask](each[which % count]) for each in (ours, theirs))
            numpy.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        ours[0][1:3] = 7.0
        theirs[0][1:3] = 7.0
        for expected, found in [*kept, *zip(theirs, ours, strict=True)]:
            numpy.testing.assert_allclose(numpy.asarray(found), expected, rtol=1e-9, atol=1e-9)


def long_way(turns: int = 40) -> tuple[Any, Any]:
    u, v = (np.array(a) for a in states(2))
    for _ in range(turns):
        u, v = u + 0.1 * v, v - 0.1 * u
    return u, v


def test_what_is_far_from_it_is_not_computed() -> None:
    with np.config.override(small_bytes=0):
        first, _ = long_way(0)
        u, v = first, first + 1
        far = v * 3
        for _ in range(40):
            u, v = u + 0.1 * v, v - 0.1 * u
        own = long_way()[0] + v
        with counted() as operators:
            float(u.sum())
        assert v._cell.value is not None
        assert far._cell.value is None, "it shares nothing but the beginning"
        assert own._cell.value is None, "it would take as long again"
        assert operators[0] <= 40 * 4 + 8


def test_functions_of_the_programs_are_not_called_before_they_are_asked_for() -> None:
    called = []

    def noted(x: Any) -> Any:
        called.append(x.shape)
        return x + 1

    with np.config.override(small_bytes=0):
        u, v = long_way()
        w = on_blocks(noted, [v], "noted")
        called.clear()
        float(u.sum())
        assert not called
        numpy.testing.assert_allclose(numpy.asarray(w), numpy.asarray(v) + 1)
