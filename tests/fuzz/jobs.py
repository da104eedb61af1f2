"""A campaign in several processes: they take turns at its programs, some at a time.

While one waits for the compiler, another draws and runs programs; kernels that one has had compiled, others
find on the disk.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import islice

from tests.fuzz.campaign import Campaign

_TURN = 50
"""Programs that a process runs in a row."""


@dataclass(frozen=True)
class Found:
    """A fault as texts, which other processes can be sent."""

    seed: int
    kind: str
    text: str
    script: str


@dataclass(frozen=True)
class Turn:
    """What has come of some programs."""

    ran: int
    kernels: int
    found: tuple[Found, ...]


def turns(campaign: Campaign, jobs: int, keep_going: bool) -> Iterator[Turn]:
    """The campaign's programs, a turn after the other, as they end; with one job in this process.

    A turn ends at its first fault, or goes on with `keep_going`. Whoever asks for no more turns ends the
    campaign: those that have begun are finished.
    """
    end = float("inf") if campaign.seconds is None else time.monotonic() + campaign.seconds
    if jobs == 1:
        for part in _parts(campaign):
            yield _turn(part, end, keep_going)
    else:
        with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
            waiting: list[Future[Turn]] = [
                pool.submit(_turn, part, end, keep_going) for part in _parts(campaign)
            ]
            try:
                for future in as_completed(waiting):
                    yield future.result()
            finally:
                pool.shutdown(cancel_futures=True)


def _parts(campaign: Campaign) -> list[Campaign]:
    last = campaign.first + campaign.programs
    firsts = range(campaign.first, last, _TURN)
    return [replace(campaign, first=first, programs=min(_TURN, last - first)) for first in firsts]


def _turn(part: Campaign, end: float, keep_going: bool) -> Turn:
    """Run a part, as far as it gets until `end`; the clock is that of all processes of a machine."""
    part.seconds = end - time.monotonic()
    failures = part.failures() if keep_going else islice(part.failures(), 1)
    found = [Found(f.program.seed, f.finding.kind, str(f), f.script) for f in failures]
    return Turn(part.ran, part.kernels, tuple(found))
