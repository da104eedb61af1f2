"""What a program puts on disk because memory has no room for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from spartan_ng import scratch
from spartan_ng.worker.memory import store


@contextmanager
def put_aside() -> Iterator[list[int]]:
    """The bytes of each array that goes there inside the block, in this process."""
    found: list[int] = []
    on_disk, write = scratch.on_disk, store._Spilled.write

    def counted(shape: Any, dtype: Any, *what: Any) -> Any:
        array = on_disk(shape, dtype, *what)
        found.append(array.nbytes)
        return array

    def spilled(tile: Any) -> Any:
        found.append(tile.nbytes)
        return write(tile)

    with (
        mock.patch.object(store, "on_disk", counted),
        mock.patch.object(scratch, "on_disk", counted),
        mock.patch.object(store._Spilled, "write", spilled),
    ):
        yield found
