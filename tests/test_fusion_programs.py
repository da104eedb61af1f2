"""NumPy's answers for the random programs of `fusion_programs`: every policy, tiny blocks, workers, tilings.

The seeds are fixed, and each run draws a part of them; `find` looks through any others.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.protocol import Backend
from spartan_ng.config import FUSIONS, TILINGS, config
from spartan_ng.kernels import blocks
from tests.fusion_programs import Program, numpys, ours, program
from tests.sampling import Some
from tests.test_programs import running_on

_EACH = 150
"""Programs a test."""
_CACHES = (1 << 19, 1 << 8, 1 << 11, 1 << 14)
"""Bytes that a block may take: what a user has, and so few that small arrays are cut, too."""


def check(wanted: Program) -> None:
    """Compare a program's results with NumPy's: shapes, dtypes and values."""
    with np.errstate(all="ignore"), config.override(small_bytes=0):
        expected = wanted.run(np, numpys)
        found = sp.compute(*wanted.run(sp, ours))
    share = 0.01 if wanted.rtol < 1e-6 else 0.1
    for a, b in zip(expected, map(_dense, found), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(
            b, a, rtol=wanted.rtol, atol=wanted.rtol * share * wanted.scale + 1e-12, equal_nan=True
        )


def _dense(value: Any) -> Any:
    return value.toarray() if sparse.issparse(value) else np.asarray(value)


def find(backend: Backend, seeds: Iterable[int], **options: Any) -> None:
    """Check the programs of seeds, each under a drawn policy and size of blocks."""
    with running_on(backend), pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's and ours, of means of nothing
        for seed in seeds:
            drawn = random.Random(seed)
            patch.setattr(blocks, "CACHE_BYTES", drawn.choice(_CACHES))
            tiling = drawn.choice([None, *TILINGS]) if backend.workers > 1 else None
            wanted = program(seed, **options)
            with config.override(fusion=drawn.choice(FUSIONS), tiling=tiling):
                try:
                    check(wanted)
                except Exception as error:
                    error.add_note(f"seed {seed}: {wanted!r}")
                    raise


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"kinds": "sparse"}, {"special": True}], ids=str)
def test_embedded(options: dict[str, Any], some: Some) -> None:
    find(EmbeddedBackend(2), some(range(_EACH), 16), **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"kinds": "sparse"}, {"special": True}], ids=str)
def test_compiled(options: dict[str, Any], some: Some) -> None:
    """A few: each has several loops to compile."""
    with config.override(kernels="compile"):
        find(EmbeddedBackend(2), some(range(5000, 5000 + _EACH // 15), 2), **options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"kinds": "sparse"}, {"special": True}], ids=str)
def test_numexpr(options: dict[str, Any], some: Some) -> None:
    with config.override(kernels="numexpr"):
        find(EmbeddedBackend(2), some(range(7000, 7000 + _EACH // 2), 10), **options)


@pytest.mark.parametrize("workers", [1, 3, 4])
@pytest.mark.parametrize("options", [{}, {"kinds": "sparse"}], ids=str)
def test_workers_and_tilings(workers: int, options: dict[str, Any], some: Some) -> None:
    first = 1000 * workers
    find(SimulatedBackend(workers), some(range(first, first + _EACH // 2), 8), **options)


# --- what was found with them, once ------------------------------------------------------------------------

_DENSE = {
    "n": np.arange(-8.0, 9.0).reshape(17, 1),
    "m": np.eye(8, 17, dtype=np.int8).T,
    "s": np.eye(2) - 2,
    "z": np.full((33, 5), np.nan),
}
_SPARSE = {
    "X": sparse.csr_array(np.triu(np.arange(25.0).reshape(5, 5) % 7 - 3)),
    "L": sparse.csr_array(np.arange(1190).reshape(70, 17) % 3),
}

FOUND = {
    "a value beside another input of as many bytes": ("(m != 0) * n", "n > 0.5"),
    "a stored value that its own pass needs turned": ("s - 1", "p[0].T @ s", "p[1] > s"),
    "a column of a test": ("np.isnan(z)", "np.signbit(-abs(z))"),
    "repeats of a single value": ("np.repeat(np.sum(n), 3, axis=0)",),
    "no rows": ("X[:0]", "X[:, :0] + X[:, :0]", "(X[:0] * 2).sum(axis=0)"),
    "more axes than a sparse array has": (
        "X * np.ones((2, 5, 5))",
        "X @ np.ones((2, 5, 3))",
        "np.ones((2, 3, 5)) @ X",
    ),
    "a matrix beside its product": ("(X @ X.T).T * X", "(X.T @ X) * X", "np.sum((X @ X.T).T * X)"),
    "factors as wide as the matrix": ("X * (X[:, :] @ (X + 1).T)", "X * np.log((X + 9) @ (X + 9).T)"),
    "a stretched sparse row": (
        "X + X[1:2]",
        "X * X[1:2] + X",
        "X * np.outer(X[:, 0], X[0])",
        "np.tile(X[1], 2)",
    ),
    "a sparse array backwards": ("np.flip(L) - np.flip(L).mean()",),
    "half precision": ("np.tanh(X.astype(bool))", "np.sqrt(X.astype('i1') * 0 + 1)"),
    "no product of matrices": ("np.einsum('ij,ij->i', X, X)", "np.einsum('ij,ij->', X, X + 1)"),
}


@pytest.mark.some(24)
@pytest.mark.parametrize("kernels", ["interpret", "numexpr", "compile"])
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("name", FOUND)
def test_found_before(name: str, workers: int, kernels: str) -> None:
    """Each line of `FOUND` was wrong, or failed."""
    texts = FOUND[name]
    expected = _lines(np, texts, {k: x.toarray() for k, x in _SPARSE.items()} | _DENSE)
    backend = SimulatedBackend(workers) if workers else EmbeddedBackend(2)
    tiling, fusion = "column" if workers else None, "cost" if kernels == "compile" else "all"
    options: dict[str, Any] = {"kernels": kernels, "tiling": tiling, "fusion": fusion}
    with running_on(backend), config.override(small_bytes=0, **options):
        found = sp.compute(*_lines(sp, texts, {k: sp.asarray(v) for k, v in (_SPARSE | _DENSE).items()}))
    for a, b in zip(expected, map(_dense, found), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(b, a, rtol=1e-12)


def _lines(xp: Any, texts: tuple[str, ...], arrays: dict[str, Any]) -> list[Any]:
    """The lines' values; `p` are those of the lines before."""
    found: list[Any] = []
    for text in texts:
        found.append(xp.asarray(eval(text, {"np": xp, "p": found, **arrays})))
    return found


def test_a_skewed_array_in_other_shapes() -> None:
    """The rows of a stage are not those of the array that it reads in another shape."""
    value = np.zeros((70, 2))
    value[:3] = 1
    with running_on(SimulatedBackend(3)), config.override(small_bytes=0):
        x = sp.asarray(sparse.csr_array(value))
        assert np.cumsum(value).max() == sp.cumsum(x).max()
