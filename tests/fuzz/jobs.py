"""A campaign in processes of its own, which take turns at its programs.

While one waits for the compiler, another draws and runs programs; kernels that one has had compiled, others
find on the disk. A program that stands, or brings its process down, is a fault as any other: its turn goes on
behind it in a new process.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from tests.fuzz.campaign import Campaign, Failed

_TURN = 50
"""Programs that a process runs in a row."""
_PROCESSES = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Found:
    """A fault as texts, which other processes can be sent."""

    seed: int
    kind: str
    text: str
    script: str

    @classmethod
    def of(cls, failed: Failed) -> Found:
        """The fault of a program that has ended."""
        return cls(failed.program.seed, failed.finding.kind, str(failed), failed.script)


@dataclass(frozen=True)
class Turn:
    """What has come of some programs."""

    ran: int
    kernels: int
    found: tuple[Found, ...] = ()


def turns(campaign: Campaign, jobs: int, keep_going: bool, limit_s: float) -> Iterator[Turn]:
    """The campaign's programs, a turn after the other, as they end.

    A turn ends at its first fault, or goes on with `keep_going`. Whoever asks for no more turns ends the
    campaign, and what has begun.

    Parameters
    ----------
    jobs : processes; 0: this one, in which nothing ends a program that stands
    limit_s : a program that takes longer stands
    """
    end = float("inf") if campaign.seconds is None else time.monotonic() + campaign.seconds
    parts = _parts(campaign)
    if not jobs:
        for part in parts:
            if time.monotonic() >= end:
                return
            found: list[Found] = []
            turn = _turn(replace(part, seconds=end - time.monotonic()), keep_going, found.append)
            yield replace(turn, found=tuple(found))
        return
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        stacks = (Path(folder, str(k)) for k in range(min(jobs, len(parts))))
        free = [stack.enter_context(_Process(limit_s, path)) for path in stacks]
        busy: dict[Any, _Process] = {}
        while parts or busy:
            if time.monotonic() >= end:
                parts.clear()  # each would begin: with workers of its own, if there are any
            while parts and free:
                process = free.pop()
                process.give(replace(parts.pop(0), seconds=end - time.monotonic()), keep_going)
                busy[process.pipe] = process
            for pipe in wait(list(busy)) if busy else ():
                done = busy[pipe].hear()
                if done is not None:
                    process = busy.pop(pipe)
                    parts[:0] = process.rest
                    free.append(process)
                    yield done


def _parts(campaign: Campaign) -> list[Campaign]:
    last = campaign.first + campaign.programs
    firsts = range(campaign.first, last, _TURN)
    return [replace(campaign, first=first, programs=min(_TURN, last - first)) for first in firsts]


def _turn(
    part: Campaign,
    keep_going: bool,
    tell: Callable[[Found], None],
    begun: Callable[[int], None] = lambda seed: None,
) -> Turn:
    """Run a part, as far as it gets, and tell of its faults as they come."""
    for failed in islice(part.failures(begun), None if keep_going else 1):
        tell(Found.of(failed))
    return Turn(part.ran, part.kernels)


class _Process:
    """A process that runs parts, one at a time, and what it has said of the one that it is at."""

    def __init__(self, limit_s: float, stacks: Path) -> None:
        self._limit_s, self._stacks = limit_s, stacks
        self._start()

    def _start(self) -> None:
        self.pipe, theirs = _PROCESSES.Pipe()
        self._process = _PROCESSES.Process(target=serve, args=(theirs, self._stacks, self._limit_s))
        self._process.start()
        theirs.close()

    def give(self, part: Campaign, keep_going: bool) -> None:
        """Have a part run."""
        self._part, self._at = part, part.first - 1
        self._found: list[Found] = []
        self.rest: list[Campaign] = []
        """What a program that ended the process has left of the part."""
        self.pipe.send((part, keep_going))

    def hear(self) -> Turn | None:
        """The next that the process says, or that it ended: a turn, or a part of one."""
        try:
            said = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._ended()
        if isinstance(said, Turn):
            return replace(said, found=tuple(self._found))
        if isinstance(said, Found):
            self._found.append(said)
        else:
            self._at = said
        return None

    def _ended(self) -> Turn:
        self._process.join()
        part, ran = self._part, self._at + 1 - self._part.first
        if not ran:
            raise RuntimeError("a process ended before it ran a program")
        status = self._process.exitcode
        kind = "stood" if status == 1 else f"ended its process with status {status}"
        text = f"{part.again(self._at)}\n    {kind}, where it was:\n{self._stacks.read_text()}"
        if ran < part.programs:
            self.rest = [replace(part, first=self._at + 1, programs=part.programs - ran)]
        self._close()
        self._start()
        return Turn(ran, 0, (*self._found, Found(self._at, kind, text, text)))

    def _close(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def serve(pipe: Connection, stacks: Path, limit_s: float) -> None:
    """Run parts that come through a pipe, until nobody sends any more; a program that stands ends it."""
    with stacks.open("w") as file:
        faulthandler.enable(file)

        def begun(seed: int) -> None:
            faulthandler.dump_traceback_later(limit_s, exit=True, file=file)
            pipe.send(seed)

        while True:
            try:
                part, keep_going = pipe.recv()
            except EOFError:
                return
            turn = _turn(part, keep_going, pipe.send, begun)
            faulthandler.cancel_dump_traceback_later()
            pipe.send(turn)
