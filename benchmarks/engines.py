"""The same programs on our own cluster, on dask and on Ray, and in `dask.array`: seconds, tasks, bytes.

    python -m benchmarks.engines            (four worker processes of one thread each)
    python -m benchmarks.engines own dask --only sort --only cumsum
    python -m benchmarks.engines dask.array --only cumsum --part 0.25 --runs

Each program takes a second or two on our own cluster where that has two cores. It runs twice before it is
timed; then the median of three runs. Tasks are those of one run: of ours a stage's on a worker, of engines
all that they were given. Bytes are those that workers had from other workers: of ours and on Ray as the
plans count them, on dask as its workers say. Ray's workers have the priority of all others here; its own
default is nice 15, which on a busy machine is another comparison.
"""

from __future__ import annotations

import gc
import logging
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import click
import numpy

WORKERS = 4
WARM = 2
"""Runs before: memory that comes from the system at first is used again later."""
RUNS = 3
SIDES = ("own", "dask", "ray", "dask.array", "ray by hand")
NONE = "none: it sorts no array, only topk and argtopk"
"""What `dask.array` has for `sort`."""
UNWRITTEN = "not written by hand"
"""Of Ray, all but the row that misses its bound: it shows how much of that is Ray's own."""
Put = Callable[[Any], Any]
_part = ContextVar("part", default=1.0)


def rows(n: int) -> int:
    """So many, or the part of them that was asked for."""
    return max(20, round(n * _part.get()))


@cache
def numbers(*shape: int, seed: int = 0) -> Any:
    """Random numbers, the same array whoever asks."""
    return numpy.random.default_rng(seed).random(shape)


@cache
def halves() -> Any:
    """For each row of a matrix whether its first number is large."""
    return (numbers(rows(6_000_000), 20)[:, 0] > 0.5) * 1.0


@cache
def count() -> range:
    """What is made on the workers, not sent there."""
    return range(rows(200_000_000))


def kmeans(xp: Any, put: Put, keep: Put) -> Any:
    """Ten iterations over a million points, one-hot."""
    points = numbers(rows(1_000_000), 20)
    x, c = put(points), points[:20]
    for _ in range(10):
        labels = xp.argmin((x * x).sum(axis=1)[:, None] - 2 * x @ c.T + (c * c).sum(axis=1), axis=1)
        hot = (labels[:, None] == numpy.arange(20)) * 1.0
        c = numpy.asarray((hot.T @ x) / xp.maximum(hot.sum(axis=0), 1)[:, None])
    return c


def gnmf(xp: Any, put: Put, keep: Put) -> Any:
    """Ten iterations of rank 20, of 10000 x 4000."""
    n = rows(10_000)
    v, w, h = put(numbers(n, 4000)), put(numbers(n, 20)), put(numbers(20, 4000))
    for _ in range(10):
        h = keep(h * (w.T @ v) / (w.T @ w @ h))
        w = keep(w * (v @ h.T) / (w @ (h @ h.T)))
    return w


def regression(xp: Any, put: Put, keep: Put) -> Any:
    """Ten steps of a logistic regression over six million rows."""
    x, y, w = put(numbers(rows(6_000_000), 20)), put(halves()), numpy.zeros(20)
    for _ in range(10):
        p = 1 / (1 + xp.exp(-(x @ w)))
        w = w - numpy.asarray(x.T @ (p - y)) / len(halves())
    return w


def product(xp: Any, put: Put, keep: Put) -> Any:
    """5000 x 5000 by 5000 x 5000."""
    return keep(put(numbers(rows(5000), 5000)) @ put(numbers(5000, 5000, seed=1)) + 1)


def sort(xp: Any, put: Put, keep: Put) -> Any:
    """Eighty million doubles."""
    return keep(xp.sort(put(numbers(rows(80_000_000)))) + 1)


def cumsum(xp: Any, put: Put, keep: Put) -> Any:
    """Four times of two hundred million doubles, each of what the last has made."""
    x, n = put(count()), len(count())
    for _ in range(4):
        x = keep(xp.cumsum(x, axis=0) / n)
    return x


Program = Callable[[Any, Put, Put], Any]
PROGRAMS: tuple[Program, ...] = (kmeans, gnmf, regression, product, sort, cumsum)

Counts = tuple[int, int]
"""Tasks, and bytes from other workers."""


@dataclass(frozen=True, slots=True)
class Side:
    """A library on a cluster, how arrays come there and are evaluated there, and what it has done so far."""

    library: Any
    put: Put
    keep: Put
    counts: Callable[[], Counts]
    end: Put = lambda _: None
    """Return when a result is there."""
    settle: Callable[[], None] = lambda: None
    """Return when the cluster has let go what the last run has made."""


@contextmanager
def running(side: str) -> Iterator[Side]:
    """A new cluster of one of `SIDES`."""
    if side == "dask.array":
        import dask.array

        with _dask() as client:
            forgotten = partial(_forgotten, client)
            yield Side(dask.array, _once(_cut), _persisted, partial(_of_dask, client), _computed, forgotten)
        return
    if side == "ray by hand":
        with _ray():
            from benchmarks import ray_by_hand

            put = _once(lambda value: ray_by_hand.arange(len(value), WORKERS))
            yield Side(ray_by_hand, put, _persisted, lambda: (ray_by_hand.tasks(), 0))
        return
    import spartan_ng as np
    from spartan_ng import session
    from spartan_ng.backends.embedded import EmbeddedBackend

    np.config.small_bytes = 1 << 20
    np.config.disabled_passes = frozenset({"home"})  # nothing stays on the driver

    def made(value: Any) -> Any:
        return (np.arange(float(len(value))) if isinstance(value, range) else np.array(value)).persist()

    with ExitStack() as stack:
        if side == "own":
            stack.enter_context(np.cluster(WORKERS, threads=1))
            counts = _of_runs()
        elif side == "dask":
            client = stack.enter_context(_dask())
            np.connect(client)
            counts = partial(_of_dask, client)
        else:
            stack.enter_context(_ray())
            np.connect("ray")
            counts = _of_submits()
        yield Side(np, _once(made), _persisted, counts, _there)
        if side != "own":
            session.use(EmbeddedBackend())


def _once(make: Put) -> Put:
    """Give the same array for the same value."""
    known: dict[int, Any] = {}

    def put(value: Any) -> Any:
        if id(value) not in known:
            known[id(value)] = make(value)
        return known[id(value)]

    return put


@contextmanager
def _dask() -> Iterator[Any]:
    import dask
    import distributed

    with (
        # workers tell their transfers from a log, which forgets all but the last thousand
        dask.config.set({"distributed.admin.low-level-log-length": 1_000_000}),
        distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@contextmanager
def _ray() -> Iterator[None]:
    import ray

    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init("local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


def _cut(value: Any) -> Any:
    """An array of dask's, a chunk for each worker."""
    import dask.array

    rows = -(-len(value) // WORKERS)
    if isinstance(value, range):
        return _computed(dask.array.arange(float(len(value)), chunks=rows))
    return _computed(dask.array.from_array(value, chunks=(rows, *value.shape[1:])))


def _persisted(value: Any) -> Any:
    return value.persist()


def _there(value: Any) -> None:
    """Of an array that an engine may still work on: the last of its elements wherever it lies."""
    from spartan_ng import session

    backend: Any = session.current().backend
    if hasattr(backend, "tasks") and not isinstance(value, numpy.ndarray):
        tiles = backend.tiles(value._cell.node.data)
        backend.tasks.wait([tile.handle for tile in tiles.values()])


def _computed(value: Any) -> Any:
    import distributed

    if isinstance(value, numpy.ndarray):
        return value
    made = value.persist()
    distributed.wait(made)
    return made


def _forgotten(client: Any) -> None:
    """dask.array calls by one name what is computed the same way, and does not compute what is there."""

    def wanted(dask_scheduler: Any) -> int:
        return sum(bool(task.who_wants) for task in dask_scheduler.tasks.values())

    gc.collect()
    while client.run_on_scheduler(wanted) > len(client.futures):
        time.sleep(0.01)


def _of_dask(client: Any) -> Counts:
    def one(dask_worker: Any) -> Counts:
        received = sum(sum(t["keys"].values()) for t in dask_worker.transfer_incoming_log)
        return dask_worker.state.executed_count, received

    tasks, received = zip(*client.run(one).values(), strict=True)
    return sum(tasks), sum(received)


def _of_runs() -> Callable[[], Counts]:
    """Of our own cluster: each run tells its stages."""
    from spartan_ng import session

    backend: Any = session.current().backend
    run, stages = backend.run, 0

    def counted(*arguments: Any) -> Any:
        nonlocal stages
        results, stats = run(*arguments)
        stages += len(stats.stages)
        return results, stats

    backend.run = counted
    return lambda: (stages * WORKERS, session.current().moved_bytes)


def _of_submits() -> Callable[[], Counts]:
    """Of Ray: each task is submitted by its engine."""
    from spartan_ng import session

    backend: Any = session.current().backend
    engine, tasks = backend.engine, 0

    def counting(submit: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **keywords: Any) -> Any:
            nonlocal tasks
            tasks += 1
            return submit(*arguments, **keywords)

        return counted

    engine.submit, engine.submit_several = counting(engine.submit), counting(engine.submit_several)
    return lambda: (tasks, session.current().moved_bytes)


def _left_out(side: str, program: Program) -> str:
    """Why a side has no such row; nothing where it has."""
    if side == "ray by hand" and program is not cumsum:
        return UNWRITTEN
    return NONE if side == "dask.array" and program is sort else ""


def timed(side: str, programs: list[Program], tell: bool) -> dict[str, str]:
    """Cells of the table, by program; `tell` of each run, for who may end it before all are over."""
    cells = {}
    with running(side) as on:
        for program in programs:
            if left := _left_out(side, program):
                cells[program.__name__] = left
                print(f"{side} {program.__name__}: {left}", file=sys.stderr, flush=True)
                continue
            seconds = []
            before = on.counts()
            for run in range(WARM + RUNS):
                if run == WARM:
                    before = on.counts()
                on.settle()
                begun = time.perf_counter()
                on.end(program(on.library, on.put, on.keep))
                seconds.append(time.perf_counter() - begun)
                if tell:
                    print(f"{side} {program.__name__} run {run}: {seconds[-1]:.2f} s", file=sys.stderr)
            del seconds[:WARM]
            tasks, received = ((b - a) // RUNS for a, b in zip(before, on.counts(), strict=True))
            taken = statistics.median(seconds)
            cells[program.__name__] = f"{taken:.2f} s, {tasks} tasks, {received / 1e6:.1f} MB"
            print(f"{side} {program.__name__}: {cells[program.__name__]}", file=sys.stderr, flush=True)
    return cells


@click.command()
@click.argument("sides", nargs=-1, type=click.Choice(SIDES))
@click.option(
    "--only", multiple=True, type=click.Choice([p.__name__ for p in PROGRAMS]), help="These programs."
)
@click.option("--part", default=1.0, help="Of the rows.")
@click.option("--runs", is_flag=True, help="Say what each run takes.")
def main(sides: tuple[str, ...], only: tuple[str, ...], part: float, runs: bool) -> None:
    """The same programs on our own cluster, on dask, on Ray and in dask.array: all SIDES, or those named.

    The cumulative sums are there written by hand for Ray, too.

    Medians of three runs on four processes of one thread, the tasks of a run, and what its workers received.
    """
    sides = sides or SIDES
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore", "Sending large graph")
    programs = [p for p in PROGRAMS if not only or p.__name__ in only]
    _part.set(part)
    table = {side: timed(side, programs, runs) for side in sides}
    print("| program | " + " | ".join(sides) + " |")
    print("|---|" + "---|" * len(sides))
    for program in programs:
        print(f"| {program.__name__} | " + " | ".join(table[s][program.__name__] for s in sides) + " |")


if __name__ == "__main__":
    main()
