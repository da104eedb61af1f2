"""Under which name and address others know this host."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from spartan_ng.wire.access import beside, is_local, is_loopback


def label() -> str:
    """Host and process, for people."""
    return f"pid {os.getpid()} on {socket.gethostname()}"


def address_towards(master: str, name: str) -> str:
    """Where a process called `name` can be reached by all who reach `master`: the folder of its socket, or a
    port of the interface that leads there."""
    if is_local(master):
        return beside(master, name)
    if is_loopback(master):
        return "tcp://127.0.0.1:*"
    parts = urlsplit(master)
    host = interface_towards(parts.hostname or "", parts.port)
    return f"tcp://[{host}]:*" if ":" in host else f"tcp://{host}:*"


def interface_towards(host: str, port: int | None = None) -> str:
    """The address of this machine's interface that leads to a host; OSError where none does."""
    family, kind, protocol, _, target = socket.getaddrinfo(host, port or 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(target)  # sends nothing: asks the routing table only
        return str(probe.getsockname()[0])
