"""Idle workers take tasks over from one that is held: real processes, equal answers, losses on the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.session import Session
from tests.cluster.conftest import once
from tests.cluster.programs import evaluate, total, user
from tests.cluster.test_failures import kill
from tests.waiting import Gate

N = 1 << 21
VALUE = np.arange(N, dtype=np.float64)


def on_workers(session: Session) -> Node:
    """The values, on the workers."""
    return build.data(
        session.evaluate([build.map_("multiply", build.constant(VALUE), build.constant(1.0))])[0]
    )


def owner_of_the_first(session: Session, node: Node) -> int:
    """The process whose tile begins with the first value."""
    return int(evaluate(session, user(lambda x: np.full(x.shape, float(os.getpid())), node))[0])


def small(x: Any) -> bool:
    """Whether a block lies on the first of three workers."""
    return bool(x.size and x.flat[0] < N / 3)


def held(owner: int, gate: Gate) -> Callable[[Any], Any]:
    """A function that keeps the owner of small values."""

    def function(x: Any) -> Any:
        if small(x) and os.getpid() == owner:
            gate.enter()
        return np.sqrt(x)

    return function


def stolen(session: Session) -> int:
    """Tasks of the last run that idle workers did."""
    assert session.last_run is not None
    return sum(s.stolen for s in session.last_run[1].stages)


@pytest.mark.slow
def test_idle_workers_share_the_work_of_one_that_is_held(session: Session, gate: Gate) -> None:
    with config.override(tiling="row", reproducible=True):
        node = on_workers(session)
        owner = owner_of_the_first(session, node)
        shared = evaluate(session, total(user(held(owner, gate), node)))
        assert stolen(session) > 0
        assert shared == pytest.approx(np.sqrt(VALUE).sum())
        kept = evaluate(session, user(held(owner, gate), node))
        assert stolen(session) > 0
        np.testing.assert_array_equal(kept, np.sqrt(VALUE))
        assert evaluate(session, total(user(np.sqrt, node))) == shared  # to the bit


@pytest.mark.slow
def test_a_worker_killed_while_tasks_are_lent(cluster: LocalCluster, gate: Gate) -> None:
    client = cluster.connect()
    session = Session(client)
    with config.override(tiling="row", small_bytes=0):
        node = on_workers(session)
        owner = owner_of_the_first(session, node)

        def waits(x: Any) -> Any:
            if small(x):
                gate.enter()
            return np.sqrt(x)

        def borrowers() -> list[int]:
            return [p for p in gate.arrived if p != owner]

        def end() -> None:
            kill(next(w for w in cluster.workers if w.pid == borrowers()[0]))
            gate.open()

        once(borrowers, end)
        found = evaluate(session, total(user(waits, node)))
        assert found == pytest.approx(np.sqrt(VALUE).sum())
    client.close()
