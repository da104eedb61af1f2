"""Tasks of ours as dask has them: their names, what goes with them, and what runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any
from uuid import uuid4

import distributed

from spartan_ng.worker.tasks import limit_memory


class TaskResult:
    """A task's result; `future` is known when the task has gone to the scheduler."""

    __slots__ = ("__weakref__", "future", "key")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.future: Any = None


class Call:
    """A function with all arguments but those that other tasks make."""

    __slots__ = ("args", "function", "key")

    def __init__(self, key: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.key = key
        self.function = function
        self.args = args

    def __dask_tokenize__(self) -> Any:
        """What dask may know it by, so that it need not pickle it for that."""
        return self.key

    def __call__(self, *made: Any) -> Any:
        """On a worker, with what the other tasks have made."""
        _heed_limit()
        rest = iter(made)
        # behind them there may be a place, which nobody looks at
        return self.function(*(next(rest) if a is HOLE else a for a in self.args))


@cache
def _heed_limit() -> None:
    """Once in a worker's process: dask stops a worker for good whose memory is that of nothing it knows."""
    limit_bytes = distributed.get_worker().memory_manager.memory_limit
    if limit_bytes:
        limit_memory(limit_bytes)


def nothing() -> None:
    """What a place is."""


class _Hole(Enum):
    """Stands for an argument that a task makes."""

    HOLE = "hole"


HOLE = _Hole.HOLE


def key_of(name: str) -> tuple[str, int]:
    """A key of a group of its own: dask takes large groups that read few others for roots of the graph, and
    spreads them over all workers, wherever what they read lies."""
    return f"{re.sub(r'[^a-zA-Z_]+', '_', name).strip('_')}-{uuid4().hex}", 0
