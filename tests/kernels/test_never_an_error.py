"""What cannot be compiled is interpreted: odd bodies say why in `explain`, and a broken compiler costs
time only."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.compiled.compile import Compiler, compiler
from spartan_ng.starts import CACHE_VARIABLE
from tests.test_programs import running_on

RANDOM = np.random.default_rng(0)
X, Y = RANDOM.random((2000, 40)), RANDOM.random((2000, 40))
S = sparse.random_array((2000, 40), density=0.3, format="csr", rng=RANDOM)
W = RANDOM.random((40, 50))

PROGRAMS = {
    "cells": lambda np, X, Y, S, W: np.exp(X * Y) + X / 2,
    "folds": lambda np, X, Y, S, W: (X * Y).sum(axis=0) + np.abs(X - Y).max(),
    "deviations": lambda np, X, Y, S, W: X.var(axis=0),
    "rows": lambda np, X, Y, S, W: X.T @ (np.exp(X @ W[:, 0]) - 1),
    "softmax": lambda np, X, Y, S, W: np.exp(X - X.max(axis=1, keepdims=True)).sum(axis=1),
    "scans": lambda np, X, Y, S, W: np.cumsum(X * 2, axis=0) + np.cumsum(Y, axis=1),
    "transposed": lambda np, X, Y, S, W: X[:40] + Y[:40].T,
    "masked": lambda np, X, Y, S, W: X[X > 0.5].sum(),
    "non-zeros": lambda np, X, Y, S, W: (S * (X @ Y[:40].T)).sum(),
    "sparse products": lambda np, X, Y, S, W: S @ W,
}
ODD = {
    "complex numbers": (lambda np, X: (X * 1j + X).real, "dtype complex128"),
    "halves": (lambda np, X: X.astype("f2") * X.astype("f2"), "dtype float16"),
    "no formula": (lambda np, X: np.arctan2(X, X + 1) * 2, "NumPy's own loop"),
    "a cast": (lambda np, X: (X * 10).astype("i4") + 1, "a cast from float to integer"),
    "a user's function": (
        lambda np, X: np.map(lambda x: x + 1, X) * 2 if np is sp else (X + 1) * 2,
        "a user's function",
    ),
    "a long body": (lambda np, X: chain(X), "rows take too long to compile"),
}


def chain(x):
    """More rows than are compiled."""
    for _ in range(110):
        x = x * 0.5 + 1
    return x


def check(text, *inputs):
    expected = text(np, *[i.toarray() if sparse.issparse(i) else i for i in inputs])
    for _ in range(2):  # what a first run has learned must not matter
        found = np.asarray(text(sp, *[sp.asarray(i) for i in inputs]))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_broken_compiler_changes_nothing(monkeypatch, tmp_path, name):
    asked = []

    def broken(self, source):
        asked.append(source)
        raise RuntimeError("no compiler today")

    monkeypatch.setattr(compiler, "_kernels", {})
    monkeypatch.setattr(compiler, "_directory", None)  # where others have left theirs
    monkeypatch.setattr(Compiler, "_load", broken)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, kernels="compile"):
        check(PROGRAMS[name], X, Y, S, W)
        if name in ("cells", "softmax", "rows", "non-zeros"):
            explained = str(sp.explain(PROGRAMS[name](sp, *[sp.asarray(i) for i in (X, Y, S, W)])))
            assert "interpreted (compiling failed: RuntimeError: no compiler today)" in explained
    assert asked, "nothing was worth compiling"
    assert all(
        k.failure == "RuntimeError: no compiler today" for k in compiler._kernels.values() if k.requested
    )


@pytest.mark.parametrize("name", ODD)
def test_odd_bodies_are_interpreted_and_say_why(name):
    text, reason = ODD[name]
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, kernels="compile"):
        check(text, X)
        assert reason in str(sp.explain(text(sp, sp.asarray(X))))
