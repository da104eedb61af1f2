"""Waiting for what others do, by looking and not by the clock.

A test that knows no seconds fails on no machine that is slow or busy; what never comes is a hang, which
pytest's time limit ends. So this is the one module of the tests that sleeps.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

_LOOK_S = 0.005
"""Between two looks, so that who waits leaves the processor to those it waits for."""
_OPEN = "open"


def until(condition: Callable[[], object]) -> None:
    """Return once `condition()` is true."""
    while not condition():
        time.sleep(_LOOK_S)


class Gate:
    """Where functions wait, in whatever process of this machine they run, until the gate is opened.

    It lies in a directory of its own, so that it can be sent to workers. As a context manager it is open at
    the end, so that what waits can leave.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self._directory = str(directory)

    def arrive(self) -> None:
        """Be counted, and go on."""
        handle, _ = tempfile.mkstemp(prefix=f"{os.getpid()}.", dir=self._directory)
        os.close(handle)

    def enter(self) -> None:
        """Be counted, and wait."""
        self.arrive()
        until(lambda: os.path.exists(os.path.join(self._directory, _OPEN)))

    def open(self) -> None:
        """Let everybody pass from now on."""
        Path(self._directory, _OPEN).touch()

    @property
    def arrived(self) -> list[int]:
        """For each call that has come, its process."""
        return [int(name.partition(".")[0]) for name in os.listdir(self._directory) if name != _OPEN]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()


def endless_in_python(touch: Callable[[], object]) -> Callable[[Any], Any]:
    """A user's function that says by `touch` that it runs, and never stops."""

    def function(tile: Any) -> Any:
        touch()
        while True:
            try:
                tile = tile + 1.0
            except Exception:  # noqa: BLE001 - as users write it
                continue

    return function


def endless_in_c(touch: Callable[[], object]) -> Callable[[Any], Any]:
    """A user's function that says by `touch` that it runs, and never comes back from C."""

    def function(tile: Any) -> Any:
        touch()
        time.sleep(100_000)

    return function


@contextmanager
def killing_one(directory: Path) -> Iterator[Callable[[Any], Any]]:
    """A user's function that adds one; the first process that calls it is killed while it does."""
    with Gate(directory) as gate:

        def adds_one(block: Any) -> Any:
            gate.enter()
            return block + 1

        def kill() -> None:
            until(lambda: gate.arrived)
            os.kill(gate.arrived[0], signal.SIGKILL)
            gate.open()

        killer = threading.Thread(target=kill)
        killer.start()
        yield adds_one
        killer.join()
