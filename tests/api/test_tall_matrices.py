"""Tall matrices that memory has no room for: as good as NumPy's factors, by any number of groups of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.algebra import factorizations
from spartan_ng.api.algebra.factorizations import is_tall
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

RANDOM = numpy.random.default_rng(3)
SHAPES = [(1200, 12), (1201, 12), (800, 90), (2000, 3), (2001, 1)]
"""Rows that have a divisor near the number of groups, and rows that leave some over."""


def graded(shape: tuple[int, int], least: float) -> Any:
    """Singular values down to `least`."""
    u, _, v = numpy.linalg.svd(RANDOM.standard_normal(shape), full_matrices=False)
    return u * numpy.geomspace(1, least, shape[1]) @ v


MATRICES: dict[str, Callable[[tuple[int, int]], Any]] = {
    "random": lambda shape: RANDOM.standard_normal(shape),
    "ill-conditioned": lambda shape: graded(shape, 1e-13),
    "of integers": lambda shape: RANDOM.integers(-5, 6, shape),
    "single": lambda shape: numpy.asarray(RANDOM.standard_normal(shape), "f4"),
    "complex": lambda shape: RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape),
    "rows of many sizes": lambda shape: (
        RANDOM.standard_normal(shape) * numpy.geomspace(1, 1e9, shape[0])[:, None]
    ),
    "without full rank": lambda shape: (
        RANDOM.standard_normal((shape[0], 1)) @ RANDOM.standard_normal((1, shape[1]))
    ),
    "a column of zeros": lambda shape: (
        RANDOM.standard_normal(shape) * (numpy.arange(shape[1]) != shape[1] // 2)
    ),
}


@contextmanager
def little_memory(workers: int, budget: int = 40_000) -> Iterator[None]:
    backend: Any = EmbeddedBackend(2, budget)
    if workers:
        backend = SimulatedBackend(workers, Profile(memory_bytes=budget, limited=True))
    with running_on(backend), config.override(memory_bytes=budget, small_bytes=0):
        yield


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factorizations, "LARGE", 50)


def room(a: Any) -> int:
    """A budget for groups of few rows of a matrix."""
    return max(40 * a.shape[1] ** 2 * a.itemsize, 20_000)


def outside(a: Any) -> tuple[Any, float]:
    """The same matrix as a source, and its dtype's precision."""
    x = over(Recorder(a))
    assert is_tall(x)
    return x, float(numpy.finfo(numpy.linalg.qr(a[:1])[1].dtype).eps)


def close(found: Any, expected: Any, bound: float) -> None:
    """Alike, as seen from the largest element."""
    found = numpy.asarray(found)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert abs(found - expected).max() <= bound * max(abs(expected).max(), 1e-300)


@pytest.mark.some(4)
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MATRICES)
def test_factors_are_as_good_as_numpys(name: str, shape: tuple[int, int], workers: int) -> None:
    """Q has orthonormal columns however ill-conditioned the matrix is, and Q R is the matrix."""
    a = MATRICES[name](shape)
    with little_memory(workers, room(a)):
        x, eps = outside(a)
        q, r = map(numpy.asarray, np.linalg.qr(x))
        wanted = numpy.linalg.qr(a)
        assert (q.dtype, r.dtype) == (wanted[0].dtype, wanted[1].dtype)
        close(q @ r, a.astype(q.dtype), 100 * eps)
        close(q.conj().T @ q, numpy.eye(shape[1], dtype=q.dtype), 100 * eps)
        assert (r == numpy.triu(r)).all()
        only = numpy.asarray(np.linalg.qr(x, "r"))
        close(abs(only), abs(r), 1000 * eps)
        if name in ("random", "of integers", "single", "complex"):
            close(r, wanted[1], 1000 * eps)
            close(only, wanted[1], 1000 * eps)
            close(q, wanted[0], 1000 * eps)


@pytest.mark.some(4)
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MATRICES)
def test_singular_vectors_are_as_good_as_numpys(name: str, shape: tuple[int, int], workers: int) -> None:
    a = MATRICES[name](shape)
    with little_memory(workers, room(a)):
        x, eps = outside(a)
        u, s, vh = map(numpy.asarray, np.linalg.svd(x, full_matrices=False))
        close(s, numpy.linalg.svd(a, full_matrices=False)[1], 100 * eps)
        close((u * s) @ vh, a.astype(u.dtype), 300 * eps)
        for v in (u, vh.conj().T):
            close(v.conj().T @ v, numpy.eye(shape[1], dtype=u.dtype), 100 * eps)
        least = 1e-6 if name == "ill-conditioned" else 1e-5
        close(np.linalg.pinv(x, rcond=least), numpy.linalg.pinv(a, rcond=least), 1000 * eps / least)
        assert int(np.linalg.matrix_rank(x)) == int(numpy.linalg.matrix_rank(a))


@pytest.mark.some(4)
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", MATRICES)
def test_singular_values_of_wide_matrices_are_those_of_tall_ones(name: str, workers: int) -> None:
    a = MATRICES[name]((1200, 12))
    with little_memory(workers, room(a)):
        x, eps = outside(a)
        wanted = numpy.linalg.svd(a, full_matrices=False)[1]
        for wide in (x.T, over(Recorder(numpy.ascontiguousarray(a.T)))):
            close(np.linalg.svdvals(wide), wanted, 100 * eps)
            assert int(np.linalg.matrix_rank(wide)) == int(numpy.linalg.matrix_rank(a.T))
        close(np.linalg.norm(x.T, "nuc"), wanted.sum(), 100 * eps)


@pytest.mark.some(4)
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("columns", [None, 7, 300])
@pytest.mark.parametrize("shape", SHAPES[:2])
@pytest.mark.parametrize("name", ["random", "ill-conditioned", "single", "complex", "without full rank"])
def test_least_squares_are_as_good_as_numpys(
    name: str, shape: tuple[int, int], columns: int | None, workers: int
) -> None:
    """The right side's columns beside the matrix's, while both together are tall."""
    a = MATRICES[name](shape)
    with little_memory(workers, 300_000):
        x, eps = outside(a)
        b = RANDOM.standard_normal(shape[0] if columns is None else (shape[0], columns))
        least = 1e-6 if name == "ill-conditioned" else 1e-5
        found = np.linalg.lstsq(x, over(Recorder(b)), rcond=least)
        wanted = numpy.linalg.lstsq(a, b, rcond=least)
        close(found[0], wanted[0], 1000 * eps / least)
        assert int(found[2]) == wanted[2]
        close(found[3], wanted[3], 100 * eps)
        if wanted[1].size:
            close(found[1], wanted[1], 1000 * eps)
        assert found[1].shape == wanted[1].shape


CALLS = {
    "qr": lambda x: np.linalg.qr(x)[0].sum(),
    "svd": lambda x: np.linalg.svd(x, full_matrices=False)[0].sum(),
    "pinv": lambda x: np.linalg.pinv(x).sum(),
    "lstsq": lambda x: sum(map(np.sum, np.linalg.lstsq(x, np.ones(len(x)))[:2])),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_read_twice(name: str) -> None:
    source = Recorder(RANDOM.standard_normal((2000, 20)))
    with little_memory(0, room(source.value)):
        assert numpy.isfinite(float(CALLS[name](over(source))))
    assert source.times.max() == 1


WHOLE = {
    "inv": np.linalg.inv,
    "eigvalsh": np.linalg.eigvalsh,
    "svd": np.linalg.svd,
    "solve": lambda x: np.linalg.solve(x, x[:, :1]),
    "cholesky": np.linalg.cholesky,
    "qr": np.linalg.qr,
    "pinv": np.linalg.pinv,
    "lstsq": lambda x: np.linalg.lstsq(x, x[:, 0]),
    "qr of two times as many rows": lambda x: np.linalg.qr(np.concatenate([x, x])),
    "qr of wide groups": lambda x: np.linalg.qr(np.concatenate([x] * 8)),
}


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", WHOLE)
def test_what_is_one_task_is_refused_before_it_begins(
    name: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    source = Recorder(RANDOM.standard_normal((100, 100)))
    told = r"matrix of shape .* bytes, with a budget of 40,000: raise"
    with little_memory(workers), pytest.raises(MemoryBudgetError, match=told):
        WHOLE[name](over(source))
    assert not source.asked
    with little_memory(0):  # what the program holds itself
        a = source.value @ source.value.T + numpy.eye(100)
        numpy.testing.assert_allclose(np.linalg.inv(np.asarray(a)), numpy.linalg.inv(a), rtol=1e-6)


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "qr": lambda x: abs(np.linalg.qr(x)[1]).sum(),
    "svd": lambda x: np.linalg.svd(x, full_matrices=False)[1].sum(),
    "pinv": CALLS["pinv"],
    "lstsq": CALLS["lstsq"],
    "matrix_rank": np.linalg.matrix_rank,
    "cond": np.linalg.cond,
    "norm": lambda x: np.linalg.norm(x, 2),
}
"""What comes of a matrix, whatever the signs of its factors."""


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_no_tall_matrix_is_too_small_for_groups(
    name: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a task has no room for, also far below what workers would share for speed."""
    monkeypatch.undo()
    a = RANDOM.standard_normal((2000, 20))
    expected = float(NUMBERS[name](a))
    with little_memory(workers, room(a)):
        found = float(NUMBERS[name](over(Recorder(a))))
    numpy.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
