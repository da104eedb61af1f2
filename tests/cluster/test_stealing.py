"""Idle workers take tasks over from one that is slow: real processes, equal answers, losses on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import WorkerLost
from spartan_ng.graph import build
from spartan_ng.session import Session
from tests.cluster.programs import evaluate, total, user
from tests.cluster.test_failures import kill

N = 1 << 21
VALUE = np.arange(N, dtype=np.float64)


def slow_below(bound: float, seconds: float = 0.05) -> Callable[[Any], Any]:
    """A function that is slow on the blocks of small values, which lie on the first worker."""

    def function(x: Any) -> Any:
        if x.size and x.flat[0] < bound:
            time.sleep(seconds)
        return np.sqrt(x)

    return function


def stolen(session: Session) -> int:
    """Tasks of the last run that idle workers did."""
    assert session.last_run is not None
    return sum(s.stolen for s in session.last_run[1].stages)


def test_idle_workers_share_the_work_of_a_slow_one(session: Session) -> None:
    with config.override(tiling="row", small_bytes=0):
        node = build.data(
            session.evaluate([build.map_("multiply", build.constant(VALUE), build.constant(1.0))])[0]
        )
        evaluate(session, total(node))
        even = evaluate(session, total(user(slow_below(N / 3), node)))
        assert stolen(session) > 3  # of eleven
        assert even == pytest.approx(np.sqrt(VALUE).sum())
        kept = evaluate(session, user(slow_below(N / 3), node))
        assert stolen(session) > 3
        np.testing.assert_array_equal(kept, np.sqrt(VALUE))
        again = evaluate(session, total(user(slow_below(-1), node)))
        assert stolen(session) == 0
        assert again == even  # to the bit


def test_nobody_asks_where_all_have_the_same_to_do(session: Session) -> None:
    with config.override(tiling="row", small_bytes=0):
        node = build.constant(VALUE)
        evaluate(session, total(build.map_("multiply", node, node)))
    assert stolen(session) == 0


def test_a_worker_killed_while_tasks_are_lent(cluster: LocalCluster) -> None:
    client = cluster.connect()
    session = Session(client)
    with config.override(tiling="row", small_bytes=0):
        node = build.constant(VALUE)
        threading.Timer(0.6, lambda: kill(cluster.workers[2])).start()
        begin = time.monotonic()
        with pytest.raises(WorkerLost):
            evaluate(session, total(user(slow_below(N / 3, 0.2), node)))
        assert time.monotonic() - begin < 4
        assert evaluate(session, total(user(slow_below(N / 3, 0.005), node))) == pytest.approx(
            np.sqrt(VALUE).sum()
        )
    client.close()
