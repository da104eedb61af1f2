"""An engine whose tasks bring little values along.

An object of its own would cost a task, and a transfer to each worker that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from spartan_ng.backends.engines.protocol import Engine, Handle, Report


class InlinedValue(Struct, frozen=True, eq=False):
    """The handle of what goes inside the tasks that read it."""

    value: Any


class Inlined:
    """Implements `Engine` by another one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.several, self.ahead = engine.name, engine.several, engine.ahead

    @property
    def shared(self) -> bool:
        """See `Engine`."""
        return self._engine.shared

    def is_there(self) -> bool:
        """See `Engine`."""
        return self._engine.is_there()

    def slots(self) -> int:
        """See `Engine`."""
        return self._engine.slots()

    def submit(self, name: str, function: Callable[..., Any], *args: Any, rank: int | None = None) -> Handle:
        """See `Engine`."""
        return self._engine.submit(name, function, *map(_inside, args), rank=rank)

    def submit_several(
        self, name: str, count: int, function: Callable[..., Any], *args: Any
    ) -> Sequence[Handle]:
        """See `Engine`."""
        return self._engine.submit_several(name, count, function, *map(_inside, args))

    def send(self) -> None:
        """See `Engine`."""
        self._engine.send()

    def begin(self) -> None:
        """See `Engine`."""
        self._engine.begin()

    def get(self, handles: Sequence[Handle]) -> list[Any]:
        """See `Engine`."""
        away = self._away(handles)
        made = iter(self._engine.get(away) if away else ())
        return [h.value if isinstance(h, InlinedValue) else next(made) for h in handles]

    def is_known(self, handle: Handle) -> bool:
        """See `Engine`."""
        return isinstance(handle, InlinedValue) or self._engine.is_known(handle)

    def lost(self, handles: Sequence[Handle]) -> set[Handle]:
        """See `Engine`."""
        away = self._away(handles)
        return self._engine.lost(away) if away else set()

    def wait(self, handles: Sequence[Handle]) -> None:
        """See `Engine`."""
        self._engine.wait(self._away(handles))

    def follow(self, handles: Sequence[Handle], report: Report) -> None:
        """See `Engine`."""
        self._engine.follow(self._away(handles), report)

    def cancel(self, handles: Sequence[Handle]) -> None:
        """See `Engine`."""
        self._engine.cancel(self._away(handles))

    def close(self) -> None:
        """See `Engine`."""
        self._engine.close()

    @staticmethod
    def _away(handles: Sequence[Handle]) -> list[Handle]:
        return [h for h in handles if not isinstance(h, InlinedValue)]


def _inside(argument: Any) -> Any:
    """What goes inside a task, for what stands for it."""
    return argument.value if isinstance(argument, InlinedValue) else argument
