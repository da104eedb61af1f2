"""Frames that nobody should send, to every port of a cluster with keys: nobody dies, and nothing runs.

For each kind of stranger (without a key, with a wrong one, with a right one before and after the greeting,
and plain bytes) random damage to right messages, and all that has harmed clusters before, goes to the ports
of master and workers, while a client's programs go on.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire.keys import Keys, keygen
from tests.cluster.programs import doubled, evaluate
from tests.faults.payloads import any_message, damaged, the_fifteen
from tests.faults.stranger import KINDS, Stranger, noise, resident_bytes, shout

MOST_STRANGERS_BYTES = 1 << 20
"""What a stranger's bytes may take of a process."""
_EACH = 25
"""A client's program runs after so many messages."""
_LONG = 64 << 20
"""Bytes that a stranger sends at once."""


@dataclass(slots=True)
class Ports:
    """A cluster of real processes with keys, and what its client knows."""

    keys: Path
    client: ClusterBackend
    processes: list[subprocess.Popen[bytes]]
    addresses: list[tuple[str, bytes]]
    """Of the master and of each worker, with the keys that prove them."""

    @property
    def dead(self) -> int:
        """Processes that have ended."""
        return sum(p.poll() is not None for p in self.processes)

    def check(self) -> None:
        """Run a program, whose answer must be right."""
        x = np.arange(400_000.0).reshape(4000, 100)
        np.testing.assert_array_equal(evaluate(Session(self.client), doubled(build.constant(x))), 2 * x)


@contextmanager
def cluster_with_keys(workers: int = 2) -> Iterator[Ports]:
    """A master and workers on loopback, and a client."""
    with ExitStack() as stack:
        keys = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "keys"
        keygen(keys)
        processes: list[subprocess.Popen[bytes]] = []

        def end() -> None:
            for process in processes:
                process.terminate()
            for process in processes:
                process.wait()

        stack.callback(end)
        reading, writing = os.pipe()
        alive, _held = os.pipe()
        options = ["--address", "tcp://127.0.0.1:*", "--announce", str(writing)]
        processes.append(_daemon(keys, ["master", *options, "--lifeline", str(alive)], writing, alive))
        os.close(writing)
        with open(reading) as file:
            address = file.readline().strip()
        for _ in range(workers):
            role = ["worker", "--master", address, "--threads", "1", "--lifeline", str(alive)]
            processes.append(_daemon(keys, role, alive))
        client = ClusterBackend.connect(address, keys, timeout_s=120.0, workers=workers)
        stack.callback(client.close)
        members = client.status().members.members
        server = Keys.load(keys, "client").server_public
        addresses = [(address, server), *((m.address, m.key.encode()) for m in members)]
        yield Ports(keys, client, processes, addresses)
        for end_of_pipe in (alive, _held):
            os.close(end_of_pipe)


def _daemon(keys: Path, role: list[str], *descriptors: int) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "spartan_ng.cli", *role, "--keys", str(keys)],
        env={**os.environ, "PYTHONPATH": paths},
        pass_fds=descriptors,
        stderr=subprocess.DEVNULL,
    )


def campaign(count: int, seed: int) -> Counter[str]:
    """What came of `count` messages for each port and each kind of stranger."""
    draw = random.Random(seed)
    total: Counter[str] = Counter()
    with cluster_with_keys() as ports, tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "it_ran"
        known = [*the_fifteen(mark).values(), *any_message(mark)]
        keys = Keys.load(ports.keys, "client")
        ports.check()
        for address, server in ports.addresses:
            for kind in (*KINDS, "plain bytes"):
                for number in range(count):
                    if kind == "plain bytes":
                        shout(address, noise(draw))
                    else:
                        _say(address, kind, keys, server, draw, known)
                    total[kind] += 1
                    if number % _EACH == _EACH - 1:
                        ports.check()
        total["bytes of a stranger"] = _greed(ports)
        ports.check()
        total["dead"] = ports.dead
        total["ran"] = mark.exists()
    return total


def _say(
    address: str, kind: str, keys: Keys, server: bytes, draw: random.Random, known: list[list[bytes]]
) -> None:
    with Stranger(address, kind, keys, server) as stranger:
        for _ in range(draw.randint(1, 3)):
            stranger.say(damaged(draw, known) if draw.random() < 0.8 else draw.choice(known))
        stranger.is_cut_off(0.02)


def _greed(ports: Ports) -> int:
    """What a stranger takes of the memory of a process, by sending much that does not end."""
    worst = 0
    head = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
    for (address, _), process in zip(ports.addresses, ports.processes, strict=True):
        for sort in (b"\x06", b"\x02", b"\x03"):
            shout(address, head + sort + _LONG.to_bytes(8, "big") + bytes(16))
        ports.check()
        before = resident_bytes(process.pid)
        for sort in (b"\x06", b"\x02", b"\x03"):
            shout(address, head + sort + _LONG.to_bytes(8, "big") + bytes(_LONG))
        worst = max(worst, resident_bytes(process.pid) - before)
    return worst


@click.command()
@click.option("--count", default=10_000, show_default=True, help="Messages for each port and kind.")
@click.option("--seed", type=int, help="Of the random damage; drawn and printed if it is not given.")
def frames(count: int, seed: int | None) -> None:
    """Send COUNT messages that nobody should send, from each kind of stranger to each port."""
    seed = random.randrange(1 << 32) if seed is None else seed
    click.echo(f"seed {seed}")
    total = campaign(count, seed)
    for what, number in total.items():
        click.echo(f"{what}: {number:,}")
    sys.exit(bool(total["dead"] or total["ran"]) or total["bytes of a stranger"] > MOST_STRANGERS_BYTES)
