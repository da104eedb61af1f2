"""Work that Ctrl-C leaves at once, whatever users' functions do: it runs on a thread that can be given up.

Python delivers Ctrl-C to the main thread, and only between two steps of Python code. So the main thread
waits, and does nothing else; what is to stop is interrupted where it runs, and given up where that does not
help, because it is in C code that never returns.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

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


def run_interruptibly(
    work: Callable[[], _T],
    interrupt: Callable[[], object] = lambda: None,
    give_up: Callable[[], object] = lambda: None,
) -> _T:
    """`work()` on a thread of its own. At Ctrl-C `interrupt` is called again and again for a while, then
    `give_up` if the work goes on all the same, and KeyboardInterrupt is raised."""
    future: Future[_T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised where the work was given
            future.set_exception(error)

    thread = threading.Thread(target=run, name="spartan-ng-job", daemon=True)
    try:
        thread.start()  # which waits for the thread: Ctrl-C may come when the work has begun
        while True:
            try:
                return future.result(_LOOK_S)
            except TimeoutError:
                if future.done():  # the work's own
                    return future.result()
    except KeyboardInterrupt:
        deadline = time.monotonic() + _GRACE_S
        while not future.done() and time.monotonic() < deadline:
            interrupt()
            time.sleep(_PRESS_S)
        if not future.done():
            give_up()
        raise
