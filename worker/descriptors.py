"""What a worker has of descriptors: one for each shared segment, each tile on disk and each connection.

Users' functions may keep some, and nothing can take those back: a worker that has none left, while nobody
computes and few tiles are there, is of no use to anybody until it is started again.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress

_ENOUGH = 8
"""What a connection and a tile take."""
_LOOKS = 3
"""Looks, one after the other, at which there were not as many."""


def raise_limit() -> None:
    """Have as many as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Lack:
    """Notices that descriptors are gone for good."""

    def __init__(self) -> None:
        self._looks = 0

    def lasts(self, is_busy: bool, tiles: int) -> bool:
        """Look once more: whether there are none for a while, and tiles are not the reason."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if is_busy or tiles > soft // 2 or _are_enough():
            self._looks = 0
        else:
            self._looks += 1
        return self._looks >= _LOOKS


def _are_enough() -> bool:
    opened: list[int] = []
    try:
        with suppress(OSError):
            while len(opened) < _ENOUGH:
                opened.append(os.eventfd(0))
        return len(opened) == _ENOUGH
    finally:
        for descriptor in opened:
            os.close(descriptor)
