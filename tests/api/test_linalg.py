"""Decompositions against NumPy: stacks, tall matrices, blocked algorithms, on one and three workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.algebra import factorizations
from spartan_ng.config import config
from spartan_ng.kernels import rows, stepwise
from spartan_ng.ops import matrices
from tests.test_programs import running_on

RANDOM = numpy.random.default_rng(0)
SQUARE = RANDOM.random((20, 20))
MATRICES = {
    "tall": RANDOM.random((120, 4)) - 0.3,
    "tall complex": RANDOM.random((120, 4)) - 0.3 + 1j * RANDOM.random((120, 4)),
    "square": SQUARE,
    "positive": SQUARE @ SQUARE.T + numpy.eye(20),
    "stack": RANDOM.random((5, 3, 3)) + 2 * numpy.eye(3),
}
CASES = [
    ("tall", lambda np, a: np.linalg.qr(a)),
    ("tall complex", lambda np, a: np.linalg.qr(a)),
    ("tall", lambda np, a: np.linalg.svd(a, full_matrices=False)),
    ("tall", lambda np, a: np.linalg.pinv(a)),
    ("tall", lambda np, a: np.linalg.lstsq(a, a[:, :2] + 1)),
    ("square", lambda np, a: np.linalg.solve(a, a[:, :3])),
    ("square", lambda np, a: np.linalg.inv(a)),
    ("square", lambda np, a: np.linalg.slogdet(a)),
    ("square", lambda np, a: np.linalg.eigvals(a)[:0]),
    ("positive", lambda np, a: np.linalg.cholesky(a)),
    ("positive", lambda np, a: np.linalg.eigvalsh(a)),
    ("square", lambda np, a: np.linalg.cond(a)),
    ("stack", lambda np, a: np.linalg.inv(a)),
    ("stack", lambda np, a: np.linalg.det(a)),
    ("stack", lambda np, a: np.linalg.solve(a, a[0, :, :2])),
]


@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("workers", [0, 3])
def test_values_are_numpys(case, workers, monkeypatch):
    monkeypatch.setattr(factorizations, "PANEL", 6)
    monkeypatch.setattr(factorizations, "BLOCKED", 0)
    monkeypatch.setattr(factorizations, "LARGE", 50)
    name, call = CASES[case]
    values = MATRICES[name]
    wanted = call(numpy, values)
    if workers:
        with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
            _same(call(np, np.asarray(values)), wanted)
    else:
        _same(call(np, np.asarray(values)), wanted)


def _same(found, wanted):
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            _same(f, w)
        return
    found = numpy.asarray(found)
    assert found.dtype == numpy.asarray(wanted).dtype
    numpy.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9)


def test_failures_raise_at_the_call(monkeypatch):
    monkeypatch.setattr(factorizations, "PANEL", 6)
    monkeypatch.setattr(factorizations, "BLOCKED", 0)
    monkeypatch.setattr(factorizations, "LARGE", 50)
    with running_on(SimulatedBackend(3)), config.override(small_bytes=0):
        for matrix in (np.zeros((20, 20)), np.zeros((4, 3, 3))):
            with pytest.raises(np.linalg.LinAlgError, match="Singular"):
                np.linalg.inv(matrix)
            with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
                np.linalg.cholesky(matrix)
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            np.linalg.inv(np.ones((3, 4)))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["f4", "f8", "c16"])
def test_hermitian_matrices_without_full_rank(n, kind, mode):
    """A zero among the eigenvalues still has a vector on either side."""
    rng = numpy.random.default_rng(n)
    for rank in range(n + 1):
        x = rng.integers(-2, 3, (n, rank)).astype(kind)
        if kind[0] == "c":
            x = x + 1j * rng.integers(-2, 3, x.shape)
        a = (x * rng.choice([-1, 1], rank)) @ x.conj().T
        atol = 1e-4 if kind == "f4" else 1e-10
        u, s, vh = map(numpy.asarray, np.linalg.svd(np.asarray(a), hermitian=True))
        numpy.testing.assert_allclose((u * s) @ vh, a, atol=atol)
        numpy.testing.assert_allclose(vh @ vh.conj().T, numpy.eye(n), atol=atol)
        numpy.testing.assert_allclose(s, numpy.linalg.svd(a, hermitian=True).S, atol=atol)
        found = np.linalg.pinv(np.asarray(a), hermitian=True, rtol=1e-5)
        numpy.testing.assert_allclose(found, numpy.linalg.pinv(a, hermitian=True, rtol=1e-5), atol=atol)
        assert np.linalg.matrix_rank(np.asarray(a), hermitian=True) == numpy.linalg.matrix_rank(
            a, hermitian=True
        )


@pytest.mark.parametrize("rows", [3, 700])
@pytest.mark.parametrize("options", [{}, {"rtol": None}, {"rcond": 1e-12}, {"rtol": 1e-6}])
@pytest.mark.parametrize("least", [1e-3, 1e-9, 1e-13, 1e-14])
def test_what_pinv_takes_for_zero(rows, options, least, mode):
    """Singular values are kept down to NumPy's bound, which is not that of the array API standard."""
    a = numpy.zeros((rows, 2))
    a[0, 0], a[1, 1] = 1, least
    wanted = numpy.linalg.pinv(a, **options)
    found = numpy.asarray(np.linalg.pinv(np.asarray(a), **options))
    numpy.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-9)


PARTS = {
    "qr": lambda np, a: np.linalg.qr(a),
    "eigh": lambda np, a: np.linalg.eigh(a.T @ a),
    "svd": lambda np, a: np.linalg.svd(a, full_matrices=False),
    "slogdet": lambda np, a: np.linalg.slogdet(a.T @ a),
    "lstsq": lambda np, a: np.linalg.lstsq(a, a[:, 0] * 2),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("last_first", [False, True])
def test_a_matrix_is_decomposed_once_whichever_part_is_asked_for_first(
    name: str, last_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    evaluate = matrices.evaluate_matrices

    def counted(name: str, *args: Any) -> Any:
        calls.append(name)
        return evaluate(name, *args)

    for module in (rows, stepwise):
        monkeypatch.setattr(module, "evaluate_matrices", counted)
    numpy.save(tmp_path / "x.npy", numpy.random.default_rng(0).random((5000, 30)))
    wanted = PARTS[name](numpy, numpy.nan_to_num(numpy.load(tmp_path / "x.npy")))
    with config.override(small_bytes=1000):
        found = PARTS[name](np, np.nan_to_num(np.load(tmp_path / "x.npy")))
        parts = [*zip(found, wanted, strict=True)]
        for mine, theirs in reversed(parts) if last_first else parts:
            numpy.testing.assert_allclose(numpy.asarray(mine), theirs, rtol=1e-6, atol=1e-8)
    assert len(calls) == 1, calls


def test_what_one_matrix_is_made_of_is_made_block_by_block(tmp_path: Path) -> None:
    """In the function's own stage, which nothing cuts, each step had a matrix as large."""
    numpy.save(tmp_path / "x.npy", numpy.ones((40_000, 10)))
    x = np.load(tmp_path / "x.npy")
    with config.override(small_bytes=0):
        made = np.linalg.qr(np.sqrt((x - x.mean(axis=0)) / x.std(axis=0) + 1))[0]
        (alone,) = (s for s in np.explain(made).stages if "matrices" in s.operators)
        assert alone.operators == ("matrices",)
        few = np.linalg.qr(np.sqrt(x[:40].reshape(10, 4, 10) + 1))[0]
        assert any({"matrices", "sqrt"} <= {*s.operators} for s in np.explain(few).stages)
