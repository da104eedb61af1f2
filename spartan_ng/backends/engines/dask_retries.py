"""What dask has given up is tried again where that does no harm, and what waits for it is not left to wait.

A task is given up when too many workers were lost while they ran it (dask's `allowed-failures`). What was
made of it, and is there, stays; but when that is lost, too, dask neither makes it again nor says so: it is
`released`, or `waiting` for what nobody makes any more, and so is whoever reads it, for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import distributed


def try_again(client: distributed.Client, futures: Sequence[distributed.Future]) -> None:
    """Have dask do again what it has given up of these.

    dask's own `Client.retry` marks them as under way when the scheduler has answered, where it may have said
    in between, on another connection, that they are there: who asks for them would wait for ever.
    """
    marked: list[Any] = client.sync(_marked, client, [future.key for future in futures])
    if marked:
        unknown = client.run_on_scheduler(_reviving(), [state.key for state in marked], [])
        for state in marked:
            if state.key in unknown:
                client.sync(_cancelled, state)


async def _marked(client: distributed.Client, keys: Sequence[Any]) -> list[Any]:
    """Mark what has failed as under way; what the scheduler has to say of it comes later."""
    states = [client.futures[key] for key in keys if key in client.futures]
    states = [state for state in states if state.status == "error"]
    for state in states:
        state.retry()
    return states


async def _cancelled(state: Any) -> None:
    state.cancel()


def mend(client: distributed.Client, awaited: Sequence[distributed.Future]) -> None:
    """Have dask do again what it has given up, where something that somebody waits for is made of it.

    If it ends workers again, who waits is told.
    """
    if keys := [future.key for future in awaited if future.status in ("pending", "lost")]:
        client.run_on_scheduler(_reviving(), [], keys)


def _reviving() -> Callable[..., Any]:
    """What the scheduler is to run: a function of no module, so that it need not have this package."""

    def revive(given_up: Any, awaited: Any, dask_scheduler: Any) -> Any:
        tasks = dask_scheduler.tasks
        erred = [key for key in given_up if key in tasks and tasks[key].state == "erred"]
        stopped, seen = [], set()
        left = [tasks[key] for key in awaited if key in tasks and tasks[key].state != "erred"]
        while left:
            task = left.pop()
            if task.key in seen or task.state not in ("released", "waiting", "erred"):
                continue
            seen.add(task.key)
            if task.state == "erred":
                erred.append(task.key)
                continue
            left += task.dependencies
            if task.state == "released" and task.run_spec is not None:
                stopped.append(task.key)
        if erred:
            dask_scheduler.stimulus_retry(erred)
        stopped = [key for key in stopped if tasks[key].state == "released"]
        dask_scheduler.transitions(dict.fromkeys(stopped, "waiting"), "spartan-ng-retry")
        return [key for key in given_up if key not in tasks]

    return revive
