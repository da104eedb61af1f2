"""A user's function is told the place of its own block, whatever other threads work on."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from spartan_ng.kernels import rows
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Row


def test_threads_that_call_one_function_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(2)

    def waits(value: Any) -> Any:
        """Both know their places when either is about to call."""
        together.wait()
        return value

    monkeypatch.setattr(rows, "dense", waits)
    told = UserFunction(lambda block, extent: np.full(block.shape, extent[0][0]))
    row = Row("map", told, (0,), ("extent",), np.dtype(int), (20,), (0,))
    evaluate = rows.KINDS["map"](row)

    def run(lo: int) -> Any:
        return evaluate([np.zeros(10)], ((lo, lo + 10),), None)

    with ThreadPoolExecutor(2) as threads:
        assert [int(found[0]) for found in threads.map(run, (0, 10))] == [0, 10]
