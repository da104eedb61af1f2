"""Sums of products of a sparse operand, whole on its worker: all ways to write one give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.compiled import sparse_product
from tests.test_programs import running_on

FORMS = {
    "by a vector": lambda np, s, x: s @ x,
    "from the left": lambda np, s, x: x @ s,
    "turned": lambda np, s, x: s.T @ x,
    "scaled": lambda np, s, x: 0.85 * (s @ x) + 0.15 / 60,
    "chain": lambda np, s, x: s @ (0.5 * (s @ x) + x),
    "one column": lambda np, s, x: s @ x[:, None],
    "few columns": lambda np, s, x: s @ (x[:, None] * np.asarray([1.0, 2.0, 3.0])).astype(x.dtype),
    "along lines": lambda np, s, x: np.einsum("ij,ij->i", s, s),
    "nothing summed": lambda np, s, x: np.einsum("ij,j->ij", s, x),
    "all summed": lambda np, s, x: np.einsum("ij,j->", s, x),
    "of a row": lambda np, s, x: (s @ x) * (s.T @ x),
}


@pytest.mark.parametrize("number", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("form", FORMS)
def test_sums_of_products_with_a_vector(monkeypatch: pytest.MonkeyPatch, form: str, number: str) -> None:
    monkeypatch.setattr(sparse_product, "SPARSE_PRODUCTS", 1)
    rng = np.random.default_rng(0)
    dense = rng.integers(-9, 9, (60, 60)) * (rng.random((60, 60)) < 0.2)
    s, x = dense.astype(number), rng.integers(-9, 9, 60).astype(number)
    near = 1e-4 if number == "f4" else 1e-12
    with config.override(small_bytes=0, kernels="compile"), running_on(EmbeddedBackend(2)):
        for index in ("i4", "i8"):
            a = sparse.csr_array(s)
            a.indices, a.indptr = a.indices.astype(index), a.indptr.astype(index)
            (found,) = sp.compute(FORMS[form](sp, sp.asarray(a), sp.asarray(x)))[:1]
            found = found.toarray() if sparse.issparse(found) else found
            wanted = FORMS[form](np, s, x)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=near, atol=near)
