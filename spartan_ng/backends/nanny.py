"""A process of a cluster's, started again when it ends without having been told to.

A user's function may end its process or send it a signal, the system may, when memory is short, and a worker
leaves by itself when a function does not stop. Only its master, or the nanny's owner, ends a worker for good:
what the master says comes back through a pipe of the worker's own, which no exit code of a function's can be
taken for, and the owner tells the nanny first.

A process that was stopped (SIGSTOP) is lost to its cluster within seconds, and would never end: it is ended.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from spartan_ng.system.processes import never_wait_for, stands_still

_FAREWELL = b"for good"
_QUICK_S = 10.0
"""A process that ends sooner may do so again: the next one starts later."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
"""Between the end of a process and the next: twice as long each time, while they end quickly."""

_LOOK_S, _LOOKS = 1.0, 30
"""A process that stands still whenever it is looked at, so often, is ended."""


class Process(Protocol):
    """What `subprocess.Popen` has, and so have forks of a zygote."""

    pid: int
    returncode: Any

    def poll(self) -> int | None:
        """The exit code if it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended; subprocess.TimeoutExpired if it does not in so many seconds."""

    def send_signal(self, sig: int, /) -> None:
        """Signal it, if it has not ended."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


def say_farewell(descriptor: int) -> None:
    """Let the nanny at the other end of a pipe know that this process ends for good."""
    with suppress(OSError):  # a user's function has closed it, or the nanny is gone
        os.write(descriptor, _FAREWELL)


class Nanny:
    """Keeps one process of `start` running, beginning with the first.

    `start(descriptor)` makes one that inherits the descriptor, for `say_farewell`; any end without that is an
    accident. `replaced(before, now)` hears of every new process. One that ends within `quick_s` is likely to
    do so again.
    """

    def __init__(
        self,
        start: Callable[[int], Process],
        replaced: Callable[[Process, Process], None],
        quick_s: float = _QUICK_S,
    ) -> None:
        self._start = start
        self._quick_s = quick_s
        self._replaced = replaced
        self._farewell = -1
        self.process = self._begin()
        self._leaving = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="nanny", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Start no more processes. The present one goes on."""
        with self._lock:
            self._leaving.set()

    def wait(self) -> int:
        """Wait for the last process to end; its exit code."""
        self._thread.join()
        return self.process.wait()

    def _begin(self) -> Process:
        self._farewell, theirs = os.pipe()
        never_wait_for(self._farewell)  # what a function has started may hold the other end for ever
        try:
            return self._start(theirs)
        except BaseException:
            os.close(self._farewell)
            raise
        finally:
            os.close(theirs)

    def _has_said_farewell(self) -> bool:
        try:
            return os.read(self._farewell, len(_FAREWELL)) == _FAREWELL
        except BlockingIOError:
            return False
        finally:
            os.close(self._farewell)

    def _await_end(self) -> None:
        """Wait for the process to end, and see to it that it does if it stands still."""
        still = 0
        while True:
            try:
                self.process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                still = still + 1 if stands_still(self.process.pid) else 0
                if still == _LOOKS:
                    self.process.kill()
            else:
                return

    def _watch(self) -> None:
        pause = 0.0
        while True:
            begin = time.monotonic()
            self._await_end()
            if self._has_said_farewell():
                return
            quick = time.monotonic() - begin < self._quick_s
            pause = min(max(_PAUSE_S, 2 * pause), _LONGEST_PAUSE_S) if quick else 0.0
            # Also while it pauses, its owner may have it leave.
            if self._leaving.wait(pause):
                return
            # Between that and the start somebody may have called `leave`, and expects no further process.
            with self._lock:
                if self._leaving.is_set():
                    return
                before, self.process = self.process, self._begin()
                self._replaced(before, self.process)
