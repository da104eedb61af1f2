"""Hosts on this machine: network namespaces on one switch, which can be cut from each other, by root."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Self

_NOBODY_HERE = "02:00:00:00:00:01"
"""An Ethernet address that no host has: what is sent there is lost without a word."""

_OPEN = ("state", "established")


def ip(*arguments: str) -> str:
    """What `ip` says; RuntimeError where it cannot do it."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


@cache
def are_possible() -> bool:
    """Whether hosts can be made here."""
    if shutil.which("ip") is None:
        return False
    try:
        with Hosts(1):
            return True
    except RuntimeError:
        return False


class Hosts:
    """`count` hosts on one switch, for as long as a `with` block."""

    _made = 0

    def __init__(self, count: int) -> None:
        Hosts._made += 1
        self._name = f"spartan-{os.getpid()}-{Hosts._made}"
        self.addresses = [f"10.213.8.{n + 1}" for n in range(count)]
        self._switch = f"{self._name}-s"

    def __enter__(self) -> Self:
        try:
            ip("netns", "add", self._switch)
            ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
            ip("-n", self._switch, "link", "set", "switch", "up")
            for n, address in enumerate(self.addresses):
                self._add(n, address)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self._switch, *map(self.name, range(len(self.addresses)))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def name(self, host: int) -> str:
        """A host's name, as `ip netns` knows it."""
        return f"{self._name}-{host}"

    def on(self, host: int, command: Sequence[str]) -> list[str]:
        """The command that runs another on a host."""
        return ["ip", "netns", "exec", self.name(host), *command]

    @contextmanager
    def entered(self, host: int) -> Iterator[None]:
        """This thread, and the threads that it starts, are on a host."""
        with open("/proc/thread-self/ns/net") as before, open(f"/run/netns/{self.name(host)}") as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def cut(self, a: int, b: int) -> None:
        """Let nothing through between two hosts; neither hears why."""
        for here, there in ((a, b), (b, a)):
            self._neighbour("replace", here, there, "lladdr", _NOBODY_HERE, "nud", "permanent")

    def heal(self, a: int, b: int) -> None:
        """Let everything through again."""
        for here, there in ((a, b), (b, a)):
            self._neighbour("del", here, there)

    def are_connected(self, a: int, b: int) -> bool:
        """Whether either of two hosts believes that it has a connection to the other."""
        return any(
            self.addresses[there]
            in ip("netns", "exec", self.name(here), "ss", "-Htn", "state", "established")
            for here, there in ((a, b), (b, a))
        )

    def _neighbour(self, verb: str, here: int, there: int, *how: str) -> None:
        ip("-n", self.name(here), "neigh", verb, self.addresses[there], *how, "dev", "cable")

    def _add(self, n: int, address: str) -> None:
        name = self.name(n)
        ip("netns", "add", name)
        ends = ["link", "add", "cable", "netns", name, "type", "veth"]
        ip(*ends, "peer", "name", f"port{n}", "netns", self._switch)
        ip("-n", self._switch, "link", "set", f"port{n}", "master", "switch", "up")
        ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
        ip("-n", name, "link", "set", "cable", "up")
        ip("-n", name, "link", "set", "lo", "up")


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, 0) != 0:
        raise OSError(ctypes.get_errno(), "a network namespace cannot be entered")
