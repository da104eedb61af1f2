"""SciPy's iterative solvers and decompositions take arrays of ours as linear operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import linalg

import spartan_ng as sp
from spartan_ng.config import config

N = 24
WAYS: dict[str, Any] = {
    "cg": lambda a, b: linalg.cg(a, b, rtol=1e-12)[0],
    "gmres": lambda a, b: linalg.gmres(a, b, rtol=1e-12)[0],
    "bicg": lambda a, b: linalg.bicg(a, b, rtol=1e-12)[0],
    "bicgstab": lambda a, b: linalg.bicgstab(a, b, rtol=1e-12)[0],
    "minres": lambda a, b: linalg.minres(a, b, rtol=1e-12)[0],
    "lsqr": lambda a, b: linalg.lsqr(a, b, atol=1e-14, btol=1e-14)[0],
    "lsmr": lambda a, b: linalg.lsmr(a, b, atol=1e-14, btol=1e-14)[0],
    "eigsh": lambda a, b: linalg.eigsh(a, k=3, v0=np.ones(N))[0],
    "eigs": lambda a, b: np.sort(linalg.eigs(a, k=3, v0=np.ones(N))[0].real),
    "svds": lambda a, b: linalg.svds(a, k=3, v0=np.ones(N))[1],
    "onenormest": lambda a, b: linalg.onenormest(a),
    "one vector": lambda a, b: linalg.aslinearoperator(a).matvec(b),
    "from the left": lambda a, b: linalg.aslinearoperator(a).rmatvec(b),
    "several": lambda a, b: linalg.aslinearoperator(a).matmat(np.eye(N)[:, :3]),
    "several from the left": lambda a, b: linalg.aslinearoperator(a).H @ np.eye(N)[:, :3],
    "an operator's operator": lambda a, b: (linalg.aslinearoperator(a) * 2 + linalg.aslinearoperator(a)) @ b,
}


@pytest.mark.parametrize("small_bytes", [1 << 20, 0], ids=["eager", "lazy"])
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", WAYS)
def test_arrays_are_linear_operators(name: str, kind: str, small_bytes: int) -> None:
    rng = np.random.default_rng(0)
    made: Any = rng.random((N, N)) + (1j * rng.random((N, N)) if kind == "complex" else 0)
    a, b = made + made.conj().T + 2 * N * np.eye(N), rng.random(N).astype(made.dtype)
    if "left" in name:
        a = made
    if kind == "complex" and name == "minres":
        pytest.skip("of real matrices alone")
    with config.override(small_bytes=small_bytes):
        found = WAYS[name](sp.asarray(a) + 0, sp.asarray(b))
        np.testing.assert_allclose(np.asarray(found), WAYS[name](a, b), rtol=1e-7)
