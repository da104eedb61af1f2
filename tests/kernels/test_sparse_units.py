"""Sums of the units of sparse blocks are those of the same blocks with their zeros."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.ops.units import Folded
from spartan_ng.plan.rows import Row
from tests.sampling import examples
from tests.test_programs import running_on


@examples(200)
@given(st.data())
def test_units_of_a_sparse_block(data: st.DataObject) -> None:
    shape = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 20))
    axes = data.draw(st.sampled_from([(0,), (1,), (0, 1)]))
    cut = data.draw(st.sampled_from(axes))
    lengths = {a: data.draw(st.integers(1, shape[a])) if a == cut else shape[a] for a in axes}
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-2, 3, shape) * 1.0
    kept = tuple(n for a, n in enumerate(shape) if a not in axes)
    row = Row("fold", "add", (0,), (axes,), values.dtype, kept, tuple(a for a in (0, 1) if a not in axes))
    reducer = Reducer(row, (0, 1), tuple(Folded(a, a, shape[a], lengths[a]) for a in axes), shape)
    box = tuple((0, n) for n in shape)
    made = sparse.csr_array(values) if data.draw(st.booleans()) else sparse.csc_array(values)
    (found,), (expected,) = reducer.block([made], box), reducer.block([values], box)
    np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize("workers", [0, 3])
def test_the_number_of_non_zeros_is_known_wherever_they_are(workers: int) -> None:
    """Of data, of what is computed of them, and of a dense array."""
    values = np.random.default_rng(1).integers(-1, 2, (40, 30)) * 1.0
    backend = SimulatedBackend(workers) if workers else EmbeddedBackend(2)
    with running_on(backend), config.override(small_bytes=0):
        x = sp.asarray(sparse.csr_array(values))
        for made, expected in ((x, values), (x * 2, values), (x[5:20], values[5:20]), (x.T, values.T)):
            assert made.format == "csr"
            assert made.nnz == np.count_nonzero(expected)
        assert sp.asarray(values).nnz == np.count_nonzero(values)
