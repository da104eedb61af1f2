"""Frames that nobody should send, to every port of a cluster: nobody dies, and nothing runs.

For each kind of stranger (without a key, with a wrong one, with a right one before and after the greeting,
plain bytes, and a process of another user, over TCP and at local sockets that he can reach) random damage to
right messages, and all that has harmed clusters before, goes to the ports of master and workers, while a
client's programs go on.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import numpy as np

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.backends.nanny import Process
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire.keys import Keys
from spartan_ng.wire.strangers import OF_A_HOST
from tests.cluster.programs import doubled, evaluate
from tests.faults.keyed import KeyedCluster
from tests.faults.payloads import any_message, the_fifteen
from tests.faults.stranger import KINDS, crowd, noise, say, shout
from tests.faults.usage import own_bytes

MOST_STRANGERS_BYTES = 1 << 20
"""What a stranger's bytes may take of a process."""
_A_SECOND = 0.6 * OF_A_HOST.a_second
"""Strangers at one port, besides another user's process: those who come too often are not even heard."""
_PAUSE_S = 0.1
"""Between two of a client's programs."""
_WARM = 20
"""What a program takes when it runs for the first times is nobody's harm."""
_CROWD = 40
"""Strangers who send much at once."""
PLAIN, LOCAL = "plain bytes", "another user at local sockets"
IS_ROOT = os.geteuid() == 0
ANYBODY = (*KINDS, PLAIN, *(("another user",) if IS_ROOT else ()))
"""Who can reach a port over TCP; only root can be another user."""


@dataclass(slots=True)
class Ports:
    """A cluster of real processes, and what its client knows."""

    client: ClusterBackend
    processes: list[Process]
    addresses: list[tuple[str, bytes]]
    """Of the master and of each worker, in the order of the processes, with the keys that prove them."""
    keys: Path | None = None

    @classmethod
    def of(cls, cluster: LocalCluster, client: ClusterBackend) -> Ports:
        """The ports of a cluster that runs."""
        members = {int(m.label.split()[1]): m for m in client.status().members.members}
        assert cluster.master is not None, "the cluster runs"
        workers = sorted(cluster.workers, key=lambda w: w.pid)
        keys = cluster.keys if isinstance(cluster, KeyedCluster) else None
        server = b"" if keys is None else Keys.load(keys, "client").server_public
        theirs = [(members[w.pid].address, members[w.pid].key.encode()) for w in workers]
        return cls(client, [cluster.master, *workers], [(cluster.address, server), *theirs], keys)

    @property
    def dead(self) -> int:
        """Processes that have ended."""
        return sum(p.poll() is not None for p in self.processes)

    def check(self) -> None:
        """Run a program, whose answer must be right."""
        x = np.arange(400_000.0).reshape(4000, 100)
        np.testing.assert_array_equal(evaluate(Session(self.client), doubled(build.constant(x))), 2 * x)


@contextmanager
def running(cluster: LocalCluster) -> Iterator[Ports]:
    """The ports of a cluster, while it runs."""
    cluster.start()
    try:
        client = cluster.connect()
        try:
            yield Ports.of(cluster, client)
        finally:
            client.close()
    finally:
        cluster.stop()


@contextmanager
def cluster_with_keys(workers: int) -> Iterator[Ports]:
    """A master and workers on loopback, and a client."""
    with running(KeyedCluster(workers, restart=False, timeout_s=120.0)) as ports:
        yield ports


@contextmanager
def cluster_within_reach(workers: int) -> Iterator[Ports]:
    """A local cluster whose folder stops nobody, so that its processes have to ask the kernel."""
    with running(LocalCluster(workers, restart=False, timeout_s=120.0)) as ports:
        ports.check()  # everybody is connected to everybody: nobody would connect there now
        for address, _ in ports.addresses:
            socket = Path(address.removeprefix("ipc://"))
            socket.parent.chmod(0o755)
            socket.chmod(0o777)
        yield ports


@dataclass(slots=True)
class Found:
    """What came of a campaign."""

    messages: dict[str, int] = field(default_factory=dict)
    """By kind of stranger."""
    dead: int = 0
    ran: bool = False
    stranger_bytes: int = 0
    """What one stranger of many takes of a process that he sends much to."""
    memory: dict[str, list[int]] = field(default_factory=dict)
    """What each process had taken before, most meanwhile, and after."""

    @property
    def is_bad(self) -> bool:
        """Whether something has done harm."""
        return bool(self.dead or self.ran) or self.stranger_bytes > MOST_STRANGERS_BYTES


class Campaign:
    """`count` messages for each port and each kind of stranger."""

    def __init__(self, count: int, seed: int) -> None:
        self.found = Found()
        self._count = count
        self._draw = random.Random(seed)

    def harm_all(self, workers: int) -> Found:
        """A cluster with keys, and one of another user's."""
        with cluster_with_keys(workers) as ports:
            self.harm(ports, "with keys", ANYBODY)
        if IS_ROOT:
            with cluster_within_reach(workers) as ports:
                self.harm(ports, "local", (LOCAL,))
        return self.found

    def harm(self, ports: Ports, name: str, kinds: Sequence[str]) -> None:
        """Send to all ports of a cluster, while its client is served."""
        names = [f"{name}: {f'worker {i - 1}' if i else 'master'}" for i in range(len(ports.processes))]

        def look() -> None:
            for at, process in zip(names, ports.processes, strict=True):
                self.found.memory.setdefault(at, []).append(own_bytes(process.pid))

        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(64) as pool:
            mark = Path(folder) / "it_ran"
            for _ in range(_WARM):
                ports.check()
            look()
            sent: list[Future[None]] = []
            for address, server in ports.addresses:
                pace = Pace(_A_SECOND)
                for kind in kinds:
                    seed = self._draw.randrange(1 << 32)
                    sent.append(pool.submit(self._send, address, server, kind, ports.keys, mark, seed, pace))
                    self.found.messages[kind] = self.found.messages.get(kind, 0) + self._count
            while wait(sent, _PAUSE_S).not_done:
                ports.check()
                look()
            for future in sent:
                future.result()
            ports.check()
            look()
            self.found.ran |= mark.exists()
        for (address, _), process in zip(ports.addresses, ports.processes, strict=True):
            each = crowd(address, _CROWD, process.pid, ports.check)
            self.found.stranger_bytes = max(self.found.stranger_bytes, each)
        self.found.dead += ports.dead

    def _send(
        self, address: str, server: bytes, kind: str, folder: Path | None, mark: Path, seed: int, pace: Pace
    ) -> None:
        """All messages of one kind of stranger to one port."""
        if "another user" in kind:
            _by_another_user(address, self._count, seed, mark)
            return
        assert folder is not None, "who is of the same user is let in at local sockets"
        keys = Keys.load(folder, "client")
        draw = random.Random(seed)
        known = [*the_fifteen(mark).values(), *any_message(mark)]
        sent = 0
        while sent < self._count:
            pace.wait()
            if kind == PLAIN:
                sent += shout(address, noise(draw))
            else:
                sent += say(address, kind, keys, server, draw, known)


class Pace:
    """So many times a second, whatever number of threads it is asked by."""

    def __init__(self, a_second: float) -> None:
        self._step_s = 1.0 / a_second
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when it is one's turn."""
        with self._lock:
            now = time.monotonic()
            self._next = max(now, self._next + self._step_s)
            pause = self._next - now
        time.sleep(pause)


def _by_another_user(address: str, count: int, seed: int, mark: Path) -> None:
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.another_user", address, str(count), str(seed), str(mark)],
        env={**os.environ, "PYTHONPATH": paths},
        check=False,
    )
    assert done.returncode == 0, "another user has come to an end of his own"


@click.command()
@click.option("--count", default=10_000, show_default=True, help="Messages for each port and kind.")
@click.option("--seed", type=int, help="Of the random damage; drawn and printed if it is not given.")
@click.option("--workers", default=1, show_default=True, help="How many workers there are.")
def frames(count: int, seed: int | None, workers: int) -> None:
    """Send COUNT messages that nobody should send, from each kind of stranger to each port."""
    seed = random.randrange(1 << 32) if seed is None else seed
    click.echo(f"seed {seed}")
    found = Campaign(count, seed).harm_all(workers)
    for kind, number in found.messages.items():
        click.echo(f"{kind}: {number:,} messages")
    for name, taken in found.memory.items():
        before, most, after = (n / 1e6 for n in (taken[0], max(taken), taken[-1]))
        click.echo(f"{name}: {before:.1f} MB before, {most:.1f} at most, {after:.1f} after")
    click.echo(f"{found.dead} dead, {int(found.ran)} ran, {found.stranger_bytes:,} bytes of a stranger")
    sys.exit(found.is_bad)
