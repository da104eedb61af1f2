"""The compiled product of a CSR matrix and a dense one, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from spartan_ng.config import config
from spartan_ng.kernels.compiled import sparse_product
from spartan_ng.kernels.compiled.sparse_product import multiply, prepare


@pytest.fixture
def operands() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    a = sparse.random_array((900, 700), density=0.1, format="csr", rng=rng)
    return a, rng.uniform(-1, 1, (700, 33)), rng.uniform(-1, 1, (900, 33))


def test_both_ways(operands: tuple[Any, Any, Any]) -> None:
    a, b, c = operands
    with config.override(kernels="compile"):
        np.testing.assert_allclose(multiply(a, b, False), a @ b, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(multiply(a, c, True), a.T @ c, rtol=1e-12, atol=1e-12)


def test_repeated_columns_and_empty_rows() -> None:
    rng = np.random.default_rng(1)
    starts = np.array([0, 0, 5, 5, 1200, 40_000], np.int32)
    a = sparse.csr_array((rng.random(40_000), rng.integers(0, 7, 40_000, np.int32), starts), shape=(5, 7))
    with config.override(kernels="compile"):
        for b, turned in ((rng.random((7, 50)), False), (rng.random((5, 50)), True)):
            np.testing.assert_allclose(multiply(a, b, turned), (a.T if turned else a) @ b, rtol=1e-10)


def test_ranges_do_not_change_the_result(operands: tuple[Any, Any, Any]) -> None:
    a, b, c = operands
    with config.override(kernels="compile"):
        for x, turned in ((b, False), (np.asfortranarray(c), True)):
            found = prepare(a, x, turned, {})
            assert found is not None
            whole, pieces = np.empty(found.shape), np.empty(found.shape)
            flipped = np.empty(found.shape[::-1])
            found.run((0, len(whole)), whole)
            ranges = found.ranges(7)
            assert len(ranges) == 7
            for rows in ranges:
                found.run(rows, pieces, flipped)
            np.testing.assert_array_equal(pieces, whole)
            np.testing.assert_array_equal(flipped, whole.T)


def test_ranges_share_the_non_zeros() -> None:
    rng = np.random.default_rng(2)
    counts = np.sort(np.minimum(rng.zipf(1.3, 4000), 900))[::-1]
    columns = np.concatenate([np.sort(rng.choice(1000, n, replace=False)) for n in counts])
    starts = np.concatenate([[0], np.cumsum(counts)])
    indices, starts = columns.astype(np.int32), starts.astype(np.int32)
    skewed = sparse.csr_array((np.ones(len(columns)), indices, starts), shape=(4000, 1000))
    turned = skewed.T.tocsr()
    with config.override(kernels="compile"):
        kept = prepare(skewed, np.ones((1000, 400)), False, {})
        summed = prepare(turned, np.ones((1000, 400)), True, {})
    assert kept is not None
    assert summed is not None
    for found in (kept, summed):
        shares = [counts[lo:hi].sum() for lo, hi in found.ranges(4)]
        assert max(shares) <= 1.3 * sum(shares) / 4


def test_unsorted_rows_that_are_summed_are_one_range() -> None:
    rng = np.random.default_rng(3)
    indices, starts = np.array([2, 0, 1], np.int32), np.array([0, 3], np.int32)
    a = sparse.csr_array((rng.random(3), indices, starts), shape=(1, 3))
    b = rng.random((1, 1 << 19))
    with config.override(kernels="compile"):
        found = prepare(a, b, True, {})
    assert found is not None
    assert found.ranges(3) == [(0, 3)]
    out = np.empty(found.shape)
    found.run((0, 3), out)
    np.testing.assert_allclose(out, a.T @ b)


def test_single_precision(operands: tuple[Any, Any, Any]) -> None:
    a, b, _ = operands
    a, b = a.astype(np.float32), b.astype(np.float32)
    with config.override(kernels="compile"):
        found = multiply(a, b, False)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-4)


def test_what_it_cannot_do_is_left_to_scipy(operands: tuple[Any, Any, Any]) -> None:
    a, b, c = operands
    with config.override(kernels="compile"):
        assert multiply(a.astype(np.float32), b, False) is None
        assert multiply(a.astype(np.int16), b.astype(np.int16), False) is None
        assert multiply(a.astype(complex), b.astype(complex), False) is None
        assert multiply(a, c[:, 0], True) is None
    with config.override(kernels="interpret"):
        assert multiply(a, b, False) is None


KINDS = [(number, index) for number in ("f8", "f4", "i8", "i4") for index in ("i4", "i8")]


@pytest.mark.parametrize(("number", "index"), KINDS)
def test_vectors_and_matrices_of_all_kinds_of_numbers_and_indices(
    monkeypatch: pytest.MonkeyPatch, number: str, index: str
) -> None:
    """Of vectors, and of integers, bit by bit: each row is added up as SciPy adds it up."""
    monkeypatch.setattr(sparse_product, "SPARSE_PRODUCTS", 1)
    rng = np.random.default_rng(4)
    counts = rng.integers(0, 9, 300) * (rng.random(300) < 0.7)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    places = rng.integers(0, 500, starts[-1]).astype(index)
    values = rng.integers(-9, 9, starts[-1]).astype(number)
    a = sparse.csr_array((values, places, starts), shape=(300, 500))
    if number < "g":  # floats: other bits
        a.data += rng.random(len(values)).astype(number)
    x, b = (10 * rng.random((500, n)) for n in (1, 6))
    x, b = x[:, 0].astype(number), b.astype(number)
    with config.override(kernels="compile"):
        vector, column, few = multiply(a, x, False), multiply(a, x[:, None], False), multiply(a, b, False)
        summed = multiply(a, b[:300], True)
        found = prepare(a, x, False, {})
    assert vector.dtype == a.dtype
    np.testing.assert_array_equal(vector, a @ x)
    np.testing.assert_array_equal(column, (a @ x)[:, None])
    near = 1e-4 if number == "f4" else 1e-12
    np.testing.assert_allclose(few, a @ b, rtol=near, atol=near)
    np.testing.assert_allclose(summed, a.T @ b[:300], rtol=near, atol=near)
    assert found is not None
    pieces, flipped = np.empty(300, number), np.empty((1, 300), number)
    for rows in found.ranges(7):
        found.run(rows, pieces, flipped)
    np.testing.assert_array_equal(pieces, vector)
    np.testing.assert_array_equal(flipped[0], vector)
