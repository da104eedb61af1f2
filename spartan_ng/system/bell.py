"""What wakes a loop that waits for sockets: rung by any thread, seen as something to read."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


class Bell:
    """One descriptor, an eventfd; two sockets where there are none."""

    def __init__(self) -> None:
        self._ends: tuple[socket.socket, ...] = ()
        if hasattr(os, "eventfd"):
            self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            return
        self._ends = socket.socketpair()  # as on macOS and Windows
        for end in self._ends:
            end.setblocking(False)
        self.descriptor = self._ends[0].fileno()

    def ring(self) -> None:
        """Have the descriptor be one that can be read; OSError once it is closed."""
        if not self._ends:
            os.eventfd_write(self.descriptor, 1)
            return
        with suppress(BlockingIOError):  # it has been rung often enough
            self._ends[1].send(b"!")

    def quiet(self) -> None:
        """Have nothing to read until it is rung again."""
        with suppress(BlockingIOError):
            if not self._ends:
                os.eventfd_read(self.descriptor)
            # All rings are one: until nothing is left, which raises.
            while self._ends:
                self._ends[0].recv(1 << 12)

    def close(self) -> None:
        """Ring no more."""
        if not self._ends:
            os.close(self.descriptor)
        for end in self._ends:
            end.close()
