"""Sums of rows by their labels are the same to the bit, whoever adds them."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.config import config
from spartan_ng.costs.choices import GROUP_SUM_ELEMENTS
from spartan_ng.kernels import reducers
from spartan_ng.plan.rows import Row
from tests.kernels.test_compiled_cache import run


@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "u1"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (300, 7), (40, 0)])
def test_few_elements_are_added_without_scipy(monkeypatch, dtype, shape):
    random = np.random.default_rng(0)
    rows = (random.random(shape) * 100).astype(dtype)
    rows.flat[:3] = [0, -0.0 if dtype[0] in "fc" else 0, 1][: rows.size]
    labels = random.integers(0, 5, shape[0])
    by_scipy = reducers._sums_by_scipy(labels, rows, 6)
    monkeypatch.setattr(reducers, "is_imported", lambda: False)
    monkeypatch.delattr(reducers, "csr_array")
    found = reducers._sums_by_scipy(labels, rows, 6)
    assert found.dtype == by_scipy.dtype
    assert found.tobytes() == by_scipy.tobytes()


@pytest.mark.parametrize("layout", ["plain", "read only", "strided", "f4", "i8"])
@pytest.mark.parametrize("mode", ["interpret", "compile"])
def test_weights_are_added_as_numpy_adds_them(layout, mode, monkeypatch):
    """Compiled or not: with a loop at hand the interpreter is not held, and nothing is copied."""
    random = np.random.default_rng(1)
    n, places = GROUP_SUM_ELEMENTS * 2, 1000
    labels, weights = random.integers(0, places, n), random.random(n)
    weights[:4] = [-0.0, np.inf, np.nan, 1e-320]
    if layout == "strided":
        weights = np.repeat(weights, 2)[::2]
    if layout in ("f4", "i8"):
        weights = np.nan_to_num(weights * 100, posinf=7).astype(layout)
    weights.flags.writeable = labels.flags.writeable = layout != "read only"
    kind = np.dtype(np.float64)
    reducer = reducers.Reducer(Row("bincount", None, (0, 1), (places,), kind, (places,), (0,)))
    with config.override(kernels=mode), np.errstate(all="ignore"):
        (found,) = reducer.block([labels, weights], ((0, n),))
        asked = []
        monkeypatch.setattr(np, "bincount", lambda *args: asked.append(args))
        if mode == "compile" and layout in ("plain", "read only"):
            assert reducer.block([labels, weights], ((0, n),))[0].tobytes() == found.tobytes()
            assert not asked
    monkeypatch.undo()
    assert found.tobytes() == np.bincount(labels, weights, places).tobytes()


PROGRAM = """
import sys
import numpy, spartan_ng as np
from spartan_ng.kernels.compiled import group_sums
from spartan_ng.kernels.compiled.compile import wait_for_compiles
group_sums.SCIPY_S = 60.0  # here others may have the processor
np.config.small_bytes = 0
x = np.asarray(numpy.arange({rows} * 8.0).reshape(-1, 8))
marks = ((np.arange({rows}) % 5)[:, None] == np.arange(5)).astype(float)
print((marks.T @ x).sum(axis=0)[0] == numpy.arange(0, {rows} * 8.0, 8).sum(), end=" ")
assert wait_for_compiles()
print("scipy.sparse" in sys.modules)
"""


@pytest.mark.slow
def test_scipy_is_not_imported_where_a_kernel_lies_on_disk(tmp_path):
    program = PROGRAM.format(rows=GROUP_SUM_ELEMENTS)
    assert run(program, tmp_path) == "True True"
    assert run(program, tmp_path) == "True False"
