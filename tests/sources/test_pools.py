"""Where the program had imported pyarrow before us, its pool keeps megabytes of each thread that reads pages:
one thread reads, and packs, for all where a budget has no room for that."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pyarrow
import pyarrow.parquet
import pytest

import spartan_ng as np
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.sources import pools
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((40_000, 12))
LARGE = 1 << 34


@pytest.mark.parametrize(("backend", "budget", "is_alone"), [
    ("mimalloc", 8_000_000, True),
    ("jemalloc", 8_000_000, True),
    ("system", 8_000_000, False),
    ("mimalloc", LARGE, False),
    ("mimalloc", None, False),
])  # fmt: skip
def test_one_thread_reads_for_all_where_the_pool_keeps_too_much(
    backend: str, budget: int | None, is_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[int] = []
    pool = SimpleNamespace(backend_name=backend, release_unused=lambda: freed.append(threading.get_ident()))
    monkeypatch.setattr(pyarrow, "default_memory_pool", lambda: pool)
    together = threading.Barrier(3)

    def read(k: int) -> tuple[int, int]:
        return k, threading.get_ident()

    def ask(k: int) -> tuple[tuple[int, int], int]:
        together.wait()
        return pools.unpacked(read, k), threading.get_ident()

    with np.config.override(memory_bytes=budget), ThreadPoolExecutor(3) as threads:
        found = [*threads.map(ask, range(3))]
        assert [k for (k, _), _ in found] == [0, 1, 2]
        assert [*pools.each_unpacked(range(1, 4))] == [1, 2, 3]
        with pytest.raises(ZeroDivisionError):
            pools.unpacked(divmod, 1, 0)
        assert bool(pools.pool_bytes()) == is_alone
    readers = {reader for (_, reader), _ in found}
    assert (len(readers) == 1 and not readers & {asked for _, asked in found}) == is_alone
    assert {*freed} == (readers if is_alone else set())


@pytest.mark.slow
@pytest.mark.parametrize("rows", [500, 40_000])
def test_tables_are_read_and_packed_by_that_thread(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups that may be kept, and those that are unpacked some rows at a time; files, and folders."""
    table = pyarrow.table({f"c{k}": VALUE[:, k] for k in range(12)})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet", row_group_size=rows)
    readers: set[int] = set()
    alone = pools._alone

    def noted(*args: Any) -> Any:
        readers.add(threading.get_ident())
        return alone(*args)

    monkeypatch.setattr(pools, "_alone", noted)
    monkeypatch.setattr(pools, "pool_bytes", lambda: 1 << 20)
    budget = 2_000_000
    with np.config.override(memory_bytes=budget, small_bytes=0), running_on(EmbeddedBackend(2, budget)):
        x = np.load(tmp_path / "x.parquet")
        numpy.testing.assert_allclose(x.mean(axis=0), VALUE.mean(axis=0))
        assert len(readers) == 1
        np.save(tmp_path / "y.parquet", x * 2)
        np.to_parquet(x * 2, f"{tmp_path}/z/")
        for name in ("y.parquet", "z"):
            numpy.testing.assert_array_equal(np.load(tmp_path / name), VALUE * 2)
    assert len(readers) == 1
    assert threading.get_ident() not in readers


_PROGRAM = """
import resource, sys
import pyarrow.parquet
import spartan_ng as np
np.config.memory_bytes = int(sys.argv[2])
x = np.load(sys.argv[1] + "/x.parquet")
np.save(sys.argv[1] + "/y.parquet", x[:2000] * 2)
np.load(sys.argv[1] + "/y.parquet").mean(axis=0).compute()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
np.save(sys.argv[1] + "/y.parquet", x * 2)
x.mean(axis=0).compute()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""


@pytest.mark.slow
def test_programs_that_have_imported_pyarrow_keep_to_their_budgets(tmp_path: Path) -> None:
    with pyarrow.parquet.ParquetWriter(
        tmp_path / "x.parquet", pyarrow.schema([(f"c{k}", "f8") for k in range(48)])
    ) as to:
        for _ in range(4):
            part = numpy.random.default_rng(0).random((40_000, 48))
            to.write_table(pyarrow.table({f"c{k}": part[:, k] for k in range(48)}), row_group_size=40_000)
    budget = 24_000_000
    command = [sys.executable, "-c", _PROGRAM, str(tmp_path), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 1.15 * budget
