"""Random views, writes and reads: eager, by the oracle, embedded, and on three workers in every tiling."""

from __future__ import annotations

import pytest

from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import TILINGS, config
from spartan_ng.graph.evaluation import answer_by
from tests import reference, views

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("small_bytes", "oracle", "examples"),
    [(1 << 20, False, 60), (0, True, 60), (64, True, 60), (0, False, 30)],
    ids=["eager", "lazy", "mixed", "embedded"],
)
def test_views_and_writes_are_numpys(small_bytes, oracle, examples):
    door = reference.install() if oracle else None
    try:
        with config.override(small_bytes=small_bytes):
            views.run(examples)
    finally:
        if door is not None:
            answer_by(door)


@pytest.mark.parametrize("tiling", [None, *TILINGS])
def test_on_three_workers(tiling):
    before = session.current().backend
    backend = SimulatedBackend(3)
    session.use(backend)
    try:
        with config.override(small_bytes=0, tiling=tiling):
            views.run(10)
    finally:
        session.use(before)
        backend.close()
