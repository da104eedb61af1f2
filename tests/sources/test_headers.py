"""Headers of `.npy` files: whatever names and dtypes NumPy writes, they are read as NumPy reads them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

NAMES = ["größe", "漢", "a\\b", "\\ö", "'", '"ü', "\n", "\\u6f22", "é\\", "😀", "x" * 300, "ñ" * 40_000]
LAYOUTS = ["C", "F"]


@pytest.fixture(autouse=True)
def little() -> Any:
    with config.override(small_bytes=1000):
        yield


@pytest.mark.parametrize("order", LAYOUTS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_of_fields_are_read_as_they_were_written(
    name: str, packed: bool, order: Any, tmp_path: Path
) -> None:
    """Names that Latin-1 has not come in UTF-8: those of stored members were read as Latin-1."""
    value = numpy.zeros((40, 50), [(name, "f8"), ("second", "i4")], order=order)
    value["second"] = numpy.arange(2000).reshape(40, 50)
    with warnings.catch_warnings(action="ignore"):
        numpy.save(tmp_path / "x.npy", value)
        (numpy.savez_compressed if packed else numpy.savez)(tmp_path / "x.npz", x=value)
    most: dict[str, Any] = {"max_header_size": 1 << 20} if len(name) > 1000 else {}
    for budget in (None, 20_000):
        with config.override(memory_bytes=budget):
            for found in (np.load(tmp_path / "x.npz", **most)["x"], np.load(tmp_path / "x.npy", **most)):
                assert found.dtype == value.dtype
                numpy.testing.assert_array_equal(numpy.asarray(found), value)
