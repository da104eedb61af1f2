"""Workers on hosts of their own, cut from each other: jobs end right, or with a name within the timeout."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.errors import WorkerUnreachable
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire.keys import keygen
from tests.cluster.programs import evaluate, user
from tests.faults.hosts import Hosts

MASTER, A, B = 0, 1, 2
"""The hosts; the client is on the master's."""
_START_S = 120.0


@dataclass(slots=True)
class Severed:
    """A cluster of two workers, and a client."""

    hosts: Hosts
    client: ClusterBackend
    processes: list[subprocess.Popen[bytes]]

    def product(self) -> None:
        """A program in which each worker reads what the other has; its answer must be right."""
        rng = np.random.default_rng(0)
        x = rng.random((600, 200))
        rows = user(lambda tile: tile + 1.0, build.constant(x))
        with config.override(tiling="row"):
            found = evaluate(Session(self.client), build.matmul(build.transpose(rows, (1, 0)), rows, x.dtype))
        np.testing.assert_allclose(found, (x + 1.0).T @ (x + 1.0))

    def outcome(self) -> str:
        """What becomes of `product`: "right", or an error with a name."""
        try:
            self.product()
        except WorkerUnreachable as error:
            return f"WorkerUnreachable: {error}"
        return "right"


@contextmanager
def severable(timeout_s: float) -> Iterator[Severed]:
    """A master and a client on one host, workers on two others, with keys; nothing is cut yet."""
    with ExitStack() as stack:
        keys = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "keys"
        keygen(keys)
        hosts = stack.enter_context(Hosts(3))
        master = f"tcp://{hosts.addresses[MASTER]}:7077"
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(_end, processes)
        lifeline, held = os.pipe()
        for end in (lifeline, held):
            stack.callback(os.close, end)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
        for host, role in ((MASTER, ["master", "--address"]), *((h, ["worker", "--master"]) for h in (A, B))):
            alone = ["--threads", "1", "--lifeline", str(lifeline)] if role[0] == "worker" else []
            command = [sys.executable, "-m", "spartan_ng.cli", *role, master, *alone, "--keys", str(keys)]
            processes.append(subprocess.Popen(hosts.on(host, command), env=environment, pass_fds=(lifeline,)))
        with hosts.entered(MASTER):
            client = ClusterBackend.connect(master, keys, _START_S, workers=2)
        stack.callback(client.close)
        client._link.peers.timeout_s = timeout_s
        severed = Severed(hosts, client, processes)
        severed.product()
        assert hosts.are_connected(A, B), "the program needs both workers"
        yield severed


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


@click.command()
@click.option("--seconds", default=15.0, show_default=True, help="How long the workers are cut.")
@click.option("--timeout", default=30.0, show_default=True, help="config.timeout_s of the program.")
def netns(seconds: float, timeout: float) -> None:
    """Cut two workers from each other, for a while and then for ever, while programs run."""
    with severable(timeout) as severed:
        hosts = severed.hosts
        for cut_s in (1.0, seconds):
            hosts.cut(A, B)
            begin = time.monotonic()
            healing = threading.Timer(cut_s, hosts.heal, (A, B))
            healing.start()
            click.echo(f"cut for {cut_s:g} s: {severed.outcome()} after {time.monotonic() - begin:.1f} s")
            healing.join()
        hosts.cut(A, B)
        begin = time.monotonic()
        click.echo(f"cut for ever: {severed.outcome()} after {time.monotonic() - begin:.1f} s")
        hosts.heal(A, B)
        click.echo(f"and healed: {severed.outcome()}")
        dead = sum(p.poll() is not None for p in severed.processes)
        click.echo(f"{dead} processes have ended")
        sys.exit(dead > 0)
