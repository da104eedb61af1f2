"""Files whose elements lie otherwise than NumPy's functions want them: in Fortran's order, or with the other
order of bytes. Nothing copies one as a whole to have it so."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

ROWS = 100_000
LIES = {"columns": ("F", "f8"), "swapped": ("C", ">f8"), "swapped columns": ("F", ">f8"), "rows": ("C", "f8")}


def _gram(m: Any, y: Any) -> Any:
    return y.T @ y


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "tensordot": lambda m, x: m.tensordot(x, x, ([0], [0])),
    "einsum": lambda m, x: m.einsum("ijk,ilm->jklm", x.reshape(-1, 4, 5), x.reshape(-1, 4, 5)),
    "einsum of the first": lambda m, x: m.einsum("i...,i...->...", x, x),
    "gram of longer rows": lambda m, x: _gram(m, x.reshape(-1, 40)),
    "gram": lambda m, x: _gram(m, x),
    "times a vector": lambda m, x: (x @ numpy.arange(20.0)).sum(),
    "a vector times": lambda m, x: numpy.arange(float(ROWS)) @ x,
    "times single precision": lambda m, x: (x @ numpy.arange(40).reshape(20, 2).astype("f4"))[::999],
    "inner": lambda m, x: m.inner(x.T, x.T),
    "vdot": lambda m, x: m.vdot(x, x),
    "norm": lambda m, x: m.linalg.norm(x, axis=1)[::999],
    "a line": lambda m, x: x.reshape(-1).sum(),
    "a line of columns": lambda m, x: m.reshape(x, -1, order="F").max(),
    "ravel": lambda m, x: x.ravel().argmax(),
    "argmin of all": lambda m, x: x.argmin(),
    "few rows by a mask": lambda m, x: x[x[:, 0] > 0.999].sum(axis=0),
    "rows by a mask": lambda m, x: x[x[:, 0] > 0.5].sum(axis=0),
    "rows by a mask from the end": lambda m, x: x[::-1][x[:, 0] > 0.5].sum(axis=0),
    "blocks by a mask": lambda m, x: x.reshape(-1, 4, 5)[x[:, 0] > 0.5].sum(axis=0),
    "every second column by a mask": lambda m, x: x[:, ::2][x[:, 0] > 0.5].sum(axis=0),
    "elements by a mask": lambda m, x: x[x > 0.5].sum(),
    "compress": lambda m, x: m.compress(numpy.arange(ROWS) % 3 == 0, x, axis=0).sum(axis=0),
    "delete": lambda m, x: m.delete(x, [3, 5], axis=0).sum(axis=0),
    "rows by places": lambda m, x: x[numpy.arange(ROWS)[::-7]].sum(axis=0),
    "columns by places": lambda m, x: x[:, [3, 1, 3]].sum(axis=0),
    "reduceat": lambda m, x: m.add.reduceat(x, [0, 5, 100, ROWS // 2], axis=0),
    "reduceat of a line": lambda m, x: m.maximum.reduceat(x.reshape(-1), [0, 5, 100, ROWS // 2]),
    "reduceat of many": lambda m, x: m.add.reduceat(x[:, 0], numpy.arange(0, ROWS, 5))[::99],
    "reduceat backwards": lambda m, x: m.add.reduceat(x, numpy.arange(ROWS)[:: -ROWS // 9], axis=0),
    "reduceat as another": lambda m, x: m.add.reduceat(x, [0, 5, 100], axis=0, dtype="f4"),
    "reduceat along rows": lambda m, x: m.add.reduceat(x, [0, 5, 3], axis=1).max(axis=0),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("lying")
    x = numpy.random.default_rng(0).random((ROWS, 20))
    for name, (order, dtype) in LIES.items():
        numpy.save(folder / f"{name}.npy", numpy.array(x, dtype, order=order))  # type: ignore[call-overload]
    return {name: folder / f"{name}.npy" for name in LIES}


@pytest.mark.some(24)
@pytest.mark.parametrize("lies", LIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_files_that_lie_otherwise_are_copied_in_parts(name: str, lies: str, files: dict[str, Path]) -> None:
    x = numpy.load(files[lies], "r")
    expected, limit = PROGRAMS[name](numpy, x), x.nbytes // 4
    with config.override(memory_bytes=limit), running_on(EmbeddedBackend(2, limit)):
        numpy.asarray(np.load(files[lies])[:2000].sum())
        tracemalloc.start()
        try:
            found = numpy.asarray(PROGRAMS[name](np, np.load(files[lies])))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    numpy.testing.assert_allclose(found, expected, rtol=1e-5 if expected.dtype == "f4" else 1e-9)
    assert found.dtype == expected.dtype
    assert peak <= limit * 1.2, f"{peak:,} bytes where arrays may take {limit:,}"
