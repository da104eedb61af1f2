"""What users' functions print goes to the program that runs them, line by line; the rest stays here."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import TextIO

from spartan_ng.kernels.user import current_job

_MOST = 1 << 16
"""Characters of a line without an end that are kept at most."""


class Prints(io.TextIOBase):
    """Stands in for the stream `beside`: `tell(job, lines)` gets the lines that functions write.

    What has no end of line yet waits for it, or for the job's end. Thread-safe.
    """

    def __init__(self, beside: TextIO, tell: Callable[[str, str], None]) -> None:
        self._beside = beside
        self._tell = tell
        self._begun: dict[str, str] = {}
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        """Take text from whoever writes."""
        job = current_job()
        if not job:
            return self._beside.write(text)
        with self._lock:
            whole, end, rest = (self._begun.pop(job, "") + text).rpartition("\n")
            if len(rest) > _MOST:
                whole, end, rest = whole + end + rest, "\n", ""
            if rest:
                self._begun[job] = rest
        if end:
            self._tell(job, whole)
        return len(text)

    def finish(self, job: str) -> None:
        """A job is over: tell what it has begun."""
        with self._lock:
            rest = self._begun.pop(job, "")
        if rest:
            self._tell(job, rest)

    def flush(self) -> None:
        """Flush the stream beside."""
        self._beside.flush()

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The stream's beside."""
        return self._beside.fileno()
