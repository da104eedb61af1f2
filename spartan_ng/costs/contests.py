"""Two ways of doing the same, tried once on this machine where no number could say which one is sooner."""

from __future__ import annotations

import time
from collections.abc import Callable

_ROUNDS = 3


def is_sooner(ours: Callable[[], object], numpys: Callable[[], object]) -> bool:
    """Whether one way takes less of this thread's time than another: in the best of some rounds each, in
    turns, so that it does not matter what else the machine does at the moment."""

    def taken(way: Callable[[], object]) -> int:
        start = time.thread_time_ns()
        way()
        return time.thread_time_ns() - start

    rounds = [(taken(ours), taken(numpys)) for _ in range(_ROUNDS)]
    return min(a for a, _ in rounds) < min(b for _, b in rounds)
