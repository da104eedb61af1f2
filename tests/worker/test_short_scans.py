"""Scans of many short lines keep nothing of each."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np


@pytest.mark.parametrize("dtype", ["f8", "i1"])
@pytest.mark.parametrize("length", [2, 20])
def test_states_of_lines_that_end_are_not_kept(length: int, dtype: str, tmp_path: Path) -> None:
    """All lines' sums were kept until the last one was scanned, half of what lay in the file of pairs."""
    lines = 1_600_000 // length
    value = (numpy.arange(lines * length) % 7).astype(dtype).reshape(lines, length)
    numpy.save(tmp_path / "x.npy", value)

    def program(m: Any, x: Any) -> Any:
        return m.cumsum(x, axis=1, dtype="f8").max(axis=0)

    with np.config.override(memory_bytes=1_000_000, small_bytes=0):
        np.persist(program(np, np.load(tmp_path / "x.npy")[:20_000]))  # what comes with the first one
        found = program(np, np.load(tmp_path / "x.npy"))
        tracemalloc.start()
        try:
            np.persist(found)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 600_000
    numpy.testing.assert_allclose(found, program(numpy, value))
