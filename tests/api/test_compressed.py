"""Compressed columns: NumPy's answers on every layout, in every tiling; and the bytes they take."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.compressed import CompressedMatrix, compress_columns
from spartan_ng.config import TILINGS, config
from spartan_ng.errors import ShapeError
from spartan_ng.wire.codec import decode, encode
from tests.test_programs import running_on

ROWS = 3000


def table(rows=ROWS, seed=0):
    """Columns for each layout: codes, offsets, runs, nothing repeated, one value, and correlated ones."""
    random = np.random.default_rng(seed)
    few = random.integers(0, 5, rows)
    rare = (random.random(rows) < 0.01) * random.integers(1, 4, rows)
    runs = np.sort(random.integers(0, 9, rows))
    columns = [few, rare, runs, random.random(rows), np.full(rows, 2.5), few * 2 + 1, -0.0 * (few > 2)]
    return np.column_stack(columns).astype(float)


EXPRESSIONS = {
    "elements": lambda np, X, u, v: X + 0,
    "sum of squares": lambda np, X, u, v: np.sum(X**2),
    "sums of columns": lambda np, X, u, v: np.exp(X * 0.5).sum(axis=0),
    "sums of rows": lambda np, X, u, v: (X + 1).sum(axis=1),
    "extremes": lambda np, X, u, v: X.max(axis=0) - X.min(axis=0) + X.max(),
    "mean and variance": lambda np, X, u, v: X.var(axis=0) + X.mean(),
    "product with a vector": lambda np, X, u, v: X @ v,
    "product from the left": lambda np, X, u, v: u @ X,
    "transposed": lambda np, X, u, v: X.T @ u,
    "both": lambda np, X, u, v: X.T @ (X @ v),
    "a function's product": lambda np, X, u, v: np.tanh(X - 0.5) @ v,
    "product with a matrix": lambda np, X, u, v: X @ np.outer(v, v),
    "with a dense matrix": lambda np, X, u, v: (X * (X + u[:, None])).sum(axis=0),
    "rows": lambda np, X, u, v: X[10:2000] @ v,
    "some": lambda np, X, u, v: X[::7, 1:4] * 2,
    "columns": lambda np, X, u, v: X[:, 2:5].sum(axis=0),
    "sorted": lambda np, X, u, v: np.sort(X, axis=0),
    "scanned": lambda np, X, u, v: np.cumsum(X, axis=0),
    "looked up": lambda np, X, u, v: X[[5, 1, 2999, 5]],
    "reshaped": lambda np, X, u, v: X.reshape(-1, 2, 7) + 1,
    "broadcast": lambda np, X, u, v: np.broadcast_to(X, (2, *X.shape)) * 2,
    "put together": lambda np, X, u, v: np.concatenate([X, X * 2]),
    "written to": lambda np, X, u, v: np.where(X > 1, 0, X),
    "a user's": lambda np, X, u, v: np.linalg.norm(X, axis=1),
    "masked": lambda np, X, u, v: X[X > 1].sum(),
    "scaled columns": lambda np, X, u, v: (X * v).sum(axis=1),
}


def check(text, values, rtol=1e-10):
    random = np.random.default_rng(1)
    u, v = random.random(values.shape[0]), random.random(values.shape[1])
    expected = text(np, values, u, v)
    with config.override(small_bytes=0):
        X = sp.compress_columns(values)
        assert X.format == "compressed"
        found = text(sp, X, sp.asarray(u), sp.asarray(v))
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_numpys_answers(name):
    with running_on(EmbeddedBackend(2)):
        check(EXPRESSIONS[name], table())


@pytest.mark.parametrize("tiling", [None, *TILINGS])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_layout_changes_nothing(name, tiling):
    with running_on(SimulatedBackend(3)), config.override(tiling=tiling):
        check(EXPRESSIONS[name], table())


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1", "?", "c16"])
@pytest.mark.parametrize("name", ["elements", "product with a vector", "transposed", "sums of columns"])
def test_dtypes(name, dtype):
    values = np.round(table()).astype(dtype)
    check(EXPRESSIONS[name], values, rtol=1e-4 if dtype in ("f4", "u1", "?") else 1e-10)


def test_each_layout_is_chosen_where_it_is_smallest():
    matrix = compress_columns(table())
    names = {c: g.name for g in matrix.groups for c in g.columns}
    assert [names.get(c, "plain") for c in (0, 1, 2, 3)] == ["DDC", "OLE", "RLE", "plain"]
    assert matrix.described() == "RLE 3, OLE 1, DDC 2, plain 1"
    assert any({0, 5} <= set(g.columns) for g in matrix.groups)  # one determines the other
    assert matrix.nbytes < table().nbytes / 3


def test_elements_are_kept_bit_by_bit():
    values = table()
    values[5, 3], values[7, 0], values[9, 1] = np.nan, np.inf, -0.0
    assert compress_columns(values).toarray().tobytes() == values.tobytes()


def test_what_is_not_in_a_part_of_the_rows_does_not_count():
    values = np.zeros((4000, 2))
    values[:10, 0] = np.inf
    with running_on(SimulatedBackend(3)):
        check(lambda np, X, u, v: X[2000:].sum(axis=0), values)
        check(lambda np, X, u, v: X[2000:].T @ u[2000:], values)
        check(lambda np, X, u, v: X[2000:].max(axis=0), values)


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (5, 1), (3, 0)])
def test_small_shapes(shape):
    values = np.ones(shape)
    np.testing.assert_array_equal(np.asarray(sp.compress_columns(values)), values)
    np.testing.assert_array_equal(np.asarray(sp.compress_columns(values).sum(axis=0)), values.sum(axis=0))


def test_only_matrices():
    with pytest.raises(ShapeError, match=r"shape \(3,\) does not have rows and columns"):
        sp.compress_columns(np.ones(3))


def test_travels():
    matrix = compress_columns(table())
    matrix.fold("add", (0,), matrix.dtype)  # what it remembers stays here
    back = decode([bytes(f) for f in encode(matrix)])
    assert isinstance(back, CompressedMatrix)
    np.testing.assert_array_equal(back.toarray(), table())


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(1, 200),
    cut=st.tuples(st.integers(0, 200), st.integers(0, 200)),
    distinct=st.sampled_from([1, 2, 7, 300]),
)
def test_parts(seed, rows, cut, distinct):
    random = np.random.default_rng(seed)
    values = random.integers(0, distinct, (rows, 3)) * random.integers(0, 2, (rows, 1)) * 1.0
    values[:, 1].sort()
    lo, hi = sorted(min(c, rows) for c in cut)
    part = compress_columns(values)[lo:hi]
    expected = values[lo:hi]
    np.testing.assert_array_equal(part.toarray(), expected)
    if hi > lo:
        np.testing.assert_allclose(part.fold("add", (0,), np.dtype(float)), expected.sum(axis=0))
        np.testing.assert_allclose(part.T @ np.ones(hi - lo), expected.sum(axis=0))
        np.testing.assert_allclose(part @ np.ones(3), expected.sum(axis=1))
