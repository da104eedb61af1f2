"""What a fork of this process has of its connections: nothing.

The threads that serve them stay with the parent, and a message of a fork would be the parent's: who asked or
closed something there would wait for ever, and workers are the parent's to end. So a fork goes on by itself
(`session`), and what it has of a connection says why there is no answer.
"""

from __future__ import annotations

import weakref
from typing import Any, NoReturn, Protocol

from spartan_ng.errors import MasterUnreachable
from spartan_ng.system.processes import after_fork


class Connected(Protocol):
    """What has to do with other processes."""

    def sever(self) -> None:
        """In a fork, before anything else: never ask, close or end what the parent goes on with."""


class Severed:
    """In the place of a connection."""

    def __getattr__(self, name: str) -> NoReturn:
        raise _of_a_fork()

    def __getitem__(self, key: object) -> NoReturn:
        raise _of_a_fork()


def _of_a_fork() -> MasterUnreachable:
    return MasterUnreachable(
        "this process is a fork of one that is connected, and cannot have what only the workers have: "
        "compute it before the fork, or connect in processes that are started anew "
        '(multiprocessing.get_context("spawn"))'
    )


_connected: weakref.WeakSet[Any] = weakref.WeakSet()
_of_the_parent: list[Any] = []
"""What is never finalized: clients of engines close their connections then."""


def sever_in_forks(connected: Connected) -> None:
    """Have something severed in forks."""
    _connected.add(connected)


def keep_in_forks(*parts: Any) -> None:
    """Keep what is the parent's, in a fork, until it ends."""
    _of_the_parent.extend(parts)


def _sever_all() -> None:
    for each in [*_connected]:
        each.sever()


after_fork(_sever_all)
