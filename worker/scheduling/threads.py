"""Threads that help with one piece of work at a time, woken and awaited with as little as can be.

A thread that is woken may be put on the processor of the one that wakes it, and stay there for longer than
the work takes, with another processor idle: helpers keep off their caller's.

A pass over a tile may take a millisecond; a pool that makes a future with its lock and its condition for
every thread, touched by nobody since the last pass, would take a good part of that.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from spartan_ng.system import machine

Work = Callable[[], None]
_Errors = SimpleQueue[BaseException | None]
_Tasks = SimpleQueue[tuple[Work, _Errors] | None]


class Threads:
    """Up to `count` threads, started when they are first needed. Thread-safe.

    Where the caller `waits` for them, and does nothing itself, they may run on its processor, too: the one
    thread of each of two workers would be sent to the same one, with the other idle.
    """

    def __init__(self, count: int, waits: bool = False) -> None:
        self.count = count
        self._waits = waits
        self._lock = threading.Lock()
        self._begin()

    def close(self) -> None:
        """Let the threads go once they have done what they were given; later work is the caller's alone."""
        self._end()

    def run(
        self, work: Work, helpers: int, is_done: Callable[[], bool] | None = None, there: Work | None = None
    ) -> None:
        """Call `work` here, and it or `there` on so many of the threads, and wait for all; raises what one
        has raised.

        Where `is_done` says so, after the call here, nothing is left that is worth waiting for. Not to be
        called by either: a thread that waits for itself waits forever.
        """
        if not self._end.alive:
            helpers = 0
        if self._started < helpers or self._process != os.getpid():
            self._start(helpers)
        here = machine.processor()
        # A call of the system for each thread: made only where the caller has moved.
        if helpers and not self._waits and here != self._avoided:
            self._avoid(here)
        errors: _Errors = SimpleQueue()
        for _ in range(helpers):
            self._tasks.put((there or work, errors))
        waited = helpers
        try:
            work()
            waited = 0 if is_done is not None and is_done() else helpers
        finally:
            raised = [errors.get() for _ in range(waited)]
        for error in raised:
            if error is not None:
                raise error

    def _begin(self) -> None:
        self._tasks: _Tasks = SimpleQueue()
        self._started = 0
        self._ids: list[int] = []
        self._avoided = -1
        self._process = os.getpid()
        self._end = weakref.finalize(self, _stop, self._tasks, self.count)
        self._end.atexit = False

    def _start(self, wanted: int) -> None:
        with self._lock:
            if self._process != os.getpid():  # a fork has none of its parent's threads
                self._end.detach()
                self._begin()
            while self._started < min(wanted, self.count):
                thread = threading.Thread(target=_work, args=(self._tasks,), name="blocks", daemon=True)
                thread.start()
                assert thread.native_id is not None, "a started thread has one"
                self._ids.append(thread.native_id)
                self._started += 1
            self._avoided = -1

    def _avoid(self, processor: int) -> None:
        """Keep the threads off the caller's processor where it may use others."""
        with self._lock:
            machine.keep_off(processor, self._ids)
            self._avoided = processor


def _work(tasks: _Tasks) -> None:
    """One thread's life: it knows the queue alone, so that its owner can go."""
    while (task := tasks.get()) is not None:
        work, errors = task
        raised: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # it is raised where the work was given
            raised = error
        del task, work  # before anybody counts who looks at what they hold
        errors.put(raised)
        del errors, raised


def _stop(tasks: _Tasks, count: int) -> None:
    for _ in range(count):
        tasks.put(None)
