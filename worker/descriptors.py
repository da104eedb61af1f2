"""What a worker has of descriptors: one for each shared segment, each tile on disk and each connection.

Users' functions may keep some, and nothing can take those back: a worker that has none left, while nobody
computes and few tiles are there, is of no use to anybody until it is started again.
"""

from __future__ import annotations

import os
from contextlib import suppress

from spartan_ng.system.processes import most_descriptors

_ENOUGH = 8
"""What a connection and a tile take."""
_LOOKS = 3
"""Looks, one after the other, at which there were not as many."""


class Lack:
    """Notices that descriptors are gone for good."""

    def __init__(self) -> None:
        self._looks = 0

    def lasts(self, is_busy: bool, tiles: int) -> bool:
        """Look once more: whether there are none for a while, and tiles are not the reason."""
        if is_busy or tiles > most_descriptors() // 2 or _are_enough():
            self._looks = 0
        else:
            self._looks += 1
        return self._looks >= _LOOKS


def _are_enough() -> bool:
    opened: list[int] = []
    try:
        with suppress(OSError):
            while len(opened) < _ENOUGH:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        return len(opened) == _ENOUGH
    finally:
        for descriptor in opened:
            os.close(descriptor)
