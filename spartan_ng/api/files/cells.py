"""Cells of arrays that are mapped from files: they look at the file before they show elements."""

from __future__ import annotations

from typing import Any

from spartan_ng.api.core.cell import Cell
from spartan_ng.system import faults


class FileCell(Cell):
    """A cell over a file's map, which finds out whether the file is what it was before it shows elements.

    NumPy had read the file.
    """

    _held: Any = None

    @property
    def value(self) -> Any:
        """The map; SourceError where the file has been written to."""
        if self.source is not None:
            faults.reads()
            self.source.look()
        return self._held

    @value.setter
    def value(self, value: Any) -> None:
        if value is not self._held:
            self.source = None
        self._held = value
