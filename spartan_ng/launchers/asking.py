"""Commands that make keys, and that ask a running cluster for something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from spartan_ng.launchers.options import (
    OutputFolder,
    access_of,
    insecurely,
    of_each_worker,
    of_master,
    with_keys,
)
from spartan_ng.system import machine

if TYPE_CHECKING:
    from spartan_ng.backends.link import MasterLink

ANSWER_S = 5.0
"""For which a master's answer is waited for."""


@contextmanager
def _as_admin(address: str, keys: str | None, insecure: bool, timeout_s: float) -> Iterator[MasterLink]:
    """A connection that may stop the cluster, and change how many workers there are."""
    from spartan_ng.backends.link import MasterLink

    link = MasterLink(address, access_of(keys, "admin", insecure), timeout_s, "admin")
    link.open()
    try:
        yield link
    finally:
        link.close()


@click.command()
@click.argument("directory", type=OutputFolder())
@click.option("--client", metavar="NAME", help="Let in one more client: its files are in DIRECTORY/NAME.")
@click.option("--worker", metavar="NAME", help="The same for a worker.")
@click.option("--admin", metavar="NAME", help="The same for a client that may stop the cluster.")
@click.option("--list", "show", is_flag=True, help="Show who may connect.")
def keygen(directory: str, client: str | None, worker: str | None, admin: str | None, show: bool) -> None:
    """Write CurveZMQ keys to DIRECTORY, the master's folder of keys.

    Others need `server.key` and the secret of their role, `worker.key_secret` or `client.key_secret`, in a
    folder that nobody else can read. A running master lets in new keys by itself.

    \b
    Examples:
        spartan-ng keygen ~/keys
        spartan-ng keygen ~/keys --client alice     (give ~/keys/alice to alice)
        spartan-ng keygen ~/keys --list
    """
    from spartan_ng.wire import keys

    at = os.path.expanduser(directory)
    named = [(n, r) for n, r in ((client, "client"), (worker, "worker"), (admin, "admin")) if n]
    if show:
        for name, role in keys.listed(at):
            click.echo(f"{role:<7} {name}")
        return
    written = [p for name, role in named for p in keys.keygen_for(at, name, role)] or keys.keygen(at)
    for path in written:
        click.echo(str(path))


@click.command()
@click.argument("directory", type=click.Path(file_okay=False))
@click.argument("name")
def revoke(directory: str, name: str) -> None:
    """Let the holder of the key NAME in no more; a running master cuts its connections within seconds.

    \b
    Example:
        spartan-ng revoke ~/keys alice
    """
    from spartan_ng.wire import keys

    click.echo(f"removed {keys.revoke(os.path.expanduser(directory), name)}")


@click.command()
@of_master
@click.option("--timeout", default=ANSWER_S, show_default=True, help="Seconds to wait for an answer.")
@with_keys
@insecurely
def stop(address: str | None, timeout: float, keys: str | None, insecure: bool) -> None:
    """Stop a cluster: its workers, then its master. With keys, it takes those of an admin.

    \b
    Example:
        spartan-ng stop --master tcp://10.0.0.1:7077 --keys ~/keys
    """
    from spartan_ng.wire.access import own_address

    with _as_admin(address or own_address(), keys, insecure, timeout) as link:
        link.shut_down()


@click.command()
@click.argument("worker")
@of_master
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait until it has left.")
@with_keys
@insecurely
def drain(worker: str, address: str | None, timeout: float, keys: str | None, insecure: bool) -> None:
    """Have WORKER leave a cluster, a number or a label of `spartan-ng status`. Programs take their tiles from
    it first, so that nothing is lost. With keys, it takes those of an admin.

    \b
    Example:
        spartan-ng drain 3
    """
    from spartan_ng.wire.access import own_address

    with _as_admin(address or own_address(), keys, insecure, min(timeout, ANSWER_S)) as link:
        members = link.status().members.members
        names = {**{m.label: m.name for m in members}, **{str(i): m.name for i, m in enumerate(members)}}
        if worker not in names:
            there = f"there are {', '.join(names)}" if names else "there are none"
            raise click.ClickException(f"no worker is called {worker!r}; {there}")
        if not link.drain(names[worker], timeout):
            raise click.ClickException(f"worker {worker} has not left within {timeout:g} s")


@click.command()
@click.argument("n", type=click.IntRange(1))
@of_master
@of_each_worker
@click.option("--timeout", default=60.0, show_default=True, help="Seconds to wait until they are there.")
@with_keys
@insecurely
def scale(
    n: int,
    address: str | None,
    threads: int | None,
    memory: int | None,
    timeout: float,
    keys: str | None,
    insecure: bool,
) -> None:
    """Have N workers: more are started on this machine, or those that came last leave as by `drain`. With
    keys, it takes those of an admin, and of a worker.

    \b
    Example:
        spartan-ng scale 4 --threads 2
    """
    from spartan_ng.launchers.children import start_worker
    from spartan_ng.wire.access import own_address

    address = address or own_address()
    with _as_admin(address, keys, insecure, min(timeout, ANSWER_S)) as link:
        members = sorted(link.status().members.members, key=lambda m: m.since)
        for member in reversed(members[n:]):
            if not link.drain(member.name, timeout):
                raise click.ClickException(f"{member.label} has not left within {timeout:g} s")
        new = n - len(members)
        if new > 0:
            cores = machine.cores()
            options = ["--master", address, "--threads", str(threads or max(1, cores // new))]
            options += ["--memory", str(memory)] if memory is not None else []
            options += ["--keys", os.path.expanduser(keys)] if keys is not None else []
            options += ["--insecure"] if insecure else []
            for _ in range(new):
                start_worker(options)
            if not link.wait_for_workers(n, timeout):
                raise click.ClickException(
                    f"{len(link.members.members)} workers are there after {timeout:g} s, not {n}"
                )


@click.command()
@of_master
@click.option("--timeout", default=ANSWER_S, show_default=True, help="Seconds to wait for an answer.")
@with_keys
@insecurely
def status(address: str | None, timeout: float, keys: str | None, insecure: bool) -> None:
    """Show the workers, clients and jobs of a cluster.

    \b
    Example:
        spartan-ng status --master tcp://10.0.0.1:7077 --keys ~/keys
    """
    from spartan_ng.backends.cluster import ClusterBackend
    from spartan_ng.wire.access import own_address

    directory = os.path.expanduser(keys) if keys else None
    address = address or own_address()
    backend = ClusterBackend.connect(address, directory, timeout_s=timeout, workers=0, insecure=insecure)
    found = backend.status()
    backend.close()
    click.echo(f"master {address}, membership {found.members.epoch}")
    for rank, member in enumerate(found.members.members):
        memory = f"{member.memory_bytes / 2**30:.1f} GiB" if member.memory_bytes else "no memory limit"
        click.echo(f"worker {rank}: {member.label}, {member.address}, {member.threads} threads, {memory}")
    for client in found.clients:
        click.echo(f"client: {client}")
    for job, state in found.jobs:
        click.echo(f"job {job}: {state}")


ASKING = (keygen, revoke, stop, drain, scale, status)
"""All of them."""
