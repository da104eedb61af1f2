"""Non-negative factors of a sparse matrix: one iteration of GNMF, as in FuseME (SIGMOD '22), Eq. 6."""

from __future__ import annotations

from typing import Any

import numpy
from scipy import sparse

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run

ROWS, COLUMNS, RANK, DENSITY = 20_000, 10_000, 100, 0.01


def ratings() -> Inputs:
    """A sparse matrix, and factors to start from."""
    random = numpy.random.default_rng(0)
    X = sparse.random_array((ROWS, COLUMNS), density=DENSITY, format="csr", rng=random)
    return {"X": X, "U": random.random((RANK, COLUMNS)), "V": random.random((ROWS, RANK))}


def gnmf(X: Any, U: Any, V: Any) -> tuple[Any, Any]:
    """One iteration: both factors."""
    U = U * (V.T @ X) / (V.T @ V @ U)
    return U, V * (X @ U.T) / (V @ (U @ U.T))


def scipy_gnmf(inputs: Inputs) -> Run:
    """NumPy and SciPy."""
    return lambda: gnmf(inputs["X"], inputs["U"], inputs["V"])[1]


def our_gnmf(inputs: Inputs) -> Run:
    """The same text with spartan_ng, both factors in one program."""
    arrays = [spartan_ng.asarray(inputs[name]) for name in ("X", "U", "V")]
    return lambda: spartan_ng.compute(*gnmf(*arrays))[1]


GNMF = Case(
    "gnmf",
    f"one iteration of GNMF, X {ROWS:,} x {COLUMNS:,} of density {DENSITY}, rank {RANK}",
    ratings,
    {"numpy + scipy": scipy_gnmf, OURS: our_gnmf},
    ratio_limit=0.5,
)
