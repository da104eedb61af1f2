"""A part of what a seeded generator draws, or of a range, costs that part, however large the whole is. It has
NumPy's numbers at their places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.ops import random
from tests.sampling import examples
from tests.test_programs import running_on

N = 10**6
BUDGET = 8_000_000


def drawn(at: int, count: int) -> Any:
    """Doubles of the stream from a place on."""
    generator = numpy.random.default_rng(0)
    generator.bit_generator.advance(at)  # type: ignore[attr-defined]
    return generator.random(count)


def rows(*numbers: int) -> Any:
    return numpy.stack([drawn(k * N, N) for k in numbers])


def large(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape)


PARTS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "corner": (lambda: large(N, N)[:3, :3], lambda: rows(0, 1, 2)[:, :3]),
    "end": (lambda: large(N, N)[-2:, ::-250_000], lambda: rows(N - 2, N - 1)[:, ::-250_000]),
    "row": (lambda: large(N, N)[77], lambda: drawn(77 * N, N)),
    "column": (lambda: large(N, N)[:50:7, 5], lambda: rows(*range(0, 50, 7))[:, 5]),
    "element": (lambda: large(N, N)[5, 6], lambda: rows(5)[0, 6]),
    "of a line": (lambda: large(N * N)[N * 9 :: N * 10**5], lambda: rows(*range(9, N, 10**5))[:, 0]),
    "of what is computed": (lambda: (large(N, N) * 2 + 1)[5, ::1000], lambda: rows(5)[0, ::1000] * 2 + 1),
    "of another shape": (lambda: large(N * N).reshape(N, N)[5, :9], lambda: rows(5)[0, :9]),
    "folded": (
        lambda: large(N, N)[::200_000].mean(axis=1),
        lambda: rows(*range(0, N, 200_000)).mean(axis=1),
    ),
    "uniform": (
        lambda: np.random.default_rng(0).uniform(-1, 1, (N, N))[5, :9],
        lambda: -1 + 2 * rows(5)[0, :9],
    ),
    "end of a range": (lambda: np.arange(N * N)[-5:], lambda: numpy.arange(N * N - 5, N * N)),
    "steps of a range": (lambda: np.arange(N * N)[::N].mean(), lambda: numpy.arange(0, N * N, N).mean()),
    "between two ends": (
        lambda: np.linspace(0, 1, N * N + 1)[:: -N * 10**5],
        lambda: numpy.linspace(1, 0, 11),
    ),
    "end of what is between": (lambda: np.linspace(0, 3, N * N)[-1:], lambda: numpy.array([3.0])),
    "by ratios": (lambda: np.geomspace(1, 32, 5 * N * N + 1)[:: N * N], lambda: 2.0 ** numpy.arange(6)),
    "by powers": (lambda: np.logspace(0, 5, 5 * N * N + 1)[:: N * N], lambda: 10.0 ** numpy.arange(6)),
    "floats": (lambda: np.arange(0.5, N * N, 2)[7::-3], lambda: numpy.arange(0.5, 30, 2)[7::-3]),
    "range in another shape": (
        lambda: (np.arange(N * N) * 2).reshape(N, N)[5:9:2, ::-100_000],
        lambda: (numpy.arange(5, 9, 2)[:, None] * N + numpy.arange(N)[::-100_000]) * 2,
    ),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_terabytes_is_made_alone(name: str, workers: int) -> None:
    """In little memory, and with few draws for what is not asked for."""
    ours, numpys = PARTS[name]
    counts: list[int] = []
    row = random.DISTRIBUTIONS["random"]

    def counted(generator: Any, shape: Any, *rest: Any) -> Any:
        counts.append(int(numpy.prod(shape)))
        return row.draw(generator, shape, *rest)

    rows_of = {n: mock.Mock(draw=counted) if n == "random" else r for n, r in random.DISTRIBUTIONS.items()}
    backend: Any = SimulatedBackend(workers) if workers else EmbeddedBackend(2, BUDGET)
    patched = mock.patch.object(random, "DISTRIBUTIONS", rows_of)
    with np.config.override(memory_bytes=BUDGET), running_on(backend), patched:
        found = numpy.asarray(ours())
    numpy.testing.assert_allclose(found, numpys(), rtol=1e-14)
    assert sum(counts) <= 6 * N


@given(
    st.lists(st.sampled_from([1, 2, 5, 30, 700]), min_size=1, max_size=3),
    st.sampled_from(["random", "uniform", "arange", "reshaped", "floats", "blocks"]),
    st.data(),
)
@examples(40)
def test_any_part_of_what_is_made(shape: list[int], kind: str, data: Any) -> None:
    n = int(numpy.prod(shape))
    line: Any = {
        "random": lambda xp: xp.random.default_rng(1).random(shape),
        "uniform": lambda xp: xp.random.default_rng(1).uniform(2, 3, shape),
        "arange": lambda xp: xp.arange(n).reshape(shape) * 3,
        "reshaped": lambda xp: (xp.random.default_rng(1).random(n) + 1).reshape(shape),
        "floats": lambda xp: xp.arange(-1.0, n * 0.5 - 1, 0.5).reshape(shape),
    }
    key = tuple(
        slice(*sorted(data.draw(st.tuples(st.integers(0, k), st.integers(0, k)))))
        if data.draw(st.booleans())
        else slice(None, None, data.draw(st.sampled_from([1, 2, 7, -1, -3])))
        for k in shape
    )
    with np.config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        if kind == "blocks":
            x = np.random.default_rng().normal(size=shape)
            found, wanted = numpy.asarray(x[key] * 1), numpy.asarray(x)[key]
        else:
            found, wanted = numpy.asarray(line[kind](np)[key]), line[kind](numpy)[key]
    numpy.testing.assert_array_equal(found, wanted)


def test_a_part_of_what_is_drawn_one_by_one_takes_the_way_to_it() -> None:
    """And a walk that memory has no room to keep is none."""
    with np.config.override(memory_bytes=BUDGET):
        x, y = np.random.default_rng(0).normal(size=(N, N)), numpy.random.default_rng(0).normal(size=3 * N)
        numpy.testing.assert_array_equal(x[2, -5:], y[-5:])
        numpy.testing.assert_allclose(x[:3:2].sum(axis=1), y.reshape(3, N)[::2].sum(axis=1))
        with pytest.raises(MemoryBudgetError, match=r"8,000,000,000,000 bytes"):
            x.persist()
