"""Convolutions and einsums of zeros of either sign: NumPy adds products to zeros, and -0.0 becomes 0.0."""

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
NUMBERS = st.lists(st.sampled_from([-2.0, -0.0, 0.0, 1.5]), min_size=1, max_size=5)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@examples(100)
@given(a=NUMBERS, b=NUMBERS, dtype=st.sampled_from(["f4", "f8", "c16"]), name=st.sampled_from(sorted(CALLS)))
def test_zeros_have_numpys_signs(kernels: str, a: Any, b: Any, dtype: str, name: str) -> None:
    x, y = np.array(a, dtype), np.array(b, dtype)
    wanted = CALLS[name](np, x, y)
    with config.override(small_bytes=0, kernels=kernels):
        found = np.asarray(CALLS[name](sp, sp.asarray(x), sp.asarray(y)))
    assert found.dtype == wanted.dtype
    for ours, theirs in ((found.real, wanted.real), (found.imag, wanted.imag)):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(np.signbit(ours), np.signbit(theirs))
