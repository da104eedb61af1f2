"""Campaigns on real engines: programs while workers are killed, and random programs.

python -m tests.engines kills --engine dask --count 100 --seed 1
python -m tests.engines programs --engine ray --count 300
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
import psutil
from hypothesis import HealthCheck, given, seed, settings

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import ENGINES
from tests.long_programs import Runs, killing
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
                cluster.scale(WORKERS)  # gives up workers that do not come back within 15 s
                client.wait_for_workers(WORKERS)
                return list(client.run(os.getpid, on_error="ignore").values())

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


if __name__ == "__main__":
    main()
