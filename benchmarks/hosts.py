"""Hosts of one machine: network namespaces on a bridge, each with a cable of a set rate in both directions.

Processes in different namespaces share nothing but the wire. It takes root, `ip` and `tc`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.errors import ConnectionFailed
from spartan_ng.wire.keys import keygen

_NETWORK = "10.213.9"
_START_S = 30.0


class NoHosts(Exception):
    """Network namespaces, or cables of a set rate, cannot be made here; says what failed."""


@contextmanager
def cluster_of_hosts(count: int, rate: str = "1gbit") -> Iterator[ClusterBackend]:
    """A client of workers with one thread, each on a host of its own; the master is on this one.

    Raises
    ------
    NoHosts : namespaces cannot be made
    """
    with ExitStack() as stack:
        # Namespaces outlive their maker: being stopped has to unwind the stack, too.
        before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        stack.callback(signal.signal, signal.SIGTERM, before)
        names = _connected(stack, count, rate)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keygen(directory)
        master = f"tcp://{_NETWORK}.254:7078"
        keys = ["--keys", str(directory)]
        _spawn(stack, [], "master", "--address", master, *keys)
        for name in names:
            inside = ["ip", "netns", "exec", name]
            _spawn(stack, inside, "worker", "--master", master, "--threads", "1", *keys)
        backend = ClusterBackend.connect(master, str(directory), timeout_s=_START_S, workers=0)
        stack.callback(backend.close)
        deadline = time.monotonic() + _START_S
        while not backend.wait_for_workers(count, 0.1):
            if time.monotonic() > deadline:
                raise ConnectionFailed(f"{count} workers in namespaces do not join within {_START_S:g} s")
        yield backend


def _connected(stack: ExitStack, count: int, rate: str) -> list[str]:
    """The names of `count` namespaces on one bridge."""
    bridge = f"sb{os.getpid()}"
    _run("ip", "link", "add", bridge, "type", "bridge")
    stack.callback(_run, "ip", "link", "del", bridge)
    _run("ip", "addr", "add", f"{_NETWORK}.254/24", "dev", bridge)
    _run("ip", "link", "set", bridge, "up")
    names = []
    shape = ["tbf", "rate", rate, "burst", "256kb", "latency", "50ms"]
    for i in range(count):
        name, here, there = f"{bridge}n{i}", f"{bridge}v{i}", f"{bridge}w{i}"
        _run("ip", "netns", "add", name)
        stack.callback(_run, "ip", "netns", "del", name)
        _run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        _run("ip", "link", "set", here, "master", bridge, "up")
        _run("ip", "-n", name, "addr", "add", f"{_NETWORK}.{i + 1}/24", "dev", there)
        for device in (there, "lo"):
            _run("ip", "-n", name, "link", "set", device, "up")
        _run("tc", "qdisc", "add", "dev", here, "root", *shape)
        _run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", there, "root", *shape)
        names.append(name)
    return names


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoHosts(f"{command[0]} is not installed") from error
    if done.returncode:
        raise NoHosts(f"{' '.join(command)}: {done.stderr.strip()}")


def _spawn(stack: ExitStack, prefix: list[str], *arguments: str) -> None:
    """A daemon that ends with the stack."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    command = [*prefix, sys.executable, "-m", "spartan_ng.cli", *arguments]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    def end() -> None:
        process.terminate()
        process.wait(_START_S)

    stack.callback(end)
