"""How much memory calls ask for: what stands in their way, whoever they are answered by, told by a count."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

SLACK = 64
"""Bytes of the tuple that says how many there are, which may be new or an old one."""


def asked_for(call: Callable[[], Any]) -> int:
    """Bytes that a call asks for, all that it has at a time, without the elements of what it gives. Memory is
    being traced."""
    for _ in range(20):
        made = call()
    nbytes = made.nbytes
    made = None
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    made = call()
    return tracemalloc.get_traced_memory()[1] - before - int(nbytes)
