"""A worker's process, started again when it ends without having been told to.

A user's function may end its process, the system may, when memory is short, and a worker leaves by itself
when a function does not stop. A worker that leaves for good says so by its exit code.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

STOPPED, FAILED = 90, 91
"""Exit codes of a worker that was told to stop, and of one that cannot work; anything else is an accident."""
_QUICK_S = 10.0
"""A process that ends sooner may do so again: the next one starts later."""
_MOST_QUICK = 5
"""After so many in a row nobody starts another."""
_PAUSE_S = 0.2

Process = subprocess.Popen[bytes]


class Nanny:
    """Keeps one process of `start` running, beginning with the present one.

    `replaced(before, now)` hears of every new process.
    """

    def __init__(
        self, process: Process, start: Callable[[], Process], replaced: Callable[[Process, Process], None]
    ) -> None:
        self.process = process
        self._start = start
        self._replaced = replaced
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

    def _watch(self) -> None:
        quick = 0
        while True:
            begin = time.monotonic()
            code = self.process.wait()
            quick = quick + 1 if time.monotonic() - begin < _QUICK_S else 0
            if code in (STOPPED, FAILED) or quick > _MOST_QUICK:
                return
            if self._leaving.wait(_PAUSE_S * 2**quick if quick else 0.0):
                return
            with self._lock:
                if self._leaving.is_set():
                    return
                before, self.process = self.process, self._start()
                self._replaced(before, self.process)
