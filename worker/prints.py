"""What users' functions print goes to the program that runs them, line by line; the rest stays here."""

from __future__ import annotations

import codecs
import io
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self, TextIO, cast

from spartan_ng.kernels.user import current_job

_MOST = 1 << 16
"""Characters of a line without an end that are kept at most."""
MOST_OF_A_JOB = 1 << 24
"""Characters of a job that are told; what waits on its way, here and in the master, is no more."""
_CUT = "more than {:,} characters have been printed; the rest is not shown"
_JOBS = 1024
"""Whose characters are counted."""

_decoder = codecs.getincrementaldecoder("utf-8")


class _Written(io.BufferedIOBase):
    """What bytes are written to that are somebody's text: a stream's `buffer`."""

    def __init__(self, stream: Prints) -> None:
        self._stream = stream
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._lock = threading.Lock()
        self.raw = self

    def close(self) -> None:
        """Others print, too."""

    def write(self, data: Any) -> int:
        """Take bytes from whoever writes; a character's may come one by one."""
        found = bytes(memoryview(data).cast("B"))
        with self._lock:
            decoder = self._decoders.setdefault(current_job() or "", _decoder("backslashreplace"))
            text = decoder.decode(found)
        self._stream.write(text)
        return len(found)

    def finish(self, job: str) -> None:
        """A job is over."""
        decoder = self._decoders.pop(job, None)
        if decoder is not None and (rest := decoder.decode(b"", final=True)):
            self._stream.take(job, rest)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The stream's."""
        return self._stream.fileno()


class Prints(io.TextIOBase):
    """Stands in for the stream `beside`: `tell(job, lines)` gets the lines that functions write.

    What has no end of line yet waits for it, or for the job's end. Thread-safe.
    """

    encoding = "utf-8"
    errors = "backslashreplace"
    line_buffering, write_through = True, False
    mode = "w"

    def __init__(self, beside: TextIO, tell: Callable[[str, str], None]) -> None:
        self._beside = beside
        self._tell = tell
        self._begun: dict[str, str] = {}
        self._told: dict[str, int] = {}
        self._lock = threading.Lock()
        self.buffer = _Written(self)
        self.name = getattr(beside, "name", "<stream>")

    @classmethod
    def install(cls, tell: Callable[[str, str], None]) -> list[Self]:
        """Stand in for this process's streams."""
        found = [cls(sys.stdout, tell), cls(sys.stderr, tell)]
        sys.stdout, sys.stderr = (cast("TextIO", stream) for stream in found)
        return found

    @staticmethod
    def stay(streams: Sequence[Prints]) -> None:
        """Be there again where a function has removed what was installed."""
        for name, stream in zip(("stdout", "stderr"), streams, strict=False):
            present = getattr(sys, name, None)
            if present is None or present.closed:
                setattr(sys, name, stream)

    def close(self) -> None:
        """Others print, too."""

    def write(self, text: str) -> int:
        """Take text from whoever writes."""
        job = current_job()
        if not job:
            return self._beside.write(text)
        self.take(job, text)
        return len(text)

    def take(self, job: str, text: str) -> None:
        """Take a job's text."""
        with self._lock:
            whole, end, rest = (self._begun.pop(job, "") + text).rpartition("\n")
            if len(rest) > _MOST:
                whole, end, rest = whole + end + rest, "\n", ""
            if rest:
                self._begun[job] = rest
        if end:
            self._say(job, whole)

    def _say(self, job: str, text: str) -> None:
        """Tell lines, but not more than a program can be expected to want."""
        with self._lock:
            before = self._told.pop(job, 0)
            self._told[job] = before + len(text)
            if len(self._told) > _JOBS:
                del self._told[next(iter(self._told))]
        left = MOST_OF_A_JOB - before
        if left >= 0:
            self._tell(job, text if len(text) <= left else text[:left] + "\n" + _CUT.format(MOST_OF_A_JOB))

    def finish(self, job: str) -> None:
        """A job is over: tell what it has begun."""
        self.buffer.finish(job)
        with self._lock:
            rest = self._begun.pop(job, "")
        if rest:
            self._say(job, rest)

    def flush(self) -> None:
        """Flush the stream beside."""
        self._beside.flush()

    def detach(self) -> Any:
        """What bytes are written to; others print, too."""
        return self.buffer

    def reconfigure(self, **_: Any) -> None:
        """Nothing: what is told is text, line by line."""

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The stream's beside."""
        return self._beside.fileno()
