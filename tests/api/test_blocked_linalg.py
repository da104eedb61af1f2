"""Blocked decompositions on workers: NumPy's values, and no more bytes moved than counted beforehand."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.algebra import factorizations
from spartan_ng.config import config
from tests.test_programs import running_on

PANEL = 32
RANDOM = numpy.random.default_rng(11)


class Counting(SimulatedBackend):
    """Workers that count what they receive from each other."""

    moved_bytes = 0

    def run(self, plan, inputs, progress=None):
        """Add a run's bytes up."""
        refs, stats = super().run(plan, inputs, progress)
        self.moved_bytes += stats.bytes_moved
        return refs, stats


@pytest.fixture(autouse=True)
def _small_panels(monkeypatch):
    monkeypatch.setattr(factorizations, "PANEL", PANEL)
    monkeypatch.setattr(factorizations, "BLOCKED", 0)
    monkeypatch.setattr(factorizations, "LARGE", 50)


def moved(workers, call, *matrices):
    """Elements that a worker receives on average, and the result."""
    backend = Counting(workers)
    with running_on(backend), config.override(small_bytes=2048):
        operands = [(np.asarray(m) + 0).persist() for m in matrices]
        backend.moved_bytes = 0
        result = call(*operands)
        np.persist(*(result if isinstance(result, tuple) else (result,)))
        return backend.moved_bytes / 8 / workers, result


# --- bytes -------------------------------------------------------------------------------------------


def panels(n, p):
    """Every panel reaches everybody, twice its corner."""
    return (p - 1) / p * (n * (n + PANEL) / 2 + n * PANEL)


def balance(n, columns, p):
    """As many columns are put together and cut; then columns beside the cuts move as the matrix shrinks."""
    return (p - 1) / p * (2 * n * columns / p + n * n / 4)


def elimination(n, columns, p):
    return panels(n, p) + balance(n, columns, p)


def inverse(n, p):
    """Both halves are cut for themselves at last, and U reaches everybody."""
    return elimination(n, 2 * n, p) + (p - 1) / p * n * n / 2


def triangles(n, p):
    """Those of all groups of rows, to all workers, and Q's small blocks on their way back."""
    return 4 * factorizations.GROUPS * n * n


SQUARE = RANDOM.standard_normal((384, 384))
POSITIVE = SQUARE @ SQUARE.T + 384 * numpy.eye(384)
TALL = RANDOM.standard_normal((40_000, 8))
BOUNDS = {
    "solve": (lambda n, p: elimination(n, n + 1, p), lambda a: np.linalg.solve(a, np.ones((384, 1))), SQUARE),
    "solve many": (
        lambda n, p: elimination(n, n + 64, p) + (p - 1) / p * n * n / 2,
        lambda a: np.linalg.solve(a, a[:, :64]),
        SQUARE,
    ),
    "inv": (inverse, np.linalg.inv, SQUARE),
    "slogdet": (lambda n, p: elimination(n, n, p), np.linalg.slogdet, SQUARE),
    "cholesky": (lambda n, p: elimination(n, n, p), np.linalg.cholesky, POSITIVE),
    "qr": (triangles, np.linalg.qr, TALL),
    "r": (triangles, lambda a: np.linalg.qr(a, "r"), TALL),
    "lstsq": (triangles, lambda a: np.linalg.lstsq(a, a[:, :2])[0], TALL),
    "svd": (triangles, lambda a: np.linalg.svd(a, full_matrices=False), TALL),
    "pinv": (triangles, np.linalg.pinv, TALL),
}


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("workers", [3, 4])
@pytest.mark.parametrize("name", BOUNDS)
def test_no_more_moves_than_counted(name, workers):
    bound, call, matrix = BOUNDS[name]
    elements, _ = moved(workers, call, matrix)
    assert elements <= 1.1 * bound(matrix.shape[1], workers)


@pytest.mark.parametrize("workers", [3, 4])
def test_a_chain_moves_its_smallest_products(workers):
    a, b, c = (RANDOM.standard_normal(s) for s in ((64, 64), (64, 2048), (2048, 32)))
    elements, found = moved(workers, lambda *m: np.linalg.multi_dot(m), a, b, c)
    assert elements <= 64 * 64 + 2 * 64 * 32 + 2048 * 32 / workers
    numpy.testing.assert_allclose(found.compute(), a @ (b @ c), rtol=1e-9, atol=1e-9)


# --- values ------------------------------------------------------------------------------------------


def backward_error(a, x, b):
    """How far x is from solving a system, by the norms of both sides."""
    left, size = numpy.abs(a @ x - b).max(), numpy.abs(a).max() * numpy.abs(x).max() * len(a)
    return left / max(size, numpy.abs(b).max())


def pivots(n):
    """A matrix that elimination without exchanges cannot touch: zeros and tiny numbers on the diagonal."""
    a = RANDOM.standard_normal((n, n))
    a[numpy.arange(n), numpy.arange(n)] = numpy.where(numpy.arange(n) % 2, 0, 1e-14)
    return a


def ill(n):
    """A matrix whose condition is 1e12."""
    u, v = (numpy.linalg.qr(RANDOM.standard_normal((n, n)))[0] for _ in range(2))
    return u * numpy.logspace(0, -12, n) @ v


MATRICES = {
    "random": RANDOM.standard_normal((98, 98)),
    "pivots": pivots(98),
    "ill-conditioned": ill(98),
    "turned": numpy.eye(98)[::-1] + 1e-3 * RANDOM.standard_normal((98, 98)),
    "graded": numpy.logspace(0, 12, 98)[:, None] * RANDOM.standard_normal((98, 98)),
}


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((n, k) for n in MATRICES for k in ("f8", "c16")),
        ("random", "f4"),
        ("graded", "f4"),
        ("pivots", "c8"),
    ],
)
def test_solutions_are_as_good_as_numpys(name, kind):
    a = MATRICES[name].astype(kind)
    if a.dtype.kind == "c":
        a = a + a.dtype.type(1j) * numpy.flip(a, 1) / 2
    for columns in (None, 5, 98):
        b = a[:, 3].copy() if columns is None else numpy.resize(a.T, (98, columns))
        _, x = moved(3, np.linalg.solve, a, b)
        wanted = numpy.linalg.solve(a, b)
        assert (x.shape, x.dtype) == (wanted.shape, wanted.dtype)
        limit = 4 * backward_error(a, wanted, b) + 4 * numpy.finfo(a.dtype).eps
        assert backward_error(a, x.compute(), b) <= limit


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("kind", ["f4", "f8", "c16"])
@pytest.mark.parametrize("name", ["random", "pivots", "turned"])
def test_determinants_and_inverses_are_numpys(name, kind):
    a = MATRICES[name].astype(kind)
    tolerance = 1e-2 if kind == "f4" else 1e-7
    for call in ("slogdet", "inv"):
        _, found = moved(4, getattr(np.linalg, call), a)
        wanted = getattr(numpy.linalg, call)(a)
        for f, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, wanted)), strict=True):
            assert f.dtype == w.dtype
            numpy.testing.assert_allclose(f.compute(), w, tolerance, tolerance)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("place", [0, 70, 97])
def test_singular_matrices_raise_and_have_no_determinant(place):
    a = MATRICES["random"].copy()
    a[:, place] = 0
    for call in (np.linalg.inv, lambda m: np.linalg.solve(m, m[:, :2])):
        with pytest.raises(np.linalg.LinAlgError, match="Singular"):
            moved(3, call, a)
    _, (sign, size) = moved(3, np.linalg.slogdet, a)
    assert (float(sign), float(size)) == (0.0, -numpy.inf)


@pytest.mark.slow
def test_what_is_not_a_number_spreads_as_in_numpy():
    a = MATRICES["random"].copy()
    a[3, 4] = numpy.nan
    _, x = moved(3, np.linalg.solve, a, a[:, 0])
    assert numpy.isnan(numpy.linalg.solve(a, a[:, 0])).all()
    assert numpy.isnan(x.compute()).all()
