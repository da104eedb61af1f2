"""Campaigns on real engines: programs while workers are killed, and random programs.

python -m tests.engines kills --engine dask --count 100 --seed 1
python -m tests.engines programs --engine ray --count 300
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click
import numpy
import psutil
from hypothesis import HealthCheck, given, seed, settings

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import ENGINES, config
from tests.programs import programs
from tests.test_programs import check

WORKERS = 4


@contextmanager
def running(engine: str) -> Iterator[Callable[[], list[int]]]:
    """A new engine of four workers that programs run on; gives what lists its workers' processes."""
    logging.disable(logging.CRITICAL)
    if engine == "dask":
        import distributed

        with (
            distributed.LocalCluster(
                n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            np.connect(client)

            def there() -> list[int]:
                client.wait_for_workers(WORKERS)  # a nanny whose worker is killed while it starts gives up
                return list(client.run(os.getpid).values())

            yield there
            session.current().backend.retire()
            session.use(EmbeddedBackend())
    else:
        import ray

        ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
        np.connect("ray")
        me = psutil.Process()
        yield lambda: [p.pid for p in me.children(recursive=True) if p.name().startswith("ray::")]
        session.use(EmbeddedBackend())
        ray.shutdown()


# --- programs that take a while ---------------------------------------------------------------------


def kmeans(xp: Any, data: Any) -> Any:
    x, c = data, data[:8]
    for _ in range(4):
        labels = xp.argmin((x * x).sum(1)[:, None] - 2 * x @ c.T + (c * c).sum(1), axis=1)
        hot = (labels[:, None] == xp.arange(8)) * 1.0
        c = kept((hot.T @ x) / xp.maximum(hot.sum(0), 1)[:, None])
    return c


def factors(xp: Any, data: Any) -> Any:
    v, w, h = data, data[:, :5], data[:5]
    for _ in range(4):
        h = kept(h * (w.T @ v) / (w.T @ w @ h))
        w = kept(w * (v @ h.T) / (w @ (h @ h.T)))
    return w


def regression(xp: Any, data: Any) -> Any:
    x, y = data[:, 1:], data[:, 0] > 0.5
    w = xp.zeros(x.shape[1])
    for _ in range(6):
        w = kept(w - x.T @ (1 / (1 + xp.exp(-(x @ w))) - y) / len(y))
    return w


def stencil(xp: Any, data: Any) -> Any:
    for _ in range(5):
        inner = (data[:-2, 1:-1] + data[2:, 1:-1] + data[1:-1, :-2] + data[1:-1, 2:]) / 4
        data = kept(xp.pad(inner, 1))
    return data


def sorted_sums(xp: Any, data: Any) -> Any:
    return xp.cumsum(kept(xp.sort(data.reshape(-1))))


def lookups(xp: Any, data: Any) -> Any:
    order = kept(xp.argsort(data[:, 0]))
    return data[order][data[:, 1] > 0.5]


PROGRAMS = (kmeans, factors, regression, stencil, sorted_sums, lookups)


def kept(x: Any) -> Any:
    """A step of a loop, evaluated."""
    return x.persist() if hasattr(x, "persist") else x


# --- commands ---------------------------------------------------------------------------------------


@click.group(help=__doc__)
def main() -> None:
    pass


def options(command: Any) -> Any:
    command = click.option("--engine", type=click.Choice(ENGINES), required=True)(command)
    command = click.option("--count", default=100, help="How many programs.")(command)
    return click.option("--seed", "number", default=1)(command)


@main.command()
@options
def kills(engine: str, count: int, number: int) -> None:
    """Kill a random worker at a random moment of each program."""
    draw = random.Random(number)
    data = numpy.random.default_rng(number).random((20_000, 30))
    wanted = [numpy.asarray(program(numpy, data)) for program in PROGRAMS]
    failures, taken = 0, []
    with running(engine) as workers, config.override(small_bytes=0):
        usual = []
        for program in PROGRAMS:
            begun = time.perf_counter()
            numpy.asarray(program(np, np.array(data)))
            usual.append(time.perf_counter() - begun)
        for n in range(count):
            k = n % len(PROGRAMS)
            victims = workers()
            killer = threading.Timer(draw.random() * usual[k], _kill, [draw.choice(victims)])
            begun = time.perf_counter()
            killer.start()
            try:
                found = numpy.asarray(PROGRAMS[k](np, np.array(data)))
                right = numpy.allclose(found, wanted[k], rtol=1e-9)
                said = "right" if right else "WRONG"
            except Exception as error:  # noqa: BLE001 - counted
                right, said = False, f"{type(error).__name__}: {error}"
            killer.join()
            taken.append(time.perf_counter() - begun)
            failures += not right
            if not right:
                click.echo(f"{n} {PROGRAMS[k].__name__}: {said}")
    click.echo(
        f"{engine}: {count} programs, a kill in each, {count - failures} right; usual "
        f"{numpy.median(usual):.2f} s, with a kill {numpy.median(taken):.2f} s (median)"
    )
    sys.exit(failures > 0)


def _kill(process: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


@main.command("programs")
@options
def random_programs(engine: str, count: int, number: int) -> None:
    """Random programs against NumPy."""
    ran = 0

    @seed(number)
    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(programs())
    def each(program: Any) -> None:
        nonlocal ran
        check(program)
        ran += 1

    with running(engine):
        each()
    click.echo(f"{engine}: {ran} programs, all right")


if __name__ == "__main__":
    main()
