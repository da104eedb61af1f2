"""What is asked of an engine: tasks, and objects that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Handle = Any
"""The engine's word for an object that is there, or will be; hashable. Who drops it lets the object go."""


Report = Callable[[float], None]
"""Called with what part is done, up to 1."""
REPORT_S = 0.5
"""Between two reports."""


class TaskKilled(Exception):
    """A task has ended the processes that ran it, so often that the engine has given it up."""


class Forgotten(Exception):
    """Somebody has had the engine forget objects: it was started again, or they were cancelled."""


class Engine(Protocol):
    """What is asked of an engine."""

    name: str
    several: bool
    """Whether a task can give several objects."""
    ahead: int
    """Jobs that may be under way, before one is waited for; 1 where more gain nothing."""

    @property
    def shared(self) -> bool:
        """Whether all tasks read objects where these lie: then none is cut for who reads a part of it."""
        ...

    def is_there(self) -> bool:
        """Whether it can be asked for anything yet: nobody has closed it, and it has not ended."""
        ...

    def slots(self) -> int:
        """Tasks that can run at a time, as was known last where the engine cannot be asked: as inside a call
        of its own, in which nobody may wait for its answer."""
        ...

    def submit(self, name: str, function: Callable[..., Any], *args: Any, rank: int | None = None) -> Handle:
        """`function(*args)` as a task that the engine may run anywhere, and again.

        Handles among `args` stand for their objects; all else travels with the task, however large. The task
        may wait until somebody asks for it, or for what is made of it. One that reads no object says whose
        `rank` tiles it makes: they had best lie together.
        """
        ...

    def submit_several(
        self, name: str, count: int, function: Callable[..., Any], *args: Any
    ) -> Sequence[Handle]:
        """As `submit`, where `function` gives `count` (2 or more) objects: a handle for each.

        Asked only where `several`.
        """
        ...

    def send(self) -> None:
        """Have all made that has been submitted, whenever; do not wait for it."""
        ...

    def begin(self) -> None:
        """Have all made that has been submitted, spread over the workers; return when no other task disturbs
        that."""
        ...

    def get(self, handles: Sequence[Handle]) -> list[Any]:
        """The objects, as soon as they are there; raises what their tasks raised, `TaskKilled` or
        `Forgotten`."""
        ...

    def is_known(self, handle: Handle) -> bool:
        """Whether an object is there or will be, as far as is known here: nobody has had it forgotten."""
        ...

    def lost(self, handles: Sequence[Handle]) -> set[Handle]:
        """Those whose objects nobody makes any more, as the engine itself knows: it was had forget them, or
        has given up the tasks. Waits for what is under way only where it cannot be told else."""
        ...

    def wait(self, handles: Sequence[Handle]) -> None:
        """Return when the objects are there, wherever; raises as `get` does."""
        ...

    def follow(self, handles: Sequence[Handle], report: Report) -> None:
        """Return when the objects are there, or one has failed; until then tell `report` now and then what
        part is done of the tasks that were submitted with them, as far as the engine knows."""
        ...

    def cancel(self, handles: Sequence[Handle]) -> None:
        """What these stand for is no longer wanted, nor what runs to make it."""
        ...

    def close(self) -> None:
        """Leave the engine."""
        ...
