"""Where users' functions spend their time: their threads' stacks, seen now and then while somebody looks.

A stack is a line, the function that the program gave first: `f (a.py:3);g (a.py:9)`, as in B. Gregg, The
Flame Graph, CACM 59/6 (2016). Nobody is woken where nobody looks, or no function runs.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import CodeType, FrameType

from spartan_ng.callers import is_ours
from spartan_ng.events import SAMPLE, Event, now_ns, record
from spartan_ng.texts import encodable

PERIOD_S = 0.02
"""Between two looks; a look takes some ten microseconds."""
_TELL_NS = 200_000_000
_DEEPEST, _LONGEST = 48, 100
"""Functions of a stack, and characters of one, that are told."""


class Sampler:
    """Looks at the threads of `calls()` while there are any, and at what they do behind the code `door()`.

    `calls()` gives the jobs by the threads in which functions run for them.
    """

    def __init__(self, calls: Callable[[], Mapping[int, str]], door: Callable[[], CodeType]) -> None:
        self._calls, self._door = calls, door
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """A function is being called while somebody looks."""
        if self._wanted.is_set():
            return
        with self._lock:
            self._wanted.set()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sampling", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._wanted.wait():
            self._wanted.clear()  # first: a call that comes while we end is not to be missed
            seen: Counter[tuple[str, str]] = Counter()
            told_ns = before_ns = now_ns()
            found: list[tuple[str, str]] | None = None
            while found != [] and record.is_on:
                time.sleep(PERIOD_S)  # before it looks: many functions are called again and again
                at_ns = now_ns()
                found = self._look()
                for each in found:
                    seen[each] += at_ns - before_ns
                before_ns = at_ns
                if not found or at_ns - told_ns >= _TELL_NS:
                    self._tell(seen, at_ns)
                    told_ns = at_ns

    def _look(self) -> list[tuple[str, str]]:
        """The job and the stack of each function that runs."""
        frames = sys._current_frames()
        running = [(job, frames.get(thread)) for thread, job in self._calls().items()]
        return [(job, text) for job, frame in running if frame is not None and (text := self._stack(frame))]

    def _stack(self, frame: FrameType) -> str:
        """A thread's stack from its first function on; empty where it has just left it."""
        found: list[CodeType] = []
        door, inside = self._door(), 0
        above: FrameType | None = frame
        while above is not None:
            code, above = above.f_code, above.f_back
            if code is door:
                inside = len(found)
            elif not is_ours(code.co_filename):
                found.append(code)
        return ";".join(_named(code) for code in found[:inside][::-1][:_DEEPEST])

    def _tell(self, seen: Counter[tuple[str, str]], at_ns: int) -> None:
        """Say what has been seen, if somebody still looks, and begin anew."""
        if seen and record.is_on:
            record.tell(
                "", [Event(SAMPLE, stack, at_ns - ns, at_ns, 0, job) for (job, stack), ns in seen.items()]
            )
        seen.clear()


def _named(code: CodeType) -> str:
    place = f"({os.path.basename(code.co_filename)}:{code.co_firstlineno})"
    return encodable(f"{code.co_qualname[-_LONGEST:]} {place}".replace(";", ":").replace("\n", " "))
