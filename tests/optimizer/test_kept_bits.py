"""With `config.reproducible` no pass changes a bit of an answer, alone or with others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from spartan_ng.optimizer.pipeline import NAMES
from tests.test_programs import running_on

LENGTH = 70_001
"""More than a unit, and no multiple of anything."""
RNG = numpy.random.default_rng(5)
X = RNG.random(LENGTH)

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "greatest prefix sum": lambda x: np.cumsum(x - 0.5).max(),
    "least prefix sum, in lines": lambda x: np.cumsum(x[1:].reshape(700, 100) - 0.5, axis=1).min(),
    "sum of prefix sums": lambda x: np.cumsum(x * 1e-3).sum(),
    "prefix sums that others read": lambda x: np.cumsum(x - 0.5).max() + np.cumsum(x - 0.5)[-3:],
    "suffix sums": lambda x: np.flip(np.cumsum(np.flip(x))),
    "a lower triangle": lambda x: (x[:400, None] * np.cumsum(np.eye(400), axis=0)).sum(axis=0),
    "a part of a result": lambda x: (x * 3 + np.sqrt(x))[5:60_000:3].sum(),
    "lines by sums of some": lambda x: (
        (rows := x[:69_000].reshape(300, 230)) / rows.sum(axis=1, where=rows > 0.5, keepdims=True)
    ),
    "the same twice": lambda x: (x * 1.1).sum() + (x * 1.1).mean() * (x * 1.1).var(),
}


@pytest.mark.some(8)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_the_bits(name: str, workers: int) -> None:
    names = sorted(NAMES)
    asked = [set(), set(names), *({n} for n in names), *(set(RNG.choice(names, 3)) for _ in range(3))]
    found = set()
    with running_on(SimulatedBackend(workers)), config.override(reproducible=True):
        for disabled in asked:
            with config.override(disabled_passes=disabled):
                found.add(numpy.asarray(PROGRAMS[name](np.asarray(X))).tobytes())
    assert len(found) == 1


def test_extremes_of_prefix_sums_are_those_of_the_prefix_sums() -> None:
    with config.override(reproducible=True):
        for values in (X - 0.5, RNG.standard_normal(LENGTH).astype("f4")):
            sums = np.cumsum(np.asarray(values))
            assert np.cumsum(np.asarray(values)).max() == sums.compute().max() == numpy.cumsum(values).max()


NORMS: dict[str, Callable[[Any], Any]] = {
    "norm": np.linalg.norm,
    "vector_norm": np.linalg.vector_norm,
    "of lines": lambda x: np.linalg.norm(x[1:].reshape(700, 100), axis=1),
    "fro": lambda x: np.linalg.norm(x[1:].reshape(700, 100), "fro"),
    "of a sum": lambda x: np.linalg.norm(x + 1.5),
    "1": lambda x: np.linalg.norm(x, 1),
    "3": lambda x: np.linalg.norm(x, 3),
}


@pytest.mark.parametrize("name", NORMS)
def test_norms_that_are_sums_keep_the_bits_in_every_tier(name: str) -> None:
    """NumPy has a vector's from BLAS, which adds as it likes."""
    found = set()
    for workers in (1, 3):
        for kernels in ("interpret", "compile"):
            asked = config.override(reproducible=True, kernels=kernels)
            with running_on(SimulatedBackend(workers)), asked:
                found.add(numpy.asarray(NORMS[name](np.asarray(X))).tobytes())
    assert len(found) == 1
