"""`add.at` of many rows into few places: NumPy's sums, one pass, on any number of workers."""

from __future__ import annotations

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(9000,), (9000, 3), (9000, 2, 3)])
def test_rows_are_summed_by_their_index(workers, dtype, shape):
    rng = np.random.default_rng(0)
    x, places = rng.random(shape).astype(dtype), rng.integers(-7, 7, shape[0])
    expected = np.ones((7, *shape[1:]), dtype)
    np.add.at(expected, places, x)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0):
        found = sp.ones((7, *shape[1:]), dtype)
        sp.add.at(found, sp.asarray(places), sp.asarray(x))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "f4" else 1e-12)


def test_scalars_and_integers_are_added_too():
    places = np.random.default_rng(0).integers(0, 5, 9000)
    with running_on(SimulatedBackend(3)), config.override(small_bytes=0):
        counts = sp.zeros(5)
        sp.add.at(counts, sp.asarray(places), 1)
        np.testing.assert_array_equal(counts, np.bincount(places))


def test_an_index_out_of_bounds_is_an_error():
    counts = sp.zeros(5)
    with pytest.raises(IndexError, match="out of bounds"):
        sp.add.at(counts, sp.arange(9000), 1)


def test_updates_of_another_kind_are_cast_as_numpy_casts_them():
    counts, wanted = sp.zeros(5), np.zeros(5)
    np.add.at(wanted, np.arange(9000) % 5, 2)
    with pytest.warns(np.exceptions.ComplexWarning):
        sp.add.at(counts, sp.arange(9000) % 5, 2 + 1j)
    np.testing.assert_array_equal(np.asarray(counts), wanted)


@pytest.mark.parametrize("points", [1_797, 20_000])
def test_centers_of_k_means_are_one_pass_over_the_points(points):
    from spartan_ng.apps.kmeans import new_centers

    x = np.random.default_rng(0).random((points, 10))
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
        sp.compute(*new_centers(sp.asarray(x), x[:8].copy()))
        ran = session.current().last_run
    assert ran is not None
    reads = [{ran[0].slots[r.slot].shape for r in getattr(stage, "reads", ())} for stage in ran[0].stages]
    assert sum(x.shape in shapes for shapes in reads) == 1
