"""What a write that fails, or is killed, would have replaced is what it was before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.sinks import places
from tests.sinks.test_sinks import FORMATS, VALUE, everything_is_large
from tests.waiting import until

__all__ = ["everything_is_large"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_error_leaves_the_old_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    np.save(path, np.array(VALUE))

    def broken(box: Any) -> Any:
        raise ArithmeticError("no elements")

    with pytest.raises(np.errors.UserFunctionError):
        np.save(path, np.from_function(broken, VALUE.shape) + 1)
    numpy.testing.assert_array_equal(FORMATS[suffix](path), VALUE)
    assert os.listdir(tmp_path) == [path.name]


def test_a_disk_without_room_leaves_the_old_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    x = np.from_function(lambda box: numpy.zeros([hi - lo for lo, hi in box]), (10**9, 10**6))
    with pytest.raises(OSError, match=r"x\.npy of 8,000,000,000,000,000 bytes: "):
        np.save(tmp_path / "x.npy", x)
    assert numpy.load(tmp_path / "x.npy").tolist() == [0, 1, 2]
    assert os.listdir(tmp_path) == ["x.npy"]


_FULL = """
import errno, os, pathlib, resource, sys, numpy
import spartan_ng as np
from spartan_ng import session
from spartan_ng.api.files import saving
from spartan_ng.backends.local import LocalCluster
np.config.small_bytes = 0
saving._SHARE = 1 << 40
folder, on = pathlib.Path(sys.argv[1]), sys.argv[2]
value = numpy.random.default_rng(0).random((4000, 20))

def read(box):
    return value[tuple(slice(*b) for b in box)]

def main():
    writes = {
        "x.npy": np.save,
        "x.zarr": np.save,
        "x.h5": np.save,
        "packed.h5": lambda path, a: np.to_hdf5(a, path, chunks=(50, 20), compression="lzf"),
        "x.parquet": np.save,
        "tables/": lambda path, a: np.to_parquet(a, path),
        "x.npz": lambda path, a: np.savez(path, a),
        "x.txt.gz": lambda path, a: np.savetxt(path, a),
        "x.csv": lambda path, a: np.savetxt(path, a, delimiter=","),
        "x.raw": lambda path, a: a.tofile(path),
        "x.pkl": lambda path, a: a.dump(path),
    }
    for name, write in writes.items():
        write(f"{folder}/{name}", np.array(value[:50]))
    before = sorted(os.listdir(folder))
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    if on == "a cluster":
        session.use(stack.enter_context(LocalCluster(2)))
        for name in ("packed.h5", "x.parquet", "x.npz", "x.txt.gz", "x.csv", "x.raw", "x.pkl"):
            del writes[name]  # tiles on their way to the driver are files, too
    for name, write in writes.items():
        try:
            write(f"{folder}/{name}", np.from_function(read, value.shape, chunks=(500, 20)) + 1)
        except OSError as error:
            assert error.errno == errno.EFBIG, error
            assert name.strip("/") in str(error), error
        else:
            raise AssertionError(name)
        assert sorted(os.listdir(folder)) == before, (name, os.listdir(folder))
        if name.endswith((".gz", ".csv")):
            found = numpy.loadtxt(f"{folder}/{name}", delimiter="," if name == "x.csv" else None)
            assert (found == value[:50]).all(), name
        elif name == "x.raw":
            assert (numpy.fromfile(f"{folder}/{name}") == value[:50].ravel()).all(), name
        elif name == "x.pkl":
            assert (numpy.load(f"{folder}/{name}", allow_pickle=True) == value[:50]).all(), name
        elif name != "x.npz":
            assert (numpy.asarray(np.load(f"{folder}/{name}")) == value[:50]).all(), name
    print("done")

if __name__ == "__main__":
    import contextlib
    with contextlib.ExitStack() as stack:
        main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("on", ["this process", "a cluster"])
def test_a_disk_that_takes_no_more_says_so_and_leaves_the_old_files(on: str, tmp_path: Path) -> None:
    """Whoever writes, and whatever libraries make of it: HDF5's ends the process, if it is let."""
    (tmp_path / "files").mkdir()
    script = tmp_path / "full.py"
    script.write_text(_FULL)
    command = [sys.executable, str(script), str(tmp_path / "files"), on]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("done\n"), done.stderr
    assert done.returncode == 0


_KILLED = """
import sys, time, numpy, pathlib
import spartan_ng as np
from spartan_ng.api.core import forcing
from spartan_ng.api.files import saving
saving._SHARE = 1 << 40
folder = pathlib.Path(sys.argv[1])

def read(box):
    if box[0][0] > 200:
        (folder / "half").touch()
        time.sleep(86_400)
    return numpy.zeros([hi - lo for lo, hi in box])

np.save(folder / ("x" + sys.argv[2]), np.from_function(read, (1000, 10_000), chunks=(100, 10_000)) + 1)
"""


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_kill_leaves_the_old_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    np.save(path, np.array(VALUE))
    if suffix == ".h5":
        np.to_hdf5(np.array(VALUE), path, "other")
    process = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path), suffix])
    until(lambda: (tmp_path / "half").exists() or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    numpy.testing.assert_array_equal(FORMATS[suffix](path), VALUE)
    if suffix == ".h5":
        numpy.testing.assert_array_equal(numpy.asarray(np.from_hdf5(path, "other")), VALUE)


_WRITERS: dict[str, Callable[[str, Any], None]] = {
    "x.npy": np.save,
    "x.zarr": np.save,
    "x.h5": np.save,
    "packed.h5": lambda path, a: np.to_hdf5(a, path, chunks=(50, 20), compression="lzf"),
    "x.parquet": np.save,
    "tables": lambda path, a: np.to_parquet(a, f"{path}/"),
    "x.npz": lambda path, a: np.savez(path, a),
    "x.raw": lambda path, a: a.tofile(path),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", _WRITERS)
def test_what_killed_writes_have_left_goes_with_the_next_of_that_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of processes that have ended, for that name; what others write still, or have called so, stays."""
    monkeypatch.setattr(places, "_LARGE", 1)
    killed = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = f"{tmp_path}/{name}"
    theirs = []
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: killed.pid)
        descriptor, file = places.new_file(path)
        os.close(descriptor)
        folder = places.new_folder(path)
        Path(folder, "part").touch()
        theirs = [os.path.basename(file), os.path.basename(folder)]
        descriptor, other = places.new_file(f"{path}x")
        os.close(descriptor)
    users = tmp_path / f".{name}.old"
    users.touch()
    others = {name, os.path.basename(other), users.name}

    _WRITERS[name](path, np.array(VALUE))
    assert {*os.listdir(tmp_path)} == {*others, *theirs}  # it writes still
    killed.kill()
    killed.communicate()
    _WRITERS[name](path, np.array(VALUE))
    assert {*os.listdir(tmp_path)} == others


def test_names_of_all_lengths_are_written(tmp_path: Path) -> None:
    for name in ("x" * 251 + ".npy", "\u00e9" * 125 + ".npy", "x." + "y" * 249 + ".npy"):
        np.save(tmp_path / name, np.array(VALUE) + 1)
        numpy.testing.assert_array_equal(numpy.load(tmp_path / name), VALUE + 1)
        np.savez(tmp_path / name.replace(".npy", ".npz"), np.array(VALUE))


@pytest.mark.parametrize("mode", [0o700, 0o705, 0o750, 0o777])
@pytest.mark.parametrize("end", [".npy", ".zarr", ".h5", ".parquet", "/"])
def test_permissions_stay_those_of_what_was_there(end: str, mode: int, tmp_path: Path) -> None:
    """Files' and folders' alike: a zarr store, a folder of Parquet files."""
    path = tmp_path / ("x" + end)

    def save(values: Any) -> None:
        if end == "/":
            np.to_parquet(np.array(values) + 0, f"{path}/")
        else:
            np.save(path, np.array(values) + 0)

    save(VALUE)
    path.chmod(mode)
    save(VALUE + 1)
    assert path.stat().st_mode & 0o7777 == mode
    numpy.testing.assert_array_equal(numpy.asarray(np.load(path)), VALUE + 1)
