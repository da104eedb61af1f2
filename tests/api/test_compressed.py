"""Compressed columns: NumPy's answers on every layout, in every tiling; and the bytes they take."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.compressed import CompressedMatrix, compress, compress_columns
from spartan_ng.config import TILINGS, config
from spartan_ng.errors import ShapeError
from spartan_ng.wire.values import pack, unpack
from tests.sampling import examples
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
        X = sp.compress_columns(values, always=True)
        assert X.format == "compressed"
        found = text(sp, X, sp.asarray(u), sp.asarray(v))
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_numpys_answers(name):
    with running_on(EmbeddedBackend(2)):
        check(EXPRESSIONS[name], table())


@pytest.mark.some(50)
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
    X = sp.compress_columns(values, always=True)
    with config.override(small_bytes=0):
        np.testing.assert_array_equal(np.asarray(X), values)
        for axis in (0, 1, None):
            np.testing.assert_array_equal(np.asarray((X * 2).sum(axis=axis)), (values * 2).sum(axis=axis))
        np.testing.assert_array_equal(np.asarray(X @ np.ones(shape[1])), values.sum(axis=1))
        np.testing.assert_array_equal(np.asarray(np.ones(shape[0]) @ X), values.sum(axis=0))


def test_what_gains_too_little_stays_dense_and_says_so():
    values = np.random.default_rng(0).random((2000, 3))
    with pytest.warns(sp.CompressionWarning, match=r"48,000 bytes stays dense: .* take 48,000 bytes"):
        X = sp.compress_columns(values)
    assert X.format == "dense"
    values[:, 0] = 1
    with pytest.warns(sp.CompressionWarning, match="stays dense"):
        sp.compress_columns(values)  # two thirds of the columns
    values[:, 1] = 2
    assert sp.compress_columns(values).format == "compressed"


@pytest.mark.parametrize(("cache_bytes", "form"), [(1 << 25, "dense"), (1 << 22, "compressed")])
def test_what_the_cache_holds_stays_dense(cache_bytes, form, monkeypatch):
    monkeypatch.setattr(compress, "_cache_bytes", lambda: cache_bytes)
    values = np.random.default_rng(0).integers(0, 256, (400_000, 3)).astype(float)
    told = pytest.warns(
        sp.CompressionWarning, match=r"9,600,000 bytes stays .*, and products 3\.\d times as long"
    )
    with told if form == "dense" else nullcontext():
        assert sp.compress_columns(values).format == form


def explained(node):
    return [tier for stage in sp.explain(node).stages for tier in stage.tiers]


def test_explain_names_the_way():
    X, u, v = sp.compress_columns(table()), sp.asarray(np.ones(ROWS)), sp.asarray(np.ones(7))
    with config.override(small_bytes=0):
        for words in (sp.sum(X**2), X.max(axis=0), sp.exp(X).sum(axis=0)):
            assert explained(words) == ["over distinct values and their counts"]
        for looked_up in (X @ v, u @ X, X.T @ (X @ v), X @ v + 1, (X + 1).sum(axis=1)):
            assert explained(looked_up) == [
                "over distinct values, then in compiled loops over the codes of rows"
            ]
        for elements in (X * u[:, None], X.argmax(axis=1), X.max(axis=1)):
            assert explained(elements) == ["on elements, decompressed block by block"]


def test_only_matrices():
    with pytest.raises(ShapeError, match=r"shape \(3,\) does not have rows and columns"):
        sp.compress_columns(np.ones(3))


def test_travels():
    matrix = compress_columns(table())
    matrix.fold("add", (0,), matrix.dtype)  # what it remembers stays here
    back = unpack(pack(matrix))
    assert isinstance(back, CompressedMatrix)
    np.testing.assert_array_equal(back.toarray(), table())


@examples(60)
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


KINDS = {
    "constant": lambda random, rows: np.full(rows, 3.0),
    "zeros": lambda random, rows: np.zeros(rows),
    "runs": lambda random, rows: np.repeat(random.integers(0, 5, 1 + rows // 9), 9)[:rows] * 1.0,
    "sorted": lambda random, rows: np.sort(random.integers(0, 60, rows)) * 1.0,
    "few": lambda random, rows: random.integers(0, 4, rows) - 1.5,
    "rare": lambda random, rows: (random.random(rows) < 0.05) * random.integers(1, 4, rows) * 1.0,
    "many": lambda random, rows: random.integers(0, 400, rows) * 1.0,
    "unique": lambda random, rows: random.random(rows) * 100,
    "nan": lambda random, rows: np.where(random.random(rows) < 0.1, np.nan, 1.0),
    "infinite": lambda random, rows: np.where(random.random(rows) < 0.1, np.inf, -0.0),
}
ANY_TYPE = {
    "squares": lambda np, X, u, v: np.sum(X * X),
    "columns": lambda np, X, u, v: X.sum(axis=0),
    "rows": lambda np, X, u, v: X.sum(axis=1),
    "largest": lambda np, X, u, v: X.max(axis=0),
    "least": lambda np, X, u, v: X[3:].min(),
    "largest of rows": lambda np, X, u, v: X.max(axis=1),
    "mean": lambda np, X, u, v: X.mean(axis=0),
    "right": lambda np, X, u, v: X[2:] @ v,
    "left": lambda np, X, u, v: u[1:] @ X[1:],
    "both": lambda np, X, u, v: X.T @ (X @ v),
    "matrix": lambda np, X, u, v: X @ np.stack([v, v, v], axis=1),
    "from the left": lambda np, X, u, v: np.stack([u, u]) @ X,
    "with a vector": lambda np, X, u, v: X @ v + u,
    "with a matrix": lambda np, X, u, v: (X * u[:, None]).sum(axis=0),
    "itself": lambda np, X, u, v: X + X,
    "nothing": lambda np, X, u, v: X == 1,
}


DTYPES = ["?", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8"]
PRODUCTS = ["right", "left", "both", "matrix", "from the left"]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@examples(150)
@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5),
    dtype=st.sampled_from(DTYPES),
    rows=st.sampled_from([4, 50, 3000]),
    name=st.sampled_from(sorted(ANY_TYPE)),
    seed=st.integers(0, 99),
    kernels=st.sampled_from(["compile", "interpret"]),
    workers=st.sampled_from([1, 3]),
)
def test_any_columns_of_any_type(kinds, dtype, rows, name, seed, kernels, workers):
    check_as_numpy(kinds, dtype, rows, name, seed, kernels, workers)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@examples(100)
@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), max_size=3),
    dtype=st.sampled_from(["f2", "f4", "f8"]),
    rows=st.sampled_from([4, 50, 3000]),
    name=st.sampled_from(PRODUCTS),
    seed=st.integers(0, 99),
    kernels=st.sampled_from(["compile", "interpret"]),
    workers=st.sampled_from([1, 3]),
)
def test_products_of_infinite_words_and_zeros(kinds, dtype, rows, name, seed, kernels, workers):
    """They are NaN, though a tuple's sum is not zero."""
    check_as_numpy([*kinds, "infinite"], dtype, rows, name, seed, kernels, workers)


def check_as_numpy(kinds, dtype, rows, name, seed, kernels, workers):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind != "f":
        kinds = [k if k not in ("nan", "infinite") else "few" for k in kinds]
    values = np.column_stack([KINDS[k](random, rows) for k in kinds])
    values = np.abs(values).astype(dtype) if dtype[0] == "u" else values.astype(dtype)
    u, v = random.integers(0, 5, rows).astype(dtype), random.integers(0, 5, len(kinds)).astype(dtype)
    with np.errstate(all="ignore"):
        expected = ANY_TYPE[name](np, values, u, v)
        exact = ANY_TYPE[name](np, *(a.astype(float) for a in (values, u, v))).astype(expected.dtype)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0, kernels=kernels), np.errstate(all="ignore"):
        X = sp.compress_columns(values, always=True)
        found = ANY_TYPE[name](sp, X, sp.asarray(u), sp.asarray(v))
        assert found.dtype == expected.dtype
        rtol = {"f2": 3e-2, "f4": 1e-4, "f8": 1e-11}.get(dtype, 1e-13)
        if expected.dtype == np.float16:  # NumPy adds lines one to the other: its sums of threes stay at 8192
            found = np.asarray(found)
            near = np.isclose(found, exact, rtol, rtol, equal_nan=True)
            assert (near | (abs(found - exact) <= abs(expected - exact))).all()
        else:
            np.testing.assert_allclose(np.asarray(found), expected, rtol=rtol, atol=rtol)


def test_threads_that_ask_together_share_what_is_made():
    coding, barrier = compress_columns(table()).coding, Barrier(2)

    def make():
        barrier.wait()
        return object()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: coding.remembered("test", make), range(2))
    assert first is second
