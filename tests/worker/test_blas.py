"""How many threads BLAS gets, also of a library that is loaded late."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.kernels import contract
from spartan_ng.worker.stages import products
from tests.test_programs import running_on

PROGRAM = """
import json, sys
from threadpoolctl import threadpool_info
from spartan_ng.worker.scheduling import blas

def threads():
    return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

{before}
found = [threads()]
blas.load_scipys()
found.append(threads())
with blas.single_blas():
    found.append(threads())
found.append(threads())
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2])
def test_a_library_that_is_loaded_late_has_the_same_limit(limit):
    before, late, inside, after = _run(f"blas.limit_blas({limit})")
    assert len(before) < len(late), "SciPy brings its own"
    assert max(late) == limit or limit > len(os.sched_getaffinity(0))
    assert max(late) <= limit
    assert set(inside) == {1}
    assert after == late


@pytest.mark.slow
def test_each_of_our_threads_has_one_of_a_library_that_is_loaded_late():
    before, late, inside, after = _run("with blas.single_blas(): pass")
    assert len(before) < len(late)
    assert set(inside) == {1}
    assert after == late


@pytest.mark.parametrize("threads", [1, 2])
def test_blas_has_one_thread_in_passes_however_many_are_ours(threads, monkeypatch):
    """Those that it starts itself would stand beside others' work, waiting for pieces of a millisecond."""
    found: list[int] = []

    def noted(*operands):
        blas = [i for i in threadpool_info() if i["user_api"] == "blas"]
        found.extend(i["num_threads"] for i in blas if "scipy.libs" not in i["filepath"])
        return np.dot(*operands)

    monkeypatch.setattr(contract, "_multiply_in_threads", noted)
    x = np.random.default_rng(0).random((30_000, 40))
    with config.override(small_bytes=0, kernels="interpret"), running_on(EmbeddedBackend(threads)):
        a = sp.asarray(x)
        _, product = sp.compute(sp.sum(a, axis=0), a.T @ a)
    np.testing.assert_allclose(product, x.T @ x)
    assert len(found) > 1
    assert set(found) == {1}


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("lying", ["C", "F", "part"])
@pytest.mark.parametrize("turned", ["first", "second"])
@pytest.mark.parametrize("side", [300, 645, 1100])
def test_half_of_a_product_of_a_matrix_with_itself_is_made(dtype, lying, turned, side, monkeypatch):
    """The other half is the same elements: the result is symmetric to the bit, as NumPy's is."""
    made: list[int] = []

    def noted(a, b, out=None):
        same = a.__array_interface__["data"] == b.__array_interface__["data"]
        made.append(a.shape[0] * b.shape[1] * a.shape[1] // (2 if same else 1))
        return contract.dense_product(a, b, out)

    monkeypatch.setattr(products, "dense_product", noted)
    random = np.random.default_rng(0)
    x = random.random((1500, side)).astype(dtype)
    x = x + x[::-1] * 1j if dtype == "c16" else x
    x = np.asfortranarray(x) if lying == "F" else x
    x = np.concatenate([x, x], axis=1)[:, 3 : side + 3] if lying == "part" else x
    x = x if turned == "first" else x.T
    with config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        a = sp.asarray(x)
        product = np.asarray((a.T @ a if turned == "first" else a @ a.T) + 0)
    np.testing.assert_allclose(product, x.T @ x if turned == "first" else x @ x.T, rtol=1e-4)
    np.testing.assert_array_equal(product, product.T)
    assert sum(made) == pytest.approx(1500 * side**2 / 2, rel=0.01)


def _run(before: str) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found
