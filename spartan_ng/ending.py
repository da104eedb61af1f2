"""What this process closes as it ends: clusters left, compilers ended, folders removed.

A program may work to its very end: what it has registered with `atexit` still computes. Python calls those
functions in the reverse of their order, and much of ours begins with the first computation; so all of it
waits in one line of its own, whose turn is that of the package's import.
"""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Callable

_waiting: list[Callable[[], object]] = []


def at_end(close: Callable[[], object]) -> None:
    """Call this as the process ends; whoever came last is called first."""
    _waiting.append(close)


def not_at_end(close: Callable[[], object]) -> None:
    """Do not, where it was to be called; for what has been closed already."""
    with contextlib.suppress(ValueError):
        _waiting.remove(close)


@atexit.register
def _end() -> None:
    with contextlib.ExitStack() as stack:  # all are called, whatever one of them raises
        for close in _waiting:
            stack.callback(close)
        _waiting.clear()


__all__ = ["at_end", "not_at_end"]
