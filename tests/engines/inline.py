"""An engine that runs each task at once, in this process, on copies: what it is given and gives travels."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np

from spartan_ng.backends.engines.protocol import Forgotten, Report, TaskKilled
from spartan_ng.errors import MasterUnreachable


@dataclass(eq=False)
class Object:
    """What a task has made, pickled, or what it has raised."""

    data: bytes = b""
    error: BaseException | None = None
    arrays: Sequence[bytes] = ()
    """Of an engine that sends them beside what is pickled."""

    def value(self) -> Any:
        if self.error is not None:
            raise self.error
        return _sealed(pickle.loads(self.data, buffers=map(_amid, self.arrays)))


def _amid(array: bytes) -> memoryview:
    """What has come in the middle of a message."""
    return memoryview(b"-" + array)[1:]


def _packed(value: Any, beside: bool) -> Object:
    if not beside:
        return Object(cloudpickle.dumps(value))
    arrays: list[pickle.PickleBuffer] = []
    data = cloudpickle.dumps(value, protocol=5, buffer_callback=arrays.append)
    return Object(data, arrays=[bytes(array.raw()) for array in arrays])


def _sealed(value: Any) -> Any:
    """Nobody writes into an engine's objects."""
    for tile in getattr(value, "tiles", {}).values():
        if isinstance(tile, np.ndarray):
            tile.flags.writeable = False
    return value


class InlineEngine:
    """Implements `Engine`."""

    name = "inline"
    ahead = 8

    def __init__(self, slots: int, several: bool = False, shared: bool = False, beside: bool = False) -> None:
        self._slots = slots
        self.several = several
        self.shared = shared
        self._beside = beside
        """Whether arrays travel beside what is pickled, all in one piece, as dask's do."""
        self.names: list[str] = []
        """Of all tasks."""
        self.made_bytes = 0
        """All objects together."""
        self.closed = False

    def is_there(self) -> bool:
        return not self.closed

    def slots(self) -> int:
        return self._slots

    def _check(self) -> None:
        if self.closed:
            raise MasterUnreachable("inline was closed")

    def submit(self, name: str, function: Callable[..., Any], *args: Any, rank: int | None = None) -> Object:
        self._check()
        self.names.append(name)
        try:
            given = [(a if isinstance(a, Object) else _packed(a, self._beside)).value() for a in args]
            made = _packed(function(*given), self._beside)
            self.made_bytes += len(made.data)
            return made
        except Exception as error:  # noqa: BLE001 - the engine's client gets it
            return Object(error=error)

    def submit_several(self, name: str, count: int, function: Callable[..., Any], *args: Any) -> list[Object]:
        assert self.several
        assert count > 1
        every = self.submit(name, function, *args)
        if every.error is not None:
            return [every] * count
        made = every.value()
        assert len(made) == count
        return [_packed(one, self._beside) for one in made]

    def is_known(self, handle: Object) -> bool:
        return True

    def send(self) -> None:
        pass

    def begin(self) -> None:
        pass

    def get(self, handles: Sequence[Object]) -> list[Any]:
        self._check()
        return [handle.value() for handle in handles]

    def lost(self, handles: Sequence[Object]) -> set[Object]:
        self._check()
        return {handle for handle in handles if isinstance(handle.error, Forgotten | TaskKilled)}

    def wait(self, handles: Sequence[Object]) -> None:
        self.get(handles)

    def follow(self, handles: Sequence[Object], report: Report) -> None:
        report(1.0)

    def cancel(self, handles: Sequence[Object]) -> None:
        pass

    def close(self) -> None:
        self.closed = True
