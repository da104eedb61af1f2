"""Parts of jobs: whose plans are forgotten."""

from __future__ import annotations

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
