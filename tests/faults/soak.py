"""Clients that come and go for minutes: right answers, and processes that grow by nothing.

What every process holds in the fifth minute, while nobody uses it, is compared with what it holds at the end:
free segments come and go with clients, and are bounded; what is left of clients that have gone is not.

What a process loads once is loaded before: a worker that has a stage compiled maps 50 MB of libraries and a
thread then, at a time that the machine's load decides, and holds a process that compiles for half a minute.
And as many clients as there may be are at work at once before, for as many jobs as later, and leave together:
Python's allocator keeps an arena of 1 MB as long as one object lies in it, so that a program has what it once
had at most.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import click
import numpy as np

from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.backends.local import LocalCluster
from spartan_ng.errors import PerformanceWarning, UserFunctionError
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.system.heap import give_back, limit_heaps
from tests.cluster.programs import doubled, evaluate, total, user
from tests.faults.keyed import KeyedCluster
from tests.faults.usage import Usage, children, of_cluster

JOBS_A_CLIENT = 20
CLIENTS = 6
"""At a time: a client mostly waits."""
_WARMING = 8
"""Rounds of so many clients before anything is compared."""
_TOGETHER_S = 300.0
"""One that failed is waited for no longer."""
_SAMPLE_S, _SAMPLES = 1.0, 5
_SETTLED = 0.25
"""What is held after so much of the time is compared with the end."""
_GROWTH = 1.03
_HOT_RUNS = 8


def summed(session: Session, rng: np.random.Generator) -> None:
    """A fold over a map."""
    x = rng.random((400, 30))
    np.testing.assert_allclose(evaluate(session, total(doubled(build.constant(x)))), 2 * x.sum())


def product(session: Session, rng: np.random.Generator) -> None:
    """A product of matrices, with tiles that travel."""
    x, y = rng.random((200, 300)), rng.random((300, 100))
    found = evaluate(session, build.matmul(build.constant(x), build.constant(y), x.dtype))
    np.testing.assert_allclose(found, x @ y)


def scanned(session: Session, rng: np.random.Generator) -> None:
    """A scan along rows that are cut."""
    x = rng.random((1000, 20))
    np.testing.assert_allclose(
        evaluate(session, build.scan("add", build.constant(x), 0)), x.cumsum(0), rtol=1e-9
    )


def mapped(session: Session, rng: np.random.Generator) -> None:
    """A user's function that nobody has seen before."""
    x, step = rng.random((300, 10)), float(rng.random())
    np.testing.assert_array_equal(evaluate(session, user(lambda t: t + step, build.constant(x))), x + step)


def failing(session: Session, rng: np.random.Generator) -> None:
    """A user's function that raises."""

    def fails(tile: Any) -> Any:
        raise LookupError("on purpose")

    try:
        evaluate(session, user(fails, build.constant(rng.random((300, 10)))))
    except UserFunctionError:
        return
    raise AssertionError("a user's error has not come back")


def moved(session: Session, rng: np.random.Generator) -> None:
    """Large tiles to the workers and back, through shared memory."""
    x = rng.random((int(rng.integers(50, 400)), 1000))
    ref = ArrayRef(x.shape, x.dtype, value=x)
    session.backend.upload(ref, Tiling.grid(session.backend.workers, 1))
    ref.value = None
    np.testing.assert_array_equal(session.backend.gather(ref, box_of(x.shape)), x)


def compiled(session: Session) -> None:
    """A stage that takes long enough to be compiled on every worker."""
    node = build.constant(np.linspace(0.0, 1.0, 4_000_000))
    for _ in range(_HOT_RUNS):
        evaluate(session, total(build.map_("sin", build.map_("exp", node))))


JOBS = (summed, product, scanned, mapped, failing, moved)


def life(cluster: LocalCluster, jobs: int, number: int, others: threading.Barrier | None = None) -> int:
    """One client, and so many jobs of it, drawn by its number; their number. It leaves when `others` do."""
    rng = np.random.default_rng(number)
    backend = cluster.connect()
    try:
        session = Session(backend)
        for kind in rng.integers(0, len(JOBS), jobs):
            JOBS[kind](session, rng)
        if others is not None:
            others.wait()
    finally:
        backend.close()
    return jobs


class Soak:
    """Clients that run `jobs` jobs in so many seconds, and what processes held meanwhile."""

    def __init__(self, cluster: LocalCluster, seconds: float, jobs: int) -> None:
        self.cluster, self.seconds, self.jobs = cluster, seconds, jobs
        self.looks: list[dict[str, Usage]] = []
        self.done = 0
        self._warm()
        self._begin = time.monotonic()
        self._lock = threading.Lock()

    def _warm(self) -> None:
        """Have every process load what it loads once, and this one what so many clients take together."""
        together = partial(
            life, self.cluster, JOBS_A_CLIENT, others=threading.Barrier(CLIENTS, timeout=_TOGETHER_S)
        )
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(together, range(_WARMING * CLIENTS)))
        backend = self.cluster.connect()
        compiled(Session(backend))
        backend.close()

    def client(self, number: int) -> None:
        """One client's life, begun when it is due; none begins once the time is over."""
        due = self._begin + self.seconds * number * JOBS_A_CLIENT / self.jobs
        time.sleep(max(0.0, due - time.monotonic()))
        if time.monotonic() > self._begin + self.seconds:
            return
        done = life(self.cluster, JOBS_A_CLIENT, number)
        with self._lock:
            self.done += done

    def run(self) -> None:
        """All clients; what is held is looked at while none is there, once settled and at the end."""
        clients = -(-self.jobs // JOBS_A_CLIENT)
        first = max(1, int(clients * _SETTLED))
        for numbers in (range(first), range(first, clients)):
            due = iter(numbers)
            with ThreadPoolExecutor(CLIENTS) as pool:
                for future in [pool.submit(self._lives, due) for _ in range(CLIENTS)]:
                    future.result()
            self.looks.append(self._idle())

    def _lives(self, numbers: Iterator[int]) -> None:
        """One life after another. A queue of all of them would be most of what this program holds."""
        while (number := self._next(numbers)) is not None:
            self.client(number)

    def _next(self, numbers: Iterator[int]) -> int | None:
        with self._lock:
            return next(numbers, None)

    @property
    def minutes(self) -> float:
        """Since the beginning."""
        return (time.monotonic() - self._begin) / 60

    def _idle(self) -> dict[str, Usage]:
        """What each process holds while nobody uses it and nothing is compiled: the least of some samples."""
        samples: list[dict[str, Usage]] = []
        while any(children(worker.pid) for worker in self.cluster.workers):
            time.sleep(_SAMPLE_S)
        gc.collect()
        give_back()  # what this program's clients had
        for _ in range(_SAMPLES):
            time.sleep(_SAMPLE_S)
            samples.append(of_cluster(self.cluster))
        return {name: Usage.least([s[name] for s in samples]) for name in samples[0]}


@click.command()
@click.option("--minutes", default=20.0, show_default=True, help="How long the clients come and go.")
@click.option("--jobs", default=20_000, show_default=True, help="How many jobs they run in all.")
@click.option("--workers", default=2, show_default=True, help="How many workers there are.")
@click.option("--keys", is_flag=True, help="Over TCP, with keys; else over sockets of this user's own.")
def soak(minutes: float, jobs: int, workers: int, keys: bool) -> None:
    """Run JOBS jobs of clients that come and go, or as many as the time allows; memory and descriptors may
    grow by 3% at most."""
    warnings.simplefilter("ignore", PerformanceWarning)  # each client plans anew
    limit_heaps()  # the clients of one program are hardly ever at work on so many threads elsewhere
    cluster = KeyedCluster(workers) if keys else LocalCluster(workers)
    cluster.start()
    try:
        run = Soak(cluster, minutes * 60, jobs)
        run.run()
        assert [p.poll() for p in cluster.workers] == [None] * workers, "a worker has ended"
    finally:
        cluster.stop()
    click.echo(f"{run.done} jobs in {run.minutes:.1f} minutes, no wrong answer")
    worse = False
    for name, before in run.looks[0].items():
        after = run.looks[-1][name]
        grown = (
            after.memory_bytes > _GROWTH * before.memory_bytes
            or after.descriptors > _GROWTH * before.descriptors + 1
        )
        worse |= grown
        click.echo(f"{name}: {before} settled, {after} at the end{' GROWN' if grown else ''}")
    sys.exit(worse)
