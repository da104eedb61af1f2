"""Cells of arrays that are mapped from files: they look at the file before they show elements."""

from __future__ import annotations

import time
from typing import Any

from spartan_ng.api.core.cell import Cell
from spartan_ng.errors import SourceError

_TRUSTED_NS = 1_000_000
"""A file that has not changed is asked again after so long: asking takes longer than reading an element."""


class FileCell(Cell):
    """A cell over a file's map, which finds out whether the file is what it was before it shows elements.

    Whoever reads what is no longer there ends the process, and NumPy had read the file. Nobody rewrites a
    file of this size within `_TRUSTED_NS`.
    """

    _held: Any = None
    _asked_ns: int = 0

    @property
    def value(self) -> Any:
        """The map; SourceError where the file has been written to."""
        if self.source is not None:
            now = time.monotonic_ns()
            if now - self._asked_ns > _TRUSTED_NS:
                if self.source.is_written_to():
                    raise SourceError(f"{self.source} has changed since it was opened")
                self._asked_ns = now
        return self._held

    @value.setter
    def value(self, value: Any) -> None:
        if value is not self._held:
            self.source = None
        self._held = value
