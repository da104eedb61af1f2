"""Columns of Arrow files, record batches of which are mapped, or unpacked one by one."""

from __future__ import annotations

from collections import Counter
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.sources.columns import Columns
from spartan_ng.sources.files import is_url

_MEASURES = Lock()


@cache
def _measured_pool() -> Any:
    """Of which nobody takes anything but who holds `_MEASURES`. It stays: what is taken of it knows where it
    is, and does not keep it."""
    arrow = needed("pyarrow", "tables")
    return arrow.proxy_memory_pool(arrow.system_memory_pool())


class ArrowColumns(Columns):
    """Of an Arrow file (Feather, format 2)."""

    def open(self) -> Any:
        """Pyarrow's reader, over a map of a local file."""
        return self._reader(needed("pyarrow", "tables").system_memory_pool())

    def _reader(self, pool: Any) -> Any:
        file = self._file() if is_url(self.path) else needed("pyarrow", "tables").memory_map(self.path)
        return needed("pyarrow.ipc", "tables").open_file(file, memory_pool=pool)

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """Of a file that is what it was: whoever reads where a map has lost its file ends the process."""
        if not self.is_current():
            raise SourceError(f"{self} has changed since it was opened")
        return super().read(box)

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """A batch as it is unpacked, all columns together; nothing of what is mapped as it is."""
        return self._batch_bytes

    @property
    def whole_bytes(self) -> int:  # type: ignore[override]
        """Its smallest batch."""
        return self._least_bytes

    def _described(self) -> tuple[Any, list[int]]:
        pool, unpacked, lengths = _measured_pool(), list[int](), list[int]()
        self._lack = Counter[str]()
        with _MEASURES:
            reader = self._reader(pool)
            for i in range(reader.num_record_batches):
                before = pool.bytes_allocated()
                batch = reader.get_batch(i)
                unpacked.append(int(pool.bytes_allocated()) - before)
                lengths.append(batch.num_rows)
                for name, column in zip(batch.schema.names, batch.columns, strict=True):
                    self._lack[name] += column.null_count
                del batch, column
        self._batch_bytes, self._least_bytes = max(unpacked, default=0), min(unpacked, default=0)
        return reader.schema, lengths

    def _lacking(self, name: str) -> int:
        """As its batches count them."""
        return self._lack[name]

    def _batch(self, number: int, names: list[str]) -> Any:
        arrow = needed("pyarrow", "tables")
        return arrow.Table.from_batches([self.opened.get_batch(number)]).select(names)
