"""Products of zeros of either sign: NumPy adds them to zeros, and -0.0 becomes 0.0, but single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng.config import config
from tests.sampling import examples

CALLS = {
    "full": lambda np, a, b: np.convolve(a, b),
    "same": lambda np, a, b: np.convolve(a, b, "same"),
    "valid": lambda np, a, b: np.convolve(a, b, "valid"),
    "correlate": lambda np, a, b: np.correlate(a, b, "full"),
    "outer": lambda np, a, b: np.einsum("i,j->ij", a, b),
    "outer, turned": lambda np, a, b: np.einsum("i,j->ji", a, b),
    "elements": lambda np, a, b: np.einsum("i,i->i", a, a[::-1]),
    "three": lambda np, a, b: np.einsum("i,j,i->ij", a, b, a),
    "total": lambda np, a, b: np.einsum("i->", a),
    "rows": lambda np, a, b: np.einsum("ij->i", a[:, None] * b),
    "itself": lambda np, a, b: np.einsum("i->i", a),
}
PRODUCTS = {
    "dot of vectors": lambda np, a, b: np.dot(a[0], b[:, 0]),
    "dot of a vector": lambda np, a, b: np.dot(a, b[:, 0]),
    "dot": lambda np, a, b: np.dot(a, b),
    "@ of vectors": lambda np, a, b: a[0] @ b[:, 0],
    "@ of a vector": lambda np, a, b: a @ b[:, 0],
    "@ from the left": lambda np, a, b: a[0] @ b,
    "@": lambda np, a, b: a @ b,
    "@ of itself": lambda np, a, b: a @ a.T,
    "@ of stacks": lambda np, a, b: np.stack([a, a]) @ b,
    "inner of vectors": lambda np, a, b: np.inner(a[0], b[:, 0]),
    "inner": lambda np, a, b: np.inner(a, b.T),
    "vdot": lambda np, a, b: np.vdot(a, b.T),
    "vecdot": lambda np, a, b: np.vecdot(a, b.T),
    "matvec": lambda np, a, b: np.matvec(a, b[:, 0]),
    "outer": lambda np, a, b: np.outer(a, b),
    "kron": lambda np, a, b: np.kron(a, b),
    "tensordot over none": lambda np, a, b: np.tensordot(a[0], b[:, 0], 0),
    "tensordot over one": lambda np, a, b: np.tensordot(a, b, 1),
    "tensordot over two": lambda np, a, b: np.tensordot(a, b.T, 2),
    "trace": lambda np, a, b: np.trace(a @ b),
    "multi_dot": lambda np, a, b: np.linalg.multi_dot([a, b, a]),
    "sum of products": lambda np, a, b: (a * b.T).sum(1),
    "einsum": lambda np, a, b: np.einsum("ij,jk->ik", a, b),
    "einsum turned": lambda np, a, b: np.einsum("ij,jk->ki", a, b),
    "einsum of stacks": lambda np, a, b: np.einsum("nij,njk->nik", a[None], b[None]),
    "einsum of three": lambda np, a, b: np.einsum("ij,jk,kl->il", a, b, a),
}
BY_BLAS = {"dot", "inner", "tensordot over one", "tensordot over none", "multi_dot"}
"""Which leave the signs of complex zeros to BLAS, and give others than `@` for the same operands."""
NUMBERS = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1.5]), min_size=1, max_size=5)


def _check_equal(found: Any, wanted: Any) -> None:
    """Equal, with zeros of the same signs."""
    assert found.dtype == wanted.dtype
    for ours, theirs in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))


@pytest.mark.slow
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@examples(100)
@given(a=NUMBERS, b=NUMBERS, dtype=st.sampled_from(["f4", "f8", "c16"]), name=st.sampled_from(sorted(CALLS)))
def test_zeros_have_numpys_signs(kernels: str, a: Any, b: Any, dtype: str, name: str) -> None:
    x, y = np.array(a, dtype), np.array(b, dtype)
    wanted = CALLS[name](np, x, y)
    with config.override(small_bytes=0, kernels=kernels):
        found = np.asarray(CALLS[name](sp, sp.asarray(x), sp.asarray(y)))
    _check_equal(found, wanted)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@examples(100)
@given(
    n=st.integers(1, 2),
    m=st.integers(1, 3),
    dtype=st.sampled_from(["f4", "f8", "c8", "c16"]),
    name=st.sampled_from(sorted(PRODUCTS)),
    data=st.data(),
)
def test_products_have_numpys_signs(
    kernels: str, n: int, m: int, dtype: str, name: str, data: st.DataObject
) -> None:
    parts = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1.5]), min_size=n * m, max_size=n * m)
    x, y = (np.array(data.draw(parts), dtype) for _ in range(2))
    if dtype[0] == "c":
        x.imag, y.imag = data.draw(parts), data.draw(parts)
    x, y = x.reshape(n, m), y.reshape(m, n)
    wanted = np.asarray(PRODUCTS[name](np, x, y))
    with config.override(small_bytes=0, kernels=kernels):
        found = np.asarray(PRODUCTS[name](sp, sp.asarray(x), sp.asarray(y)))
    if dtype[0] == "c" and name in BY_BLAS:
        np.testing.assert_array_equal(found, wanted)
        if name in ("tensordot over none", "multi_dot"):  # `@` has other elements
            return
        signs = [(np.signbit(v.real), np.signbit(v.imag)) for v in (found, wanted, x @ y)]
        assert any(np.array_equal(signs[0], theirs) for theirs in signs[1:])
        return
    _check_equal(found, wanted)
