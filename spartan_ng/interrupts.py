"""Work that Ctrl-C leaves at once, whatever users' functions do: it runs on a thread that can be given up.

Python delivers Ctrl-C to the main thread, and only between two steps of Python code. So the main thread
waits, and does nothing else; what is to stop is interrupted where it runs, and given up where that does not
help, because it is in C code that never returns.
"""

from __future__ import annotations

import contextvars
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from traceback import walk_tb
from types import CodeType
from typing import Any, TypeVar

from spartan_ng.system.processes import after_fork

_T = TypeVar("_T")

_GRACE_S = 0.5
"""How long work has to stop when it is interrupted."""
_PRESS_S = 0.05
_LOOK_S = 0.25
"""How often who waits looks if Ctrl-C was pressed. A signal that comes just before Python goes to wait for a
lock is noticed when it has done waiting."""


def is_interruptible() -> bool:
    """Whether Ctrl-C arrives in this thread."""
    return threading.current_thread() is threading.main_thread()


def is_of_a_handler(error: BaseException) -> bool:
    """Whether a signal's handler has raised an error: it is none of what was under way."""
    codes = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    return any(frame.f_code in codes for frame, _ in walk_tb(error.__traceback__))


def _code_of(handler: Any) -> CodeType | None:
    """The code of a function, also of a method, of a partial one or of an object that is called."""
    while isinstance(handler, partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):  # an object's is its class's, a method its function's
        handler = getattr(handler, "__func__", type(handler).__call__)
    return getattr(handler, "__code__", None)


class _JobThread:
    """A thread that does one thing after the other: what memory and BLAS have for each takes a millisecond
    to make."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], Callable[[], object]]] = SimpleQueue()
        self.is_last = False
        """Whether it ends with what it does: what has interrupted that might come later."""
        threading.Thread(target=self._work, name="spartan-ng-job", daemon=True).start()

    def take(self, job: Callable[[], Callable[[], object]]) -> None:
        """Do a job, and then, when this thread is free again, what it gives."""
        self._jobs.put(job)

    def _work(self) -> None:
        is_last = False
        while not is_last:
            tell = self._jobs.get()()
            is_last = self.is_last  # asked once: one that is free does what it is given
            if not is_last:
                _free.append(self)
            tell()
            del tell  # it has the answer, which may be large


_free: list[_JobThread] = []
"""Those that have nothing to do."""
after_fork(_free.clear)


def _told(future: Future[_T], work: Callable[[], _T]) -> Callable[[], object]:
    """Do some work, and give what tells its future how that went."""
    try:
        return partial(future.set_result, work())
    except BaseException as error:  # noqa: BLE001 - it is raised where the work was given
        return partial(future.set_exception, error)


def run_interruptibly(
    work: Callable[[], _T],
    interrupt: Callable[[], object] = lambda: None,
    give_up: Callable[[], object] = lambda: None,
) -> _T:
    """`work()` on another thread. At Ctrl-C `interrupt` is called again and again for a while, then
    `give_up` if the work goes on all the same, and KeyboardInterrupt is raised."""
    future: Future[_T] = Future()
    job = partial(_told, future, partial(contextvars.copy_context().run, work))
    try:
        thread = _free.pop()
    except IndexError:
        thread = _JobThread()
    try:
        thread.take(job)  # Ctrl-C may come when the work has begun
        while True:
            try:
                return future.result(_LOOK_S)
            except TimeoutError:
                if future.done():  # the work's own
                    return future.result()
    except KeyboardInterrupt:
        thread.is_last = True
        deadline = time.monotonic() + _GRACE_S
        while not future.done() and time.monotonic() < deadline:
            interrupt()
            time.sleep(_PRESS_S)
        if not future.done():
            give_up()
        raise
