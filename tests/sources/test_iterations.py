"""Loops over what lies outside read each element once an iteration, on any number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import memory
from spartan_ng.api.files.sources import over
from spartan_ng.apps.kmeans import new_centers
from spartan_ng.apps.pca import pca
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

ROWS, COLUMNS, CLUSTERS = 8000, 40, 5
VALUE = numpy.random.default_rng(0).random((ROWS, COLUMNS))
LIMIT = VALUE.nbytes // 4


@pytest.fixture(autouse=True)
def little_at_a_time() -> Iterator[None]:
    with mock.patch.object(memory, "BAND_BYTES", 100_000), config.override(small_bytes=0):
        yield


@pytest.fixture(params=[0, 1, 2, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    n: int = request.param
    profile = Profile(memory_bytes=LIMIT // max(n, 1), limited=True)
    backend: Backend = SimulatedBackend(n, profile) if n else EmbeddedBackend(2, LIMIT)
    with running_on(backend):
        yield n


def _computed(xp: Any, *values: Any) -> Any:
    return values if xp is numpy else np.compute(*values)


def _marks(xp: Any, x: Any, w: Any) -> Any:
    """k-means with a matrix of ones and zeros, which is summed, too."""
    centers = w if w.ndim == 2 else VALUE[:CLUSTERS]
    distances = (centers * centers).sum(axis=1) - 2 * (x @ centers.T)
    marks = (distances.argmin(axis=1)[:, None] == numpy.arange(CLUSTERS)).astype(float)
    sums, counts = _computed(xp, marks.T @ x, marks.sum(axis=0))
    return sums / numpy.maximum(counts, 1)[:, None]


def _labels(xp: Any, x: Any, w: Any) -> Any:
    """k-means with labels."""
    if xp is numpy:
        return _marks(xp, x, w)
    return np.compute(new_centers(x, w if w.ndim == 2 else VALUE[:CLUSTERS])[0])[0]


def _gradients(xp: Any, x: Any, w: Any) -> Any:
    """Logistic regression by gradients."""
    p = 1 / (1 + xp.exp(-(x @ w)))
    (slope,) = _computed(xp, x.T @ (p - (x[:, 0] > 0.5)))
    return w - slope / len(x)


def _components(xp: Any, x: Any, w: Any) -> Any:
    """The mean and the second moments."""
    mean, moments = _computed(xp, x.mean(axis=0), x.T @ x)
    return numpy.linalg.eigvalsh(moments / len(x) - numpy.outer(mean, mean))


STEPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "marks": _marks,
    "labels": _labels,
    "gradients": _gradients,
    "components": _components,
}


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("name", STEPS)
def test_an_iteration_reads_each_element_once(name: str, workers: int) -> None:
    del workers
    source, step = Recorder(VALUE, (200, COLUMNS)), STEPS[name]
    x, found, expected = over(source), numpy.zeros(COLUMNS), numpy.zeros(COLUMNS)
    for n in range(1, 4):
        found, expected = step(np, x, found), step(numpy, VALUE, expected)
        numpy.testing.assert_allclose(found, expected, rtol=1e-7)
        assert (source.times == n).all()
    assert source.largest_bytes <= 100_000


def test_principal_components_read_twice(workers: int) -> None:
    """For the mean, and for the deviations from it."""
    del workers
    source = Recorder(VALUE, (200, COLUMNS))
    found = pca(over(source)).explained_variance
    numpy.testing.assert_allclose(found, numpy.linalg.eigvalsh(numpy.cov(VALUE.T))[::-1], rtol=1e-7)
    assert (source.times == 2).all()
