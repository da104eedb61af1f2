"""The compiled product of a CSR matrix and a dense one, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from spartan_ng.config import config
from spartan_ng.kernels.compiled.sparse_product import multiply


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


def test_what_it_cannot_do_is_left_to_scipy(operands: tuple[Any, Any, Any]) -> None:
    a, b, _ = operands
    with config.override(kernels="compile"):
        assert multiply(a.astype(np.float32), b, False) is None
        assert multiply(a, np.asfortranarray(b), False) is None
    with config.override(kernels="interpret"):
        assert multiply(a, b, False) is None
