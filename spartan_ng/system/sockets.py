"""What Linux knows of a connection beyond what it carries."""

from __future__ import annotations

import socket
import sys

_RECEIVED_AT, _INFO_BYTES = 128, 136
"""Where Linux's `struct tcp_info` has the bytes that were received, eight of them."""


def is_in_folder(end: socket.socket) -> bool:
    """Whether it is a socket in a folder."""
    return hasattr(socket, "AF_UNIX") and end.family == socket.AF_UNIX


def received_bytes(end: socket.socket) -> int:
    """What has come over TCP, read or not; 0 where the system does not say, OSError where it has ended."""
    if sys.platform != "linux" or is_in_folder(end):
        return 0
    info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    return int.from_bytes(info[_RECEIVED_AT:_INFO_BYTES], sys.byteorder)


def answers(path: str) -> bool:
    """Whether somebody serves at the socket of that name."""
    if not hasattr(socket, "AF_UNIX"):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            # The file stays when its server was killed, and then refuses.
            probe.connect(path)
        except OSError:
            return False
    return True


def user_of(address: str) -> int:
    """The user at the other end of a local socket, by SO_PEERCRED, as libzmq says `name:user:group:process`;
    -1 for any other address."""
    parts = address.split(":")
    return int(parts[-3]) if len(parts) >= 4 and parts[-3].isdigit() else -1


def process_of(address: str) -> int:
    """The process at the other end of a local socket, as the kernel knows it; 0 for any other address."""
    parts = address.split(":")
    return int(parts[-1]) if len(parts) >= 4 and parts[-1].isdigit() else 0
