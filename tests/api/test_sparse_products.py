"""Products of two sparse arrays are sparse, in this process and on workers; and what stands on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.graph.node import topological
from spartan_ng.optimizer.rewrite.algebra.table import algebra
from tests.sampling import examples
from tests.test_programs import running_on

KINDS = ("f8", "f4", "c16", "i8", "i2", "?")
FORMATS = ("csr", "csc", "coo")
PRODUCTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a @ b": lambda a, b, w: a @ b,
    "a @ a.T": lambda a, b, w: a @ a.T,
    "b.T @ a.T": lambda a, b, w: b.T @ a.T,
    "(a @ b).T": lambda a, b, w: (a @ b).T,
    "a @ b @ b.T": lambda a, b, w: a @ b @ b.T,
    "(b @ b.T) @ (a.T @ a) @ b": lambda a, b, w: (b @ b.T) @ (a.T @ a) @ b,
    "(-a) @ b": lambda a, b, w: (-a if a.dtype != bool else a) @ b,
    "(a @ b)[1:]": lambda a, b, w: (a @ b)[1:],
}
"""Sparse operands, and sparse results; `w` is dense."""
BEHIND: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product with a vector": lambda a, b, w: a @ b @ w,
    "vector first": lambda a, b, w: w @ b.T @ a.T,
    "columns": lambda a, b, w: a @ b @ numpy.stack([w, w], 1),
    "long": lambda a, b, w: (a @ b @ b.T @ a.T @ a) @ (b @ w),
    "sum": lambda a, b, w: (a @ b).sum(),
    "sums of columns": lambda a, b, w: (a @ b).sum(0),
    "sums of rows": lambda a, b, w: (a @ b).sum(1),
    "row": lambda a, b, w: (a @ b)[0],
    "column": lambda a, b, w: (a @ b)[:, -1],
    "beside a dense one": lambda a, b, w: (a @ b) * w,
    "comparison": lambda a, b, w: (a @ b) > 0,
    "two": lambda a, b, w: (a @ b) + (a @ b) * (a @ b),
}


@contextmanager
def running(workers: int) -> Iterator[None]:
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with config.override(small_bytes=0), running_on(backend):
        yield


@st.composite
def matrices(draw: st.DrawFn, kind: str, shape: tuple[int, int]) -> Any:
    """A sparse matrix in any format, with elements that are stored twice, and zeros that are stored."""
    count = draw(st.integers(0, 2 * sum(shape))) if 0 not in shape else 0
    rng = numpy.random.default_rng(draw(st.integers(0, 1 << 20)))
    values = rng.integers(-2, 3, count).astype(kind)
    places = tuple(rng.integers(0, max(n, 1), count) for n in shape)
    return sparse.coo_array((values, places), shape).asformat(draw(st.sampled_from(FORMATS)))


@st.composite
def operands(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    kind = draw(st.sampled_from(KINDS))
    m, k, n = (draw(st.integers(1, 40)) for _ in range(3))
    w = numpy.random.default_rng(0).integers(-3, 4, n).astype(kind)
    return draw(matrices(kind, (m, k))), draw(matrices(kind, (k, n))), w


def agree(found: Any, expected: Any, is_sparse: bool = False) -> None:
    found = found.compute() if isinstance(found, np.ndarray) else found
    assert sparse.issparse(found) or not is_sparse
    found, expected = (x.toarray() if sparse.issparse(x) else numpy.asarray(x) for x in (found, expected))
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    numpy.testing.assert_allclose(found, expected, rtol=1e-5)


@examples(200)
@given(operands(), st.sampled_from([*PRODUCTS]), st.sampled_from([1, 1, 2, 4]))
def test_products_are_sparse(drawn: tuple[Any, Any, Any], name: str, workers: int) -> None:
    program = PRODUCTS[name]
    expected = program(*(x.toarray() if sparse.issparse(x) else x for x in drawn))
    with running(workers):
        agree(program(*map(np.asarray, drawn)), expected, is_sparse=True)


@pytest.mark.slow
@examples(200)
@given(operands(), st.sampled_from([*BEHIND]), st.sampled_from([1, 1, 2, 4]))
def test_what_stands_on_them(drawn: tuple[Any, Any, Any], name: str, workers: int) -> None:
    program = BEHIND[name]
    expected = program(*(x.toarray() if sparse.issparse(x) else x for x in drawn))
    with running(workers):
        agree(program(*map(np.asarray, drawn)), expected)


@examples(60)
@given(operands(), st.sampled_from([*PRODUCTS, *BEHIND]))
def test_small_ones_are_computed_at_once(drawn: tuple[Any, Any, Any], name: str) -> None:
    program = (PRODUCTS | BEHIND)[name]
    expected = program(*(x.toarray() if sparse.issparse(x) else x for x in drawn))
    agree(program(*map(np.asarray, drawn)), expected, is_sparse=name in PRODUCTS)


@examples(60)
@given(operands(), st.sampled_from([1, 2, 4]))
def test_it_stores_what_scipy_does(drawn: tuple[Any, Any, Any], workers: int) -> None:
    """Nothing where terms have cancelled out, or an operand stores zeros."""
    a, b, _ = (x.copy() for x in drawn)
    for x in (a, b):
        x.sum_duplicates()
    expected = a.tocsr() @ b.tocsr()
    with running(workers):
        found = (np.asarray(drawn[0]) @ np.asarray(drawn[1])).compute()
    assert found.format == "csr"
    assert found.indices.dtype == found.indptr.dtype == numpy.int32
    for x in (found, expected):
        x.sort_indices()
    assert found.nnz == expected.nnz == len(found.data)
    numpy.testing.assert_array_equal(found.indices, expected.indices)
    numpy.testing.assert_array_equal(found.indptr, expected.indptr)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)])
def test_empty_ones(workers: int, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = sparse.csr_array((m, k)), sparse.csr_array((k, n))
    with running(workers):
        agree(np.asarray(a) @ np.asarray(b), numpy.zeros((m, n)))


def test_wide_indices() -> None:
    a = sparse.random_array((40, 40), density=0.2, rng=0).tocsr()
    wide = a.copy()
    wide.indices, wide.indptr = wide.indices.astype(numpy.int64), wide.indptr.astype(numpy.int64)
    with running(1):
        agree(np.asarray(wide) @ np.asarray(a), a.toarray() @ a.toarray(), is_sparse=True)


@pytest.mark.parametrize("workers", [1, 4])
def test_many_runs_of_rows_fill_one_array(workers: int) -> None:
    """Rows of very different lengths, and runs in which terms cancel out before others."""
    rng = numpy.random.default_rng(1)
    n, count = 300, 40_000
    rows = (n * rng.random(count) ** 3).astype(int)
    a = sparse.coo_array(
        (rng.integers(-1, 2, count).astype(float), (rows, rng.integers(0, n, count))), (n, n)
    )
    a = a.tocsr()
    with running(workers):
        found = (np.asarray(a) @ np.asarray(a)).compute()
    expected = a @ a
    assert found.nnz == expected.nnz
    numpy.testing.assert_array_equal(found.toarray(), expected.toarray())


def test_large_ones_never_are_dense() -> None:
    """A tenth of a million rows and columns, which were refused for 80 GB."""
    n, count = 100_000, 100_000
    rng = numpy.random.default_rng(0)
    a = sparse.csr_array((rng.random(count), rng.integers(0, n, (2, count))), (n, n))
    found, expected = np.asarray(a) @ np.asarray(a), a @ a
    assert float(found.sum()) == pytest.approx(expected.sum())
    agree(found[:10], expected[:10])
    agree((found @ np.asarray(a)) @ np.ones(n), expected @ (a @ numpy.ones(n)))


def test_a_chain_takes_the_vector_first() -> None:
    a = sparse.random_array((500, 500), density=0.05, rng=0).tocsr()
    x, v = np.asarray(a), np.asarray(numpy.arange(500.0))
    for program in (x @ x @ x @ v, v @ x @ x.T @ x, x @ (x.T @ (x @ v))):
        (rewritten,) = algebra([program._node()])
        assert all(n.format == "dense" for n in topological([rewritten]) if n.fn == "contract")
    short, long = np.asarray(a[:3]), np.asarray(a[:, :3].tocsr())  # the product of both is the smaller
    (kept,) = algebra([(short @ x @ long @ np.ones((3, 400)))._node()])
    assert any(n.format == "csr" for n in topological([kept]) if n.fn == "contract")
    with running(1):
        agree(x @ x @ x @ v, a @ (a @ (a @ numpy.arange(500.0))))


def test_memory_is_asked_for_before_anything_is_multiplied() -> None:
    a = sparse.random_array((2000, 2000), density=0.05, rng=0).tocsr()
    with config.override(memory_bytes=1 << 24, small_bytes=0), running_on(EmbeddedBackend(2, 1 << 24)):
        x = np.asarray(a)
        with pytest.raises(np.errors.MemoryBudgetError, match="non-zeros"):
            (x @ x).compute()
        agree((x @ x) @ np.ones(2000), a @ (a @ numpy.ones(2000)))
