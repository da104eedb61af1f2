"""Elements that do not lie at multiples of their alignment: NumPy and BLAS copy what they do not take so, and
where memory has no room for copies of the whole they are given boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.arrays import box_shape
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.sources.mapped import CopiedFile
from tests.test_programs import running_on

N = 400_000
BUDGET = 1_000_000
LINE = numpy.random.default_rng(0).normal(size=N)
ROWS = (N // 50, 50)


def raw(folder: Path) -> Any:
    """Behind a header of twelve bytes."""
    (folder / "x.raw").write_bytes(b"twelve bytes" + LINE.tobytes())
    return np.from_raw(folder / "x.raw", ROWS, "f8", offset=12)


def member(folder: Path) -> Any:
    """Behind a name of an odd number of letters."""
    numpy.savez(folder / "x.npz", abc=LINE.reshape(ROWS))
    return np.load(folder / "x.npz")["abc"]


def dataset(folder: Path) -> Any:
    """Behind one of an odd number of bytes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("bytes", data=numpy.arange(1001) % 7 == 0)
        file.create_dataset("x", data=LINE.reshape(ROWS))
    return np.from_hdf5(folder / "x.h5", "x")


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "median": lambda xp, x: xp.median(x),
    "quantile": lambda xp, x: xp.quantile(x.ravel(), 0.3),
    "line @ line": lambda xp, x: x.ravel() @ x.ravel(),
    "vdot": lambda xp, x: xp.vdot(x, x),
    "norm": lambda xp, x: xp.linalg.norm(x),
    "x.T @ x": lambda xp, x: x.T @ x,
    "x @ v": lambda xp, x: x @ xp.arange(50.0),
    "rows": lambda xp, x: x[xp.arange(0, N // 50, 7)],
    "mask": lambda xp, x: x[x > 1.0],
    "sort": lambda xp, x: xp.sort(x, axis=0),
    "argsort": lambda xp, x: xp.argsort(x.ravel()),
    "cumsum": lambda xp, x: xp.cumsum(x, axis=0),
    "einsum": lambda xp, x: xp.einsum("ij,ij->i", x, x),
    "slice": lambda xp, x: x[3:9, ::-2],
    "element": lambda xp, x: x[7, 3],
}


@pytest.mark.parametrize("kind", [raw, member, dataset])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_answers_are_numpys_and_the_whole_is_never_copied(
    kind: Callable[[Path], Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest box that is asked for leaves room for others."""
    read, asked = CopiedFile.read, []

    def counted(source: CopiedFile, box: Any) -> Any:
        asked.append(8 * int(numpy.prod(box_shape(box))))
        return read(source, box)

    monkeypatch.setattr(CopiedFile, "read", counted)
    with config.override(memory_bytes=BUDGET):
        x = kind(tmp_path)
        found = numpy.asarray(FUNCTIONS[name](np, x))
    numpy.testing.assert_allclose(
        found, FUNCTIONS[name](numpy, LINE.reshape(ROWS)), rtol=1e-10, atol=1e-10, strict=True
    )
    assert asked, "the elements lie at multiples of their size here"
    assert max(asked) <= BUDGET / 2


@pytest.mark.parametrize("kind", [raw, member, dataset])
def test_where_there_is_room_the_map_is_the_array(
    kind: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(CopiedFile, "read")
    x = kind(tmp_path)
    assert x[7, 3] == LINE.reshape(ROWS)[7, 3]
    numpy.testing.assert_allclose(np.vdot(x, x), LINE @ LINE, rtol=1e-12)


def test_on_workers(tmp_path: Path) -> None:
    with config.override(memory_bytes=BUDGET):
        x = raw(tmp_path)
    with config.override(small_bytes=0), LocalCluster(2, threads=1) as backend, running_on(backend):
        found = numpy.asarray(x.T @ x)
    numpy.testing.assert_allclose(found, LINE.reshape(ROWS).T @ LINE.reshape(ROWS), rtol=1e-10, strict=True)


def test_a_file_that_is_written_to_is_an_error(tmp_path: Path) -> None:
    with config.override(memory_bytes=BUDGET):
        x = raw(tmp_path)
        (tmp_path / "x.raw").write_bytes(b"twelve bytes" + (LINE + 1).tobytes())
        with pytest.raises(SourceError, match=r"x\.raw.*changed"):
            (x * 2).sum().compute()


@pytest.mark.parametrize("kind", [raw, member, dataset])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_that_is_removed_is_kept_as_other_maps_are(
    kind: Callable[[Path], Any], workers: int, tmp_path: Path
) -> None:
    """One that another has the name of was an error, though all that NumPy has saved in archives lies so."""
    with config.override(memory_bytes=BUDGET), cluster(workers):
        x = kind(tmp_path)
        for path in tmp_path.iterdir():
            path.rename(path.with_suffix(".old"))
            path.write_bytes(path.with_suffix(".old").read_bytes()[::-1])
        found = numpy.asarray(x.T @ x)
    numpy.testing.assert_allclose(found, LINE.reshape(ROWS).T @ LINE.reshape(ROWS), rtol=1e-10, strict=True)


@contextmanager
def cluster(workers: int) -> Iterator[None]:
    """So many workers on this machine, or none."""
    if not workers:
        yield
        return
    with config.override(small_bytes=0), LocalCluster(workers, threads=1) as backend, running_on(backend):
        yield
