"""Files larger than the memory there is: folded where they lie, and written in parts; whole or not at all."""

from __future__ import annotations

import errno
import os
import resource
import stat
from pathlib import Path
from unittest.mock import patch

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import planner, session
from spartan_ng.api.files import saving
from spartan_ng.api.files.sources import over
from spartan_ng.errors import MemoryBudgetError
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

BUDGET = 4_000_000
ROWS = 60_000


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(saving, "PART_BYTES", 500_000)
    with np.config.override(memory_bytes=BUDGET, small_bytes=1000):
        session.embed()
        yield
    session.embed()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "large.npy"
    numpy.save(path, numpy.random.default_rng(0).random((ROWS, 20)))
    assert path.stat().st_size > 2 * BUDGET
    return path


FOLDS = {
    "mean": lambda xp, x: x.mean(),
    "extremes of columns": lambda xp, x: x.max(axis=0) - x.min(axis=0),
    "deviations of columns": lambda xp, x: x.std(axis=0),
    "under a mask": lambda xp, x: x[x > 0.5].sum(),
    "of a function": lambda xp, x: (xp.exp(-x) * 2 + 1).sum(axis=1).max(),
    "product": lambda xp, x: x.T @ x,
    "of a part": lambda xp, x: x[100:-100:3, 4].sum(),
    "norms of rows": lambda xp, x: xp.sqrt((x * x).sum(axis=1)),
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.some(5)
@pytest.mark.parametrize("name", FOLDS)
@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_that_does_not_fit_is_folded_where_it_lies(file, name, kind):
    x = np.load(kind(file))
    numpy.testing.assert_allclose(FOLDS[name](np, x), FOLDS[name](numpy, numpy.load(file)), rtol=1e-9)


WRITTEN = {
    "elements": lambda xp, x: x * 2 + 1,
    "columns in another order": lambda xp, x: xp.sqrt(x)[:, ::-1],
    "other types": lambda xp, x: (x > 0.5) | (x < 0.1),
    "broadcast": lambda xp, x: x - xp.arange(20.0),
    "a line": lambda xp, x: (x + 1).reshape(-1),
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", WRITTEN)
def test_what_does_not_fit_is_written_in_parts(file, tmp_path, name):
    result = WRITTEN[name](np, np.load(file))
    np.save(tmp_path / "found", result)
    numpy.testing.assert_array_equal(
        numpy.load(tmp_path / "found.npy"), WRITTEN[name](numpy, numpy.load(file))
    )
    assert sorted(os.listdir(tmp_path)) == ["found.npy", "large.npy"]


@pytest.mark.usefixtures("little_memory")
def test_cumulative_sums_that_do_not_fit_go_to_a_file(file, tmp_path):
    np.save(tmp_path / "found", np.cumsum(np.load(file), axis=0))
    expected = numpy.cumsum(numpy.load(file), axis=0)
    numpy.testing.assert_allclose(numpy.load(tmp_path / "found.npy"), expected, rtol=1e-9)


SORTED = {
    "along an axis": lambda xp, x: xp.sort(x, axis=0),
    "all": lambda xp, x: xp.sort(x.reshape(-1)),
    "indices": lambda xp, x: xp.argsort(x.reshape(-1), kind="stable"),
    "turned": lambda xp, x: xp.sort(x.T.reshape(-1))[::-1],
}


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("name", SORTED)
def test_what_does_not_fit_is_sorted_into_a_file(file, name, tmp_path):
    np.save(tmp_path / "found.npy", SORTED[name](np, np.load(file)))
    numpy.testing.assert_array_equal(
        numpy.load(tmp_path / "found.npy"), SORTED[name](numpy, numpy.load(file))
    )


@pytest.mark.usefixtures("little_memory")
def test_what_neither_memory_nor_disk_can_hold_leaves_the_old_file(file, tmp_path):
    np.save(tmp_path / "found.npy", np.arange(3))
    with (
        patch.object(planner, "free_disk_bytes", return_value=BUDGET),
        pytest.raises(MemoryBudgetError, match=rf"budget of {BUDGET:,} bytes.* the disk has {BUDGET:,}"),
    ):
        np.save(tmp_path / "found.npy", np.sort(np.load(file), axis=0))
    assert numpy.load(tmp_path / "found.npy").tolist() == [0, 1, 2]
    assert sorted(os.listdir(tmp_path)) == ["found.npy", "large.npy"]


@pytest.mark.usefixtures("little_memory")
def test_a_file_is_written_over_the_arrays_that_are_mapped_from_it(file):
    x = np.load(file)
    before = numpy.load(file)
    np.save(file, x * 2)
    numpy.testing.assert_array_equal(numpy.load(file), before * 2)
    numpy.testing.assert_allclose(x.sum(), before.sum())


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed], ids=lambda f: f.__name__)
def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch, save):
    path = tmp_path / ("a.npy" if save is np.save else "a.npz")
    save(path, np.arange(4))
    old = path.read_bytes()

    def fails(*args, **keywords):
        args[0].write(b"half of it")
        raise KeyboardInterrupt

    monkeypatch.setattr(numpy, save.__name__, fails)
    with pytest.raises(KeyboardInterrupt):
        save(path, np.arange(5))
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_links_permissions_and_names_are_numpys(tmp_path):
    real = tmp_path / "real.npy"
    np.save(tmp_path / "real", np.arange(3))
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(real.stat().st_mode) == 0o666 & ~mask
    real.chmod(0o640)
    link = tmp_path / "link.npy"
    link.symlink_to(real)
    np.save(link, np.arange(4))
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert numpy.load(real).tolist() == [0, 1, 2, 3]
    with pytest.raises(FileNotFoundError):
        np.save(tmp_path / "nowhere" / "a.npy", np.arange(3))


@pytest.mark.parametrize(
    "save",
    [
        lambda path, x: np.save(path / "x.npy", x),
        lambda path, x: np.savez(path / "x.npz", a=x, b=x),
        lambda path, x: np.savez_compressed(path / "x.npz", x),
        lambda path, x: np.checkpoint(x, to=path / "folder"),
    ],
    ids=["save", "savez", "savez_compressed", "checkpoint"],
)
def test_a_disk_that_takes_no_more_is_an_error_with_the_file(tmp_path, save):
    """A limit to files' lengths is as a disk that is full, for one process."""
    x = np.array(numpy.random.default_rng(0).random(400_000))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
    try:
        with pytest.raises(OSError, match=rf"{tmp_path}/.*: File too large") as caught:
            save(tmp_path, x)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_a_disk_without_room_is_an_error_with_the_file(tmp_path):
    """NumPy sets the room aside before it writes, where the system can, and says only how many bytes."""
    x = np.array(numpy.random.default_rng(0).random(400_000))
    refused = OSError("Not enough free space to write 3200000 bytes after offset 128")
    told = pytest.raises(OSError, match=rf"{tmp_path}/x.npy: No space left")
    with patch.object(numpy, "save", side_effect=refused), told as caught:
        np.save(tmp_path / "x.npy", x)
    assert caught.value.errno == errno.ENOSPC


def test_what_workers_make_is_saved_in_parts_where_the_driver_has_little_memory() -> None:
    """However large an array is that counts as small."""
    with running_on(SimulatedBackend(2)), np.config.override(memory_bytes=1_000_000):
        made = over(Recorder(numpy.ones((1000, 40)))) * 2
        assert made.nbytes < np.config.small_bytes
        assert saving.goes_in_parts(made)
        assert not saving.goes_in_parts(made[:100])
