"""Campaigns on real engines: programs while workers are killed, random programs, and all apps.

python -m tests.engines kills --engine dask --count 100 --seed 1
python -m tests.engines programs --engine ray --count 300
python -m tests.engines apps --engine dask
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy
import psutil
from hypothesis import HealthCheck, given, seed, settings

import spartan_ng as np
from benchmarks.app_workloads import WORKLOADS
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import ENGINES, config
from tests.long_programs import Runs, killing
from tests.programs import programs
from tests.test_programs import check
from tests.waiting import Gate, until

WORKERS = 4


@contextmanager
def running(engine: str) -> Iterator[Callable[[], list[int]]]:
    """A new engine of four workers that programs run on; gives what lists its workers' processes."""
    logging.disable(logging.CRITICAL)
    if engine == "dask":
        with _dask() as (cluster, client):
            np.connect(client)

            def there() -> list[int]:
                while True:
                    # A worker whose name the scheduler has not forgotten is refused; its cluster gives it up
                    # after 15 s, and replaces it when it is told again how many there are to be.
                    cluster.scale(WORKERS)
                    with suppress(TimeoutError):
                        client.wait_for_workers(WORKERS, timeout=20)
                        return list(client.run(os.getpid, on_error="ignore").values())

            yield there
            session.current().backend.retire()
            session.use(EmbeddedBackend())
    else:
        import ray

        start = partial(ray.init, "local", num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
        start()
        np.connect("ray")
        me = psutil.Process()
        enter = ray.remote(Gate.enter)

        def meeting() -> list[int]:
            # Ray starts processes when tasks ask for them: one that is killed while idle has no successor.
            while not _meet(ray, enter):
                # A processor that it leases to a process before it knows that this has ended is lost to it.
                click.echo("Ray has lost a processor: a new one")
                session.use(EmbeddedBackend())
                ray.shutdown()
                start()
                np.connect("ray")
            return [p.pid for p in me.children(recursive=True) if _runs_tasks(p)]

        yield meeting
        session.use(EmbeddedBackend())
        ray.shutdown()


@contextmanager
def _dask() -> Iterator[tuple[Any, Any]]:
    """A cluster, and a client of it."""
    import dask
    import distributed

    with dask.config.set({"distributed.comm.timeouts.connect": "3s"}):  # 30 where a worker was
        cluster = distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0")
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                yield cluster, client
        finally:
            with suppress(KeyError):  # it was told of the end of a worker whose beginning it had not heard of
                cluster.close()


def _meet(ray: Any, enter: Any) -> bool:
    """Return when as many processes run tasks at once as are to be there; whether they have come in time."""
    last = time.monotonic() + 60
    with TemporaryDirectory() as folder, Gate(Path(folder)) as gate:
        tasks = [enter.remote(gate) for _ in range(WORKERS)]
        until(lambda: len(set(gate.arrived)) == WORKERS or time.monotonic() > last)
        came = len(set(gate.arrived)) == WORKERS
        gate.open()
        ray.get(tasks)
    return came


def _runs_tasks(process: psutil.Process) -> bool:
    """Whether it is a worker of Ray's: without its agents a node is given up."""
    with suppress(psutil.NoSuchProcess):
        return process.name().startswith("ray::") and not process.name().endswith("Agent")
    return False


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
    with running(engine) as workers:
        sys.exit(killing(engine, workers, Runs(count, number)))


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


@main.command()
@click.option("--engine", type=click.Choice(ENGINES), required=True)
@click.option("--scale", default=0.5, help="Of the data: 1 is about 8 MB.")
def apps(engine: str, scale: float) -> None:
    """Every app finds what it finds in this process."""
    wanted = {name: list(map(numpy.asarray, workload(scale))) for name, workload in WORKLOADS.items()}
    wrong = []
    with running(engine), config.override(small_bytes=0):
        for name, workload in WORKLOADS.items():
            begun = time.perf_counter()
            found = list(map(numpy.asarray, workload(scale)))
            right = all(map(_alike, found, wanted[name])) and len(found) == len(wanted[name])
            click.echo(f"{name}: {'right' if right else 'WRONG'} in {time.perf_counter() - begun:.1f} s")
            wrong += [name] * (not right)
    click.echo(f"{engine}: {len(WORKLOADS)} apps, {len(wrong)} wrong {' '.join(wrong)}")
    sys.exit(bool(wrong))


def _alike(found: Any, wanted: Any) -> bool:
    """Up to the rounding of sums, which algorithms carry on."""
    return found.shape == wanted.shape and numpy.allclose(found, wanted, rtol=1e-6, atol=1e-9)


if __name__ == "__main__":
    main()
