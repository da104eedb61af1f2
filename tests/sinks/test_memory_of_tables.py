"""What reading and writing tables takes: nothing of pyarrow's own pool, which keeps what is freed, and parts
that a small budget has room for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pytest

import spartan_ng as np
from spartan_ng.api.files.sinks import in_rows
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(5).random((20_000, 12))
BUDGET = 2_000_000

READ: dict[str, Callable[[Any, Path], Any]] = {
    "Arrow": lambda t, folder: pyarrow.feather.write_feather(t, folder / "x.arrow", compression="lz4"),
    "CSV": lambda table, folder: pyarrow.csv.write_csv(table, folder / "x.csv"),
}


@pytest.mark.parametrize("kind", READ)
def test_what_is_read_takes_nothing_of_the_pool_that_keeps_it(kind: str, tmp_path: Path) -> None:
    READ[kind](pyarrow.table({"numbers": VALUE[:, 0]}), tmp_path)
    (path,) = tmp_path.iterdir()
    load = {"arrow": np.from_arrow, "csv": np.from_csv}[path.suffix[1:]]
    own = pyarrow.default_memory_pool()
    before = own.total_bytes_allocated()
    with config.override(memory_bytes=BUDGET, small_bytes=0), running_on(EmbeddedBackend(2, BUDGET)):
        numpy.testing.assert_array_equal(load(path), VALUE[:, :1])
    assert own.total_bytes_allocated() - before < VALUE[:, 0].nbytes // 4


@pytest.mark.parametrize("shape", [(4000, 250), (1000, 1000), (250_000, 4), (1_000_000,), (4, 250_000)])
@pytest.mark.parametrize("budget", [1_000_000, 4_000_000, 100_000_000])
def test_parts_that_are_written_from_here_have_room(
    budget: int, shape: tuple[int, ...], tmp_path: Path
) -> None:
    """They were 64 MB, whatever the budget."""
    value = numpy.arange(1_000_000.0).reshape(shape)
    numpy.save(tmp_path / "x.npy", value)
    with config.override(memory_bytes=budget, small_bytes=0), running_on(EmbeddedBackend(2, budget)):
        parts = [part.copy() for part in in_rows(np.load(tmp_path / "x.npy") + 1)]
    assert max(part.nbytes for part in parts) <= max(budget // 4, value[:1].nbytes)
    numpy.testing.assert_array_equal(numpy.concatenate(parts), value + 1)


@pytest.mark.slow
@pytest.mark.parametrize("numbers", ["doubles", "integers", "few"])
@pytest.mark.parametrize("path", ["x.parquet", "x/"])
def test_columns_of_many_values_take_no_memory_to_find_that_out(
    path: str, numbers: str, tmp_path: Path
) -> None:
    """pyarrow counts the distinct values of each column, up to a bound that is its own."""
    program = f"""
import numpy, pyarrow
import spartan_ng as np
random = numpy.random.default_rng(0)
value = random.random((700_000, 3)) if {numbers!r} == "doubles" else random.integers(0, 1 << 40, (700_000, 3))
value = value % 1000 if {numbers!r} == "few" else value
np.config.memory_bytes = 48_000_000
np.to_parquet(np.asarray(value), {str(tmp_path / path)!r})
print(pyarrow.default_memory_pool().max_memory())
found = np.from_parquet({str(tmp_path / path)!r})
numpy.testing.assert_array_equal(found, value)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(done.stdout) < 6_000_000
    if numbers == "few":  # which are written by numbers, as ever
        files = [p for p in tmp_path.rglob("*.parquet") if p.is_file()]
        assert sum(p.stat().st_size for p in files) < 700_000 * 3 * 8 // 4
