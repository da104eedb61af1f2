"""A worker's process, started again when it ends without having been told to.

A user's function may end its process or send it a signal, the system may, when memory is short, and a worker
leaves by itself when a function does not stop. Only its master, or the nanny's owner, ends a worker for good:
what the master says comes back as its exit code, and the owner tells the nanny first.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable

STOPPED, FAILED = 90, 91
"""Exit codes of a worker that its master told to stop, and of one that cannot work; anything else, as the end
by a signal, is an accident."""
_QUICK_S = 10.0
"""A process that ends sooner may do so again: the next one starts later."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
"""Between the end of a process and the next: twice as long each time, while they end quickly."""

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
        pause = 0.0
        while True:
            begin = time.monotonic()
            code = self.process.wait()
            if code in (STOPPED, FAILED):
                return
            quick = time.monotonic() - begin < _QUICK_S
            pause = min(max(_PAUSE_S, 2 * pause), _LONGEST_PAUSE_S) if quick else 0.0
            if self._leaving.wait(pause):
                return
            with self._lock:
                if self._leaving.is_set():
                    return
                before, self.process = self.process, self._start()
                self._replaced(before, self.process)
