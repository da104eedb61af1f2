"""Programs on a cluster of our own, of which a worker is killed at a random moment."""

from __future__ import annotations

import logging
import sys

import click

from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from tests.long_programs import killing
from tests.waiting import until


@click.command()
@click.option("--count", default=1000, help="How many programs, each with a kill.")
@click.option("--seed", default=1)
@click.option("--workers", default=4)
def kills(count: int, seed: int, workers: int) -> None:
    """Kill a random worker at a random moment of each program; it is started again."""
    logging.disable(logging.CRITICAL)
    cluster = LocalCluster(workers)
    cluster.start()
    backend = cluster.connect()
    session.use(backend)

    def there() -> list[int]:
        until(lambda: backend.workers == workers)
        return [w.pid for w in cluster.workers]

    try:
        failed = killing("our own", there, count, seed)
    finally:
        session.use(EmbeddedBackend())
        backend.close()
        cluster.stop()
    sys.exit(failed)
