"""Sparse arrays on one and on three workers, and arrays that follow the session to another backend."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config

RNG = numpy.random.default_rng(0)
MATRIX = sparse.random_array((300, 200), density=0.05, rng=0).tocsr()
DENSE = MATRIX.toarray()
LEFT, RIGHT = RNG.random((300, 5)), RNG.random((200, 5))
PICKED = numpy.array([[7, 3], [299, 3]])


@pytest.fixture(params=[1, 3])
def workers(request):
    backend = EmbeddedBackend(2) if request.param == 1 else SimulatedBackend(request.param)
    session.use(backend)
    with config.override(small_bytes=0):
        yield request.param
    backend.close()
    session.use(EmbeddedBackend())


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x, u, v: x.T * 2.0, DENSE.T * 2.0),
        (lambda x, u, v: x.T * (v @ u.T), DENSE.T * (RIGHT @ LEFT.T)),
        (lambda x, u, v: (x.T * (v @ u.T)) @ u, (DENSE.T * (RIGHT @ LEFT.T)) @ LEFT),
        (lambda x, u, v: ((x != 0) * (x - u @ v.T)) @ v, ((DENSE != 0) * (DENSE - LEFT @ RIGHT.T)) @ RIGHT),
        (lambda x, u, v: np.take(x, PICKED, axis=0), DENSE[PICKED]),
        (lambda x, u, v: x.reshape(100, 600), DENSE.reshape(100, 600)),
        (lambda x, u, v: x.var(axis=0), DENSE.var(axis=0)),
        (lambda x, u, v: x.ravel().max(), DENSE.max()),
        (lambda x, u, v: x.argmax(axis=1), DENSE.argmax(axis=1)),
        (lambda x, u, v: np.cumsum(x, axis=1), DENSE.cumsum(axis=1)),
        (lambda x, u, v: np.sort(x, axis=0), numpy.sort(DENSE, axis=0)),
        (lambda x, u, v: np.concatenate([x, x * 2.0]), numpy.concatenate([DENSE, DENSE * 2])),
        (lambda x, u, v: np.fold(numpy.hypot, x, 1), numpy.hypot.reduce(DENSE, axis=1)),
        (lambda x, u, v: x.sum(axis=1, where=x > 0.5), DENSE.sum(axis=1, where=DENSE > 0.5)),
        (lambda x, u, v: x[x > 0.5], DENSE[DENSE > 0.5]),
        (lambda x, u, v: x[10:200:3, ::-1], DENSE[10:200:3, ::-1]),
        (lambda x, u, v: np.take(x, PICKED % 200, axis=1), numpy.take(DENSE, PICKED % 200, axis=1)),
    ],
)
def test_programs(workers, program, expected) -> None:
    got = program(np.asarray(MATRIX), np.asarray(LEFT), np.asarray(RIGHT)).compute()
    got = got.toarray() if sparse.issparse(got) else got
    numpy.testing.assert_allclose(got, expected, rtol=1e-12)


def test_rows_of_a_matrix_that_lies_column_by_column_are_looked_up(workers) -> None:
    turned = np.asarray(numpy.asfortranarray(DENSE))
    got = np.take(turned * 1.0, PICKED, axis=0) + np.take(turned.T, PICKED % 200, axis=0)[:, :, :1]
    expected = numpy.take(DENSE, PICKED, axis=0) + numpy.take(DENSE.T, PICKED % 200, axis=0)[:, :, :1]
    numpy.testing.assert_array_equal(got.compute(), expected)


@pytest.mark.parametrize("value", [MATRIX, DENSE])
def test_arrays_follow_the_session(workers, value) -> None:
    x = np.asarray(value)
    first, second = SimulatedBackend(2), SimulatedBackend(5)
    for backend in (first, second, first):
        session.use(backend)
        numpy.testing.assert_allclose((x @ np.asarray(RIGHT)).compute(), DENSE @ RIGHT, rtol=1e-12)
    first.close()
    second.close()
