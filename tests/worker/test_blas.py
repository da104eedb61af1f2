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


def _run(before: str) -> list[list[int]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before)], capture_output=True, text=True, check=True
    )
    found: list[list[int]] = json.loads(done.stdout)
    return found
