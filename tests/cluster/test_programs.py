"""NumPy's answer for random programs on real daemons, in every forced tiling, and bytes as predicted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import TILINGS, config
from tests.programs import Program, programs
from tests.same_bits import FIRST, bits, evaluated, long_lines
from tests.sampling import examples
from tests.test_programs import check


@pytest.fixture(scope="module", autouse=True)
def on_three_workers() -> Iterator[None]:
    """A local cluster for all tests of this file."""
    before = session.current().backend
    with LocalCluster(3) as backend:
        session.use(backend)
        yield
        session.use(before)


@examples(40)
@given(program=programs(), tiling=st.sampled_from([None, *TILINGS]))
def test_random_programs(program: Program, tiling: str | None) -> None:
    with config.override(tiling=tiling):
        check(program)


@pytest.mark.parametrize("tiling", [None, "row"])
def test_bits_are_those_of_one_process(tiling: str | None) -> None:
    with config.override(reproducible=True):
        here = bits(long_lines(), FIRST)
        with config.override(tiling=tiling):
            assert evaluated(long_lines()) == here


@pytest.mark.parametrize("tiling", [None, "row", "column", "block"])
def test_bytes_on_the_wire_are_as_predicted(tiling: str | None) -> None:
    rng = np.random.default_rng(0)
    value, weights = rng.random((600, 90)), rng.random(90)
    with config.override(small_bytes=0, tiling=tiling):
        x, w = sp.asarray(value), sp.asarray(weights)
        explained = sp.explain(x.T @ (1 / (1 + sp.exp(-(x @ w)))), (x + 1).cumsum(axis=0), run=True)
    measured = explained.measured_bytes
    assert measured is not None
    assert abs(measured - explained.predicted_bytes) <= 0.05 * explained.predicted_bytes


@pytest.mark.parametrize("tiling", [None, "row", "duplicate"])
def test_sparse_and_compressed_operands(tiling: str | None) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 200), density=0.05, rng=rng, format="csr")
    U, V, few = rng.random((300, 5)), rng.random((200, 5)), rng.integers(0, 4, (9000, 6)) * 1.0
    with config.override(small_bytes=0, tiling=tiling):
        x, u, v, c = sp.asarray(X), sp.asarray(U), sp.asarray(V), sp.compress_columns(few)
        found = sp.compute((x * sp.exp(u @ v.T)).T @ u, sp.sum(c**2), c.T @ (c @ sp.ones(6)), c * 2)
    expected = ((X.toarray() * np.exp(U @ V.T)).T @ U, (few**2).sum(), few.T @ (few @ np.ones(6)), few * 2)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
