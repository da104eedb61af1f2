"""Elements that tables have no type for, disks that are full."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.errors import OutOfResources
from tests.disks import small_disk

__all__ = ["small_disk"]

STRANGE = ["c8", "c16", "M8[Y]", "M8[M]", "M8[h]", "m8[D]", "m8[W]", [("a", "i4"), ("b", "f8")], "V3"]


@pytest.mark.parametrize("place", ["x.parquet", "folder/"])
@pytest.mark.parametrize("dtype", STRANGE, ids=str)
def test_elements_that_tables_have_not_are_named(dtype: Any, place: str, tmp_path: Path) -> None:
    a = np.zeros(5, dtype)
    with pytest.raises(TypeError, match=r"to_parquet: tables have no elements of .*: (write|have)"):
        np.to_parquet(a, f"{tmp_path}/{place}")
    assert os.listdir(tmp_path) == []


def test_the_ways_out_lead_out(tmp_path: Path) -> None:
    c = np.arange(3) + 1j
    np.to_parquet(np.stack([c.real, c.imag], axis=1), tmp_path / "c.parquet")
    r = np.zeros(3, [("a", "i4"), ("b", "f8")])
    np.to_parquet(np.stack([r[name] for name in r.dtype.names], axis=1), tmp_path / "r.parquet")
    years = np.array(["2020", "2021"], "M8[Y]")
    np.to_parquet(years.astype("M8[D]"), tmp_path / "y.parquet")
    assert (np.load(tmp_path / "y.parquet")[:, 0] == years).all()


WRITES: dict[str, Callable[[Path, Any], Any]] = {
    "npy": lambda folder, a: np.save(folder / "x.npy", a),
    "npz": lambda folder, a: np.savez(folder / "x.npz", a=a),
    "packed npz": lambda folder, a: np.savez_compressed(folder / "x.npz", a=a),
    "text": lambda folder, a: np.savetxt(folder / "x.txt", a),
    "packed text": lambda folder, a: np.savetxt(folder / "x.txt.gz", a),
    "raw": lambda folder, a: a.tofile(folder / "x.raw"),
    "pickle": lambda folder, a: a.dump(folder / "x.pkl"),
    "zarr": lambda folder, a: np.save(folder / "x.zarr", a),
    "HDF5": lambda folder, a: np.to_hdf5(a, folder / "x.h5", compression="gzip"),
    "Parquet": lambda folder, a: np.save(folder / "x.parquet", a),
}


@pytest.mark.parametrize("call", WRITES)
def test_a_full_disk_is_named_and_has_nothing_left_on_it(call: str, small_disk: Path) -> None:
    a = np.asarray(numpy.random.default_rng(0).random((40_000, 10)))
    with pytest.raises(OutOfResources, match="x"):
        WRITES[call](small_disk, a)
    assert os.listdir(small_disk) == []
