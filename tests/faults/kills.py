"""Programs on a cluster of our own, of which a process is killed at a random moment."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection

import click
import numpy

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.local import _QUICK_S, LocalCluster
from spartan_ng.backends.nanny import Process
from spartan_ng.system.zygote import fork
from tests.long_programs import BY_NAME, Runs, killing
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


Victims = Callable[[], list[int]]
"""The processes one of which is to die, each time before a program begins; it waits until all are there."""


def workers_of(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> Victims:
    """The workers, which their nannies start again."""

    def now() -> list[int]:
        until(lambda: are_members(cluster, client))
        return [worker.pid for worker in cluster.workers]

    return now


def are_members(cluster: LocalCluster, client: ClusterBackend) -> bool:
    """Whether the client knows of the workers that there are; it hears of a death some time after it."""
    pids = {f"pid {worker.pid} " for worker in cluster.workers}
    client.take_notice()
    return client.workers == len(pids) and all(
        any(pid in member.label for pid in pids) for member in client._link.members.members
    )


def workers_without_nannies(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> Victims:
    """The workers, of which those that are killed are missing until the program has ended."""

    def all_there() -> bool:
        cluster.workers = [worker for worker in cluster.workers if worker.poll() is None]
        while len(cluster.workers) < cluster.n:
            cluster.add_worker()
        return are_members(cluster, client)

    def now() -> list[int]:
        until(all_there)
        return [worker.pid for worker in cluster.workers]

    return now


def master_of(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> Victims:
    """The master, which has served for long enough not to be taken for one that cannot."""
    since: dict[int, float] = {}

    def now() -> list[int]:
        assert cluster.master is not None, "the cluster runs"
        pid = cluster.master.pid
        assert client.workers, "there is a master, who knows of them"
        begun = since.setdefault(pid, time.monotonic())
        until(lambda: time.monotonic() - begun > _QUICK_S)
        return [pid]

    return now


def master_with_a_standby(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> Victims:
    """The master that serves; another one, which stands by, is the next."""
    lifeline, ours = os.pipe()
    for descriptor in (ours, lifeline):
        stack.callback(os.close, descriptor)
    assert cluster.master is not None, "the cluster runs"
    serving: Process = cluster.master
    standby: tuple[Process, int] | None = None

    def now() -> list[int]:
        nonlocal serving, standby
        if serving.poll() is not None:
            assert standby is not None, "somebody stood by when it was killed"
            serving, announced = standby
            with open(announced, "rb") as file:
                file.readline()
            standby = None
        if standby is None:
            reading, writing = os.pipe()
            command = ["master", "--standby", "--address", cluster.address]
            standby = fork([*command, "--lifeline", lifeline, "--announce", writing]), reading
            os.close(writing)
        return [serving.pid]

    def end() -> None:
        others = [] if standby is None else [standby[0]]
        for process in (serving, *others):
            process.kill()
            process.wait()
        if standby is not None:
            os.close(standby[1])

    stack.callback(end)
    return now


def other_client_of(cluster: LocalCluster, client: ClusterBackend, stack: ExitStack) -> Victims:
    """Another program that works on the cluster's workers."""

    def now() -> list[int]:
        listens, tells = _FORKS.Pipe(duplex=False)
        other = _FORKS.Process(target=other_program, args=(cluster.address, tells), daemon=True)
        other.start()
        stack.callback(other.join)
        stack.callback(other.kill)
        tells.close()
        listens.recv()
        assert other.pid is not None, "it has begun"
        return [other.pid]

    return now


@dataclass(frozen=True, slots=True)
class Kind:
    """Who is killed: `at_once` of the `victims` of a cluster that starts again what ends, or not."""

    victims: Callable[[LocalCluster, ClusterBackend, ExitStack], Victims]
    at_once: int = 1
    restart: bool = True


KINDS = {
    "worker": Kind(workers_of),
    "pair": Kind(workers_of, at_once=2),
    "removed": Kind(workers_without_nannies, restart=False),
    "master": Kind(master_of),
    "standby": Kind(master_with_a_standby, restart=False),
    "client": Kind(other_client_of),
}


def killed(kind: Kind, name: str, workers: int, runs: Runs) -> bool:
    """Run programs, each with a kill of a process of a kind; whether one failed."""
    cluster = LocalCluster(workers, restart=kind.restart)
    cluster.start()
    backend = cluster.connect()
    session.use(backend)
    try:
        with ExitStack() as stack:
            return killing(f"a {name}", kind.victims(cluster, backend, stack), runs, kind.at_once)
    finally:
        session.use(EmbeddedBackend())
        backend.close()
        cluster.stop()


def chosen_of(ctx: click.Context, option: click.Parameter, value: str) -> list[str]:
    """The names in a list; BadParameter for those that there are not."""
    known = list(KINDS) if option.name == "kinds" else list(BY_NAME)
    chosen = known if value == "all" else value.split(",")
    if unknown := [name for name in chosen if name not in known]:
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(known)}")
    return chosen


@click.command()
@click.option("--count", default=1000, help="How many programs, each with a kill.")
@click.option("--seed", default=1)
@click.option("--workers", default=4)
@click.option(
    "--kinds",
    default="worker,pair,master,client",
    show_default=True,
    callback=chosen_of,
    help="Whose processes are killed: a random worker's, two workers' at once, a worker's of which there is "
    "no other then (removed), the master's, that of one for which another stands by (standby), or those of "
    "another program on the same workers; or all.",
)
@click.option("--programs", default="all", show_default=True, callback=chosen_of, help=", ".join(BY_NAME))
@click.option("--replicas", is_flag=True, help="Programs copy each step of a loop to other workers.")
def kills(count: int, seed: int, workers: int, kinds: list[str], programs: list[str], replicas: bool) -> None:
    """Kill a process at a random moment of each program; those of the cluster are started again."""
    logging.disable(logging.CRITICAL)
    runs = Runs(-(-count // len(kinds)), seed, tuple(BY_NAME[name] for name in programs), replicas)
    failed = [killed(KINDS[kind], kind, workers, runs) for kind in kinds]
    sys.exit(any(failed))
