"""No search for garbage while much is made that stays.

Python looks for cycles after so many new objects, and through all that there are whenever a quarter has been
added. Planning makes objects by the hundred thousand, keeps them until it ends, and leaves no cycles: looking
through them again and again took a quarter of its time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_planning = 0
"""Threads that are inside."""
_was_on = False
"""Whether the collector ran before the first of them came."""


@contextmanager
def collected_later() -> Iterator[None]:
    """The block runs without the collector, which goes on after the last thread has left, if it was on."""
    global _planning, _was_on
    with _lock:
        if not _planning:
            _was_on = gc.isenabled()
            gc.disable()
        _planning += 1
    try:
        yield
    finally:
        with _lock:
            _planning -= 1
            if not _planning and _was_on:
                gc.enable()
