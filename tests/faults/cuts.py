"""Programs on a cluster whose connections are cut, slow and lossy: right answers or named errors, no hangs.

Client, master and workers are the real ones; their loops are those of a simulated network.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing import get_context
from random import Random
from unittest.mock import patch

import click
import numpy as np

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.errors import SpartanError
from spartan_ng.master.server import MasterServer
from spartan_ng.session import Session
from spartan_ng.wire.access import Access
from spartan_ng.worker.server import WorkerServer
from tests.faults.network import Network, connection_of
from tests.faults.soak import JOBS

WORKERS = 3
OPEN = Access(insecure=True)
"""What proves who somebody is has tests of its own."""
TILINGS = (None, "row", "column", "block")
_HANG_S = 300.0
"""A program that takes longer than this, on however busy a machine, hangs."""
_GIVES_UP_S = 60.0
"""How long a client looks for a master that is cut off for good, by the network's clock: on a busy machine it
is no faster than any other."""


class Cluster:
    """A client, a master and workers on hosts of their own."""

    def __init__(self, network: Network, shares_memory: bool) -> None:
        self.network = network
        self._stack = ExitStack()
        self._stack.enter_context(patch("spartan_ng.worker.network.long_reads.LONG_BYTES", 1 << 16))
        self._stack.enter_context(patch("spartan_ng.worker.network.long_reads.PART_BYTES", 1 << 14))
        self._stack.enter_context(patch("spartan_ng.wire.port._connection", connection_of))
        if not shares_memory:
            for place in ("worker.server", "worker.network.transfer"):
                self._stack.enter_context(patch(f"spartan_ng.{place}.host_identity", lambda: ""))
        with patch("spartan_ng.master.server.Loop", lambda *on_error: network.loop("master")):
            self.master = MasterServer("tcp://127.0.0.1:*", OPEN)
        self.workers = []
        for n in range(WORKERS):
            with patch("spartan_ng.worker.server.Loop", lambda *on_error, n=n: network.loop(f"worker {n}")):
                self.workers.append(WorkerServer(self.master.address, access=OPEN, bind="tcp://127.0.0.1:*"))
        self._threads = [
            threading.Thread(target=self._serve, args=(server,), daemon=True)
            for server in (self.master, *self.workers)
        ]
        for thread in self._threads:
            thread.start()
        with patch("spartan_ng.backends.reconnecting.Loop", lambda: network.loop("client")):
            self.client = ClusterBackend.connect(
                self.master.address, timeout_s=_GIVES_UP_S, workers=WORKERS, insecure=True
            )
        self.client._link.peers.timeout_s = 30.0  # by the network's clock

    @staticmethod
    def _serve(server: MasterServer | WorkerServer) -> None:
        with suppress(SpartanError):  # a worker that was cut from its master for long ends, and says so
            server.run()

    def close(self) -> None:
        """Stop all of them."""
        self.client.close()
        for worker in self.workers:
            worker.stop()
        self.master.stop()
        for thread in self._threads:
            thread.join(_HANG_S)
        self.network.close()
        self._stack.close()


def arranged(seed: int) -> Network:
    """A network with delays, losses and cuts of its own; the cuts come in the middle of the traffic."""
    rng = Random(seed)
    loss = rng.choice([0.0, 0.0, 0.01, 0.1])
    network = Network(seed, delay_s=rng.choice([0.0, 0.001, 0.05]), loss=loss)
    for _ in range(rng.randint(1, 5)):
        seconds = rng.choice([0.1, 3.0, 15.0, 15.0, 25.0, None])
        network.after_message[rng.randint(40, 300)] = partial(network.cut_one, seconds)
    return network


def outcomes(seed: int, jobs: int = 8) -> Counter[str]:
    """What became of the jobs of one program: "right", or the error's name; raises what has no name."""
    rng = np.random.default_rng(seed)
    network = arranged(seed)
    cluster = Cluster(network, shares_memory=bool(seed % 2))
    found: Counter[str] = Counter()
    try:
        session = Session(cluster.client)
        for kind in rng.integers(0, len(JOBS), jobs):
            try:
                with config.override(tiling=TILINGS[rng.integers(len(TILINGS))]):
                    JOBS[kind](session, rng)
                found["right"] += 1
            except SpartanError as error:
                found[type(error).__name__] += 1
    finally:
        cluster.close()
    found["connections broken"] = network.broken
    return found


def watched(seed: int) -> Counter[str]:
    """As `outcomes`; a hang is shown with every thread's stack, and ends the process."""
    faulthandler.dump_traceback_later(_HANG_S, exit=True)
    try:
        return outcomes(seed)
    finally:
        faulthandler.cancel_dump_traceback_later()


@click.command()
@click.option("--count", default=500, show_default=True, help="How many programs.")
@click.option("--seed", default=0, show_default=True, help="The first one's seed.")
@click.option("--processes", default=4, show_default=True, help="How many run at a time; they mostly wait.")
def cuts(count: int, seed: int, processes: int) -> None:
    """Run COUNT programs over networks that break in seeded ways."""
    total: Counter[str] = Counter()
    begin = time.monotonic()
    seeds = range(seed, seed + count)
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for number, found in zip(seeds, pool.map(watched, seeds), strict=True):
            click.echo(f"seed {number}: {dict(found)}", err=True)
            total += found
    click.echo(f"{count} programs in {time.monotonic() - begin:.0f} s: {dict(total)}, no hang")
    sys.exit(0)
