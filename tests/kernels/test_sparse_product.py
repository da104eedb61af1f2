"""The compiled product of a CSR matrix and a dense one, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from spartan_ng.config import config
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
            found = prepare(a, x, turned)
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
        kept = prepare(skewed, np.ones((1000, 400)), False)
        summed = prepare(turned, np.ones((1000, 400)), True)
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
        found = prepare(a, b, True)
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
    a, b, _ = operands
    with config.override(kernels="compile"):
        assert multiply(a.astype(np.float32), b, False) is None
        assert multiply(a.astype(np.int64), b.astype(np.int64), False) is None
        assert multiply(a, b[:, 0], False) is None
    with config.override(kernels="interpret"):
        assert multiply(a, b, False) is None
