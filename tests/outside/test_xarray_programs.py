"""Random programs of xarray's give over our chunks what they give in memory."""

from __future__ import annotations

import pytest

import spartan_ng as np

pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytest.importorskip("scipy")

from tests.outside.xarray_programs import differences, draw


@pytest.mark.some(14)
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("seed", range(300))
def test_programs_give_what_they_give_in_memory(seed, small_bytes, tmp_path):
    program, data, wanted = draw(seed)
    with np.config.override(small_bytes=small_bytes):
        assert differences(program, data, wanted, tmp_path / "data") == [], program.names


@pytest.mark.slow
def test_programs_on_workers(some, tmp_path):
    with np.cluster(2, threads=1), np.config.override(small_bytes=0):
        for seed in some(range(300, 600), 6):
            program, data, wanted = draw(seed)
            assert differences(program, data, wanted, tmp_path / str(seed)) == [], (seed, program.names)
