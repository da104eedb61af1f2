"""Connecting again and again: each connection closes the one before, and nothing is left of any."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from tests.faults.usage import Usage, of_cluster
from tests.waiting import until

_WARM = 10
"""So many connections before anything is counted."""
_MORE = 2
"""So many descriptors, or threads, more are none that connections leave."""


@contextmanager
def connected_again(cluster: LocalCluster, count: int) -> Iterator[dict[str, Usage]]:
    """What processes hold before `count` connections, each of which computes something; the last one goes
    on until the end."""
    before = {}
    with config.override(small_bytes=0):
        for number in range(_WARM + count):
            if number == _WARM:
                before = settled(cluster)
            np.connect(cluster.address, workers=cluster.n)
            found = float((np.arange(100.0) * number).sum())
            assert found == number * 4950.0, (number, found)
        yield before
        session.embed()


def settled(cluster: LocalCluster) -> dict[str, Usage]:
    """What processes hold once the master knows that all but one client have left; workers may still have
    to hear of it."""
    backend = session.current().backend
    assert hasattr(backend, "status"), "the program is connected"
    until(lambda: len(backend.status().clients) == 1)
    return of_cluster(cluster)


def grown(before: Mapping[str, Usage], after: Mapping[str, Usage]) -> list[str]:
    """Processes that hold more than they did."""
    return [
        name
        for name, usage in after.items()
        if usage.descriptors > before[name].descriptors + _MORE
        or usage.threads > before[name].threads + _MORE
    ]


@click.command()
@click.option("--count", default=10_000, show_default=True, help="How many connections.")
def connects(count: int) -> None:
    """Connect COUNT times; descriptors and threads of all processes must be as before."""
    cluster = LocalCluster(2)
    cluster.start()
    try:
        with connected_again(cluster, count) as before:
            after = settled(cluster)
    finally:
        cluster.stop()
    for name, usage in after.items():
        click.echo(f"{name}: {before[name]} before, {usage} after")
    sys.exit(bool(grown(before, after)))
