"""What moves where it depends on the data: elements at random places, as predicted and as measured."""

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

WORKERS = 4


def moved(make):
    """Bytes predicted and measured of the last run."""
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0, tiling="row"):
        make().persist()
        ran = session.current().last_run
    assert ran is not None
    plan, stats = ran
    return sum(plan.predicted_bytes), stats.bytes_moved


@pytest.mark.parametrize("n", [5_000, 30_000, 200_000])
@pytest.mark.parametrize("sort", [sp.sort, sp.argsort])
def test_a_sort_reads_samples_brackets_and_its_elements(n, sort):
    x = np.random.default_rng(n).random(n)
    predicted, measured = moved(lambda: sort(sp.asarray(x)))
    assert measured > 0
    assert predicted == pytest.approx(measured, rel=0.05)


@pytest.mark.parametrize("picks", [40, 400])
@pytest.mark.parametrize("tiling", ["row", "column"])
def test_a_take_moves_the_rows_that_lie_elsewhere(picks, tiling):
    rng = np.random.default_rng(picks)
    x, at = rng.random((4_000, 16)), rng.permutation(4_000)[:picks]

    def taken():
        source = sp.tile_as(sp.asarray(x), tiling).persist()
        return source[sp.asarray(at)]

    predicted, measured = moved(taken)
    assert measured > 0
    assert predicted == pytest.approx(measured, rel=0.1)
