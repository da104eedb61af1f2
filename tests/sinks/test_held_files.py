"""What has been written is held by nobody: a file that another takes the place of gives its place back."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.optimizer.fusion import labels
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((3000, 40))
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: x * 2 + 1,
    "sums so far": lambda x: np.cumsum(x, axis=0),
    "sorted": lambda x: np.sort(x.reshape(-1)),
    "turned": lambda x: x.T,
    "rows picked": lambda x: x[::-7],
}
FILES: dict[str, Callable[[str, Any], None]] = {
    "npy": lambda path, value: np.save(f"{path}.npy", value),
    "hdf5": lambda path, value: np.to_hdf5(value, f"{path}.h5", "x"),
    "zarr": lambda path, value: np.to_zarr(value, f"{path}.zarr"),
    "parquet": lambda path, value: np.to_parquet(value.reshape(len(value), -1), f"{path}.parquet"),
}


def held_in(folder: Path) -> list[str]:
    """Files of a folder that this process has open, or mapped."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    found += Path("/proc/self/maps").read_text().splitlines()
    return [line for line in found if f"{folder}/" in line and "x.npy" not in line]


@pytest.mark.some(8)
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="nobody tells what is open")
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("kind", FILES)
def test_nothing_is_held_of_what_was_written(
    kind: str, name: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "_LONG_LINE_BYTES", 0)
    budget = VALUE.nbytes // 5
    profile = Profile(memory_bytes=budget, limited=True)
    backend: Any = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, budget)
    numpy.save(tmp_path / "x.npy", VALUE)
    with running_on(backend), config.override(small_bytes=0, memory_bytes=budget):
        for turn in range(3):
            FILES[kind](str(tmp_path / "out"), PROGRAMS[name](np.load(tmp_path / "x.npy") + turn))
        gc.collect()
        assert held_in(tmp_path) == []
    backend.close()
