"""What grows with the number of workers, and what does not: planner and state machines without sockets.

Programs over arrays that nobody holds are planned for 4, 64 and 1,024 workers, and run by one master and
as many workers' state machines, message by message. The bytes that every worker would pull are added up
from its own tasks and compared with the prediction. Each worker has a tile of every large array, so that
the number of tiles grows with the workers; plans, messages a worker and planning must not.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy

import spartan_ng as np
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, topological
from spartan_ng.master.state import MasterState
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.plan.lower import lower
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.settings import Settings
from spartan_ng.wire.codec import NOTHING
from spartan_ng.wire.messages import PROTOCOL, Hello, JobDone, Submit
from spartan_ng.wire.plans import encode_plan
from spartan_ng.worker.scheduling.shares import task_of
from spartan_ng.worker.scheduling.state import StartPart, Tell, WorkerState

WORKERS = (4, 64, 1024)


def _array(*shape: int) -> Any:
    """An array of doubles that is only planned with."""
    return wrap_node(build.data(ArrayRef(shape, numpy.dtype(float))))


def logistic_gradient() -> Any:
    """One step of logistic regression: 4 million points of 100 features."""
    X, y, w = _array(1 << 22, 100), _array(1 << 22), _array(100)
    return X.T @ (1 / (1 + np.exp(-(X @ w))) - y)


def product() -> Any:
    """A product of square matrices, and a reduction of it."""
    A, B = _array(1 << 15, 1 << 15), _array(1 << 15, 1 << 15)
    return (A @ B).sum(0)


def figure_11() -> Any:
    """E = (A + B) + (A.T + B.T)."""
    A, B = _array(1 << 15, 1 << 15), _array(1 << 15, 1 << 15)
    return (A + B) + (A.T + B.T)


def scan() -> Any:
    """Cumulative sums of a long vector, and what is left of their maximum."""
    x = np.cumsum(_array(1 << 28))
    return x.max() - x


PROGRAMS: dict[str, Callable[[], Any]] = {
    "logistic": logistic_gradient,
    "product": product,
    "figure 11": figure_11,
    "scan": scan,
}


@dataclass(frozen=True, slots=True)
class Scale:
    """One program on so many workers.

    Parameters
    ----------
    tiles : tiles of all arrays of the plan
    planning_ms : milliseconds from the graph to the plan, tables warm
    plan_bytes : bytes of the plan as it travels
    messages : messages that the master receives and sends for one run of the plan
    predicted_bytes, counted_bytes : what moves between workers, by the cost model and by all workers' tasks
    busiest_bytes : what the worker that pulls most pulls
    """

    workers: int
    tiles: int
    planning_ms: float
    plan_bytes: int
    messages: int
    predicted_bytes: int
    counted_bytes: int
    busiest_bytes: int


def measure(program: Callable[[], Any], workers: int) -> Scale:
    """Plan a program and run its messages."""
    with config.override(small_bytes=0):
        root: Node = program()._node()
    roots = run_passes(PASSES, [root], frozenset())
    settings = Settings(Profile(workers=workers, memory_bytes=1 << 34))
    plan, times = None, []
    for _ in range(3):
        start = time.perf_counter()
        plan = lower(topological(roots), roots, settings, "key")
        times.append(time.perf_counter() - start)
    assert plan is not None
    pulled = [_pulled(plan, rank) for rank in range(workers)]
    return Scale(
        workers,
        sum(workers if s.tiling.duplicate else s.tiling.ntiles for s in plan.slots),
        1e3 * min(times),
        sum(len(f) for f in encode_plan(plan).frames),
        _messages(plan),
        sum(plan.predicted_bytes),
        sum(pulled),
        max(pulled),
    )


def _pulled(plan: Plan, rank: int) -> int:
    """Bytes that a rank's tasks read from other ranks."""
    total = 0
    for stage in plan.stages:
        task = task_of(plan, stage, rank)
        for operand in (*task.operands, *task.later):
            itemsize = plan.slots[operand.slot].dtype.itemsize
            for piece in operand.pieces:
                if piece.rank != rank:
                    total += itemsize * prod(len(range(*r)) for r in piece.region)
    return total


def _messages(plan: Plan) -> int:
    """Messages that the master handles and sends while one job runs on all of its workers' state machines."""
    master = MasterState(0.0)
    workers = {f"w{i}": WorkerState(f"w{i}") for i in range(plan.workers)}
    for name in workers:
        master.greet(name, "worker", Hello(PROTOCOL, "worker"))
    master.greet("c", "client", Hello(PROTOCOL, "client"))
    members = master.members()
    for state in workers.values():
        state.handle(members)
    keys = tuple(("c", i) for i in range(len(plan.outputs)))
    inputs = tuple(("c", 100 + i) for i in range(len(plan.inputs)))
    blob = encode_plan(plan)
    job = Submit("c/1", "key", members.epoch, plan.workers, plan.ranks, inputs, keys, False, False, plan=blob)
    count, waiting = 1, deque(master.handle("c", job))
    done = False
    while waiting:
        receiver, message = waiting.popleft()
        count += 1
        if receiver == "c":
            done = done or isinstance(message, JobDone)
            continue
        state = workers[receiver]
        for order in state.handle(message):
            if isinstance(order, StartPart):
                stats = tuple((0.0, 0, 0, 0) for _ in plan.stages)
                for answer in state.finished("c/1", stats, (0,) * len(keys), NOTHING):
                    if isinstance(answer, Tell):
                        count += 1
                        waiting.extend(master.handle(receiver, answer.message))
    assert done, "the job has come to its end"
    return count


def main() -> None:
    """Print the table."""
    print(
        f"{'program':<12}{'workers':>8}{'tiles':>8}{'plan ms':>9}{'plan B':>8}{'messages':>10}{'a worker':>9}"
        f"{'predicted B':>16}{'counted B':>16}{'busiest/mean':>13}"
    )
    for name, program in PROGRAMS.items():
        for workers in WORKERS:
            s = measure(program, workers)
            mean = s.counted_bytes / workers
            print(
                f"{name:<12}{s.workers:>8}{s.tiles:>8}{s.planning_ms:>9.2f}{s.plan_bytes:>8}{s.messages:>10}"
                f"{s.messages / workers:>9.2f}{s.predicted_bytes:>16,}{s.counted_bytes:>16,}"
                f"{s.busiest_bytes / mean if mean else 1:>13.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
