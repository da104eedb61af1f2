"""Programs on a cluster of our own, of which a process is killed at a random moment."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.connection import Connection

import click
import numpy

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import LocalCluster
from tests.long_programs import killing
from tests.waiting import until

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload(
    [__name__]
)  # an interpreter that begins anew imports for longer than most programs run


def other_program(address: str, works: Connection) -> None:
    """Work on the cluster at `address` until killed."""
    np.connect(address)
    np.config.small_bytes = 0
    x = np.array(numpy.random.default_rng(0).random((20_000, 30)))
    works.send(True)
    while True:
        x = (x - x.mean(axis=0)).persist()


def workers_of(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> list[int]:
    """The workers, once all are there."""
    until(lambda: client.workers == cluster.n)
    return [w.pid for w in cluster.workers]


def master_of(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> list[int]:
    """The master."""
    assert cluster.master is not None, "the cluster runs"
    return [cluster.master.pid]


def other_client_of(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> list[int]:
    """Another program that works on the cluster's workers."""
    listens, tells = _FORKS.Pipe(duplex=False)
    other = _FORKS.Process(target=other_program, args=(cluster.address, tells), daemon=True)
    other.start()
    stack.callback(other.join)
    stack.callback(other.kill)
    tells.close()
    listens.recv()
    assert other.pid is not None, "it has begun"
    return [other.pid]


KINDS: dict[str, tuple[Callable[[LocalCluster, ClusterBackend, ExitStack], list[int]], int]] = {
    "worker": (workers_of, 1),
    "pair": (workers_of, 2),
    "master": (master_of, 1),
    "client": (other_client_of, 1),
}
"""What lists the processes, and how many of them are killed at once."""


def killed(kind: str, count: int, seed: int, workers: int) -> bool:
    """Run `count` programs, each with a kill of a process of a kind; whether one failed."""
    cluster = LocalCluster(workers)
    cluster.start()
    backend = cluster.connect()
    session.use(backend)
    try:
        with ExitStack() as stack:
            processes, at_once = KINDS[kind]
            return killing(f"a {kind}", lambda: processes(cluster, backend, stack), count, seed, at_once)
    finally:
        session.use(EmbeddedBackend())
        backend.close()
        cluster.stop()


@click.command()
@click.option("--count", default=1000, help="How many programs, each with a kill.")
@click.option("--seed", default=1)
@click.option("--workers", default=4)
@click.option(
    "--kinds",
    default=",".join(KINDS),
    show_default=True,
    help="Whose processes are killed: a random worker's, two workers' at once, the master's, or those of "
    "another program on the same workers.",
)
def kills(count: int, seed: int, workers: int, kinds: str) -> None:
    """Kill a process at a random moment of each program; those of the cluster are started again."""
    logging.disable(logging.CRITICAL)
    chosen = kinds.split(",")
    if unknown := set(chosen) - set(KINDS):
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(KINDS)}")
    failed = [killed(kind, -(-count // len(chosen)), seed, workers) for kind in chosen]
    sys.exit(any(failed))
