"""Connecting again and again: each connection closes the one before, and nothing is left of any."""

from __future__ import annotations

import sys

import click

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from tests.faults.usage import Usage, of_cluster

_WARM = 10
"""So many connections before anything is counted."""


def connect_again(cluster: LocalCluster, count: int) -> tuple[dict[str, Usage], dict[str, Usage]]:
    """What processes hold before and after `count` connections, each of which computes something."""
    before = {}
    with config.override(small_bytes=0):
        for number in range(_WARM + count):
            if number == _WARM:
                before = settled(cluster)
            np.connect(cluster.address, workers=cluster.n)
            found = float((np.arange(100.0) * number).sum())
            assert found == number * 4950.0, (number, found)
        after = settled(cluster)
        session.embed()
    return before, after


def settled(cluster: LocalCluster) -> dict[str, Usage]:
    """What processes hold once all but one client have left."""
    for _ in range(1000):
        backend = session.current().backend
        assert hasattr(backend, "status"), "the program is connected"
        if len(backend.status().clients) == 1:
            return of_cluster(cluster)
    raise AssertionError("clients are left")


@click.command()
@click.option("--count", default=10_000, show_default=True, help="How many connections.")
def connects(count: int) -> None:
    """Connect COUNT times; descriptors and threads of all processes must be as before."""
    cluster = LocalCluster(2)
    cluster.start()
    try:
        before, after = connect_again(cluster, count)
    finally:
        cluster.stop()
    worse = 0
    for name, usage in after.items():
        click.echo(f"{name}: {before[name]} before, {usage} after")
        worse += usage.descriptors > before[name].descriptors + 2 or usage.threads > before[name].threads + 2
    sys.exit(worse > 0)
