"""Which connections a socket of ZeroMQ's has; they end before the socket does.

libzmq 4.3 ends the whole process (`errno_assert` in `session_base_t::clean_pipes`) where a connection breaks
while its socket is being closed, and a message of several frames was sent in part. So whoever closes a socket
cuts its connections first, and waits until ZeroMQ has noticed: what has no connection has none to lose.
"""

from __future__ import annotations

import os
import socket as sockets
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress

import zmq
from msgspec import Struct

from spartan_ng.system.sockets import is_in_folder, received_bytes

_EVENT_BYTES, _VALUE_BYTES = 2, 4
"""How a monitor's message begins (zmq_socket_monitor(3)); pyzmq's parser imports all of asyncio."""
_LOCAL_BYTES = 1 << 20
"""What may be on its way over a local socket, where the system allows so much: with its usual 208 kB the two
ends wake each other up five times as often."""
_NOTICE_S = 1.0
"""ZeroMQ notices an end at once, but where it reads no more: there it never does, and nothing breaks."""


class Connection(Struct, frozen=True):
    """One connection, to be cut; told by its inode from a later one with the same descriptor."""

    descriptor: int
    inode: int

    @classmethod
    def of(cls, descriptor: int) -> Connection:
        """The connection that has a descriptor now."""
        return cls(descriptor, _inode(descriptor))

    @property
    def host(self) -> str | None:
        """The address of the host at the other end; "" for a local socket's, None where it has ended."""
        with suppress(OSError), self._socket() as end:
            if end is not None:
                name = end.getpeername()
                return str(name[0]) if isinstance(name, tuple) else ""
        return None

    @property
    def received_bytes(self) -> int:
        """What has come over TCP, read or not; 0 where the system does not say."""
        with suppress(OSError), self._socket() as end:
            if end is not None:
                return received_bytes(end)
        return 0

    def cut(self) -> None:
        """End it, if it has not ended yet; ZeroMQ sees an end of file."""
        with suppress(OSError), self._socket() as end:
            if end is not None:
                end.shutdown(sockets.SHUT_RDWR)

    def widen(self) -> None:
        """Let more be on its way, where it is a local socket's; TCP finds out by itself."""
        with suppress(OSError), self._socket() as end:
            if end is not None and is_in_folder(end):
                end.setsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF, _LOCAL_BYTES)

    @contextmanager
    def _socket(self) -> Iterator[sockets.socket | None]:
        """The socket itself for a moment, where it is still the same."""
        if not self.inode:
            yield None
            return
        # A descriptor of our own, so that the one that is looked at is the one that is cut.
        with sockets.socket(fileno=os.dup(self.descriptor)) as end:
            yield end if _inode(end.fileno()) == self.inode else None


class Monitor:
    """Follows the connections of a `socket` that has none yet; `handler` hears what happens to them."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self.handler: Callable[[int], None] | None = None
        self._socket = socket
        self.events: zmq.Socket[bytes] = socket.get_monitor_socket()
        self.events.linger = 0
        self._open: dict[int, Connection] = {}

    @property
    def connections(self) -> Collection[Connection]:
        """Those that have not ended, the oldest first."""
        return self._open.values()

    def read(self) -> None:
        """Take notice of what has happened."""
        for event in self._news():
            if self.handler is not None:
                self.handler(event)

    def part(self) -> None:
        """Cut all connections, and wait until ZeroMQ has noticed."""
        deadline = time.monotonic() + _NOTICE_S
        # What has begun before is to be cut as well.
        for _ in self._news():
            pass
        for connection in self._open.values():
            connection.cut()
        while self._open and self.events.poll(max(0, int((deadline - time.monotonic()) * 1000))):
            for event in self._news():
                # The socket listens until it is closed: somebody may still come.
                if event == zmq.EVENT_ACCEPTED:
                    self._open[next(reversed(self._open))].cut()

    def close(self) -> None:
        """Follow no longer."""
        self._socket.disable_monitor()
        self.events.close()

    def _news(self) -> Iterator[int]:
        """Events that nobody has heard of yet."""
        with suppress(zmq.Again):
            while True:
                text = self.events.recv_multipart(zmq.NOBLOCK)[0]
                event = int.from_bytes(text[:_EVENT_BYTES], sys.byteorder)
                descriptor = int.from_bytes(text[_EVENT_BYTES:][:_VALUE_BYTES], sys.byteorder)
                if event in (zmq.EVENT_ACCEPTED, zmq.EVENT_CONNECTED):
                    # The end of the one before was not read yet; the new one is to be the last in order.
                    self._open.pop(descriptor, None)
                    self._open[descriptor] = Connection.of(descriptor)
                    self._open[descriptor].widen()
                elif event == zmq.EVENT_DISCONNECTED:
                    self._open.pop(descriptor, None)
                yield event


def _inode(descriptor: int) -> int:
    """The number of an open socket; 0 where it is none."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return 0
    return status.st_ino if stat.S_ISSOCK(status.st_mode) else 0
