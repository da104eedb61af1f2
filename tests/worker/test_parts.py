"""Parts of jobs: whose plans are forgotten, and who is helped for how long."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest

from spartan_ng.plan.plan import Plan
from spartan_ng.worker.parts import Parts, _own_key

CLIENTS, KEYS = ("a", "ab", "b"), ("p", "pq", "q")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("key", [*KEYS, "never known", None])
def test_a_clients_plan_is_forgotten_or_all_of_them(client: str, key: str | None) -> None:
    """By the executors, too, which know the plans of all clients."""
    nothing: Any = Mock()
    parts = Parts(*[nothing] * 9)
    runner = Mock()
    parts._executors["worker",] = runner
    every = list(product(CLIENTS, KEYS))
    parts._plans.update((at, Future[Plan]()) for at in every)
    parts.drop_plans(client, key)
    gone = {(c, k) for c, k in every if c == client and key in (None, k)}
    assert set(parts._plans) == {*every} - gone
    (is_over,) = runner.forget.call_args.args
    assert {at for at in every if is_over(_own_key(*at))} == gone


@pytest.mark.parametrize("ends", ["this job", "another job", "the worker"])
def test_others_are_helped_until_nobody_works_on_the_job(ends: str) -> None:
    """Who asked them for work after that would take their time from the next one."""
    nothing: Any = Mock()
    parts = Parts(*[nothing] * 9)
    helping, seen = threading.Event(), []

    def help_others(job: str, stopped: threading.Event) -> None:
        seen.append(stopped)
        helping.set()
        stopped.wait()

    runner = Mock(help=help_others)
    runner.run.return_value = []
    part = Mock(rank=0, run=Mock(job="client/1", values=b"", outputs=(), inline=False, progress=False))
    plan = Future[Any]()
    plan.set_result(None)

    def work() -> None:
        try:
            parts._run(part, plan, runner, threading.Event())
        finally:
            helping.set()  # an error fails the test, and does not stop it

    working = threading.Thread(target=work, daemon=True)
    working.start()
    helping.wait()
    if ends == "another job":
        parts.over(("client/2", "client"))
        assert not seen[0].is_set()
    if ends == "the worker":
        parts.stopping()
    else:
        parts.over(("client/1",))
    working.join()
    assert seen[0].is_set()
    assert not parts._helping
