"""Another rank's share of a stage, run here as well: what it reads, from wherever that lies, and its tiles.

Nothing waits for a tile here, and no read counts: whoever has what is not there any more has gone on, and so
does the share's own worker. Where it runs makes no difference to what a share makes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import Key
from spartan_ng.errors import JobCancelled
from spartan_ng.kernels.user import interrupt
from spartan_ng.plan.stats import StageStats
from spartan_ng.worker.memory.regions import PiecedOperand
from spartan_ng.worker.memory.store import Place, Region, Store, dropped
from spartan_ng.worker.scheduling.backups import Until
from spartan_ng.worker.scheduling.program import Program

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_LOOK_S = 0.02
Tiles = dict[int, Any]
"""By slot."""


def made_for(
    ex: Executor, run: Run, number: int, index: int, rank: int, is_busy: Callable[[], bool]
) -> Tiles | Literal[False] | None:
    """The tiles of the share of `rank` in a stage, by its offer's `number`; False where `is_busy` says before
    that there is something else to do, None where they cannot be had here."""
    program = Program(run.plan, rank)
    # Nobody lends on what he does for another.
    program.lends = program.backed = frozenset()
    stage, store = run.plan.stages[index], _Aside(ex.store)
    over = Until(run.cancelled.is_set, is_busy)
    own = replace(run, program=program, cancelled=over, stats=StageStats(), index=index, report=None)
    # What windows of sources hold, and who overtakes whom, is the own share's.
    own.chunks, own.backup = {}, None
    other = ex.standing_in(rank, store, _Whereabouts(ex, own, rank, number))

    def work() -> None:
        try:
            other.handle(own, stage, program.tasks[index])
            other.look(own, at_once=True)
        finally:
            other.close()

    future = ended(ex.apart(run.job, work), over.is_set)
    if future is None:
        interrupt(run.job)  # nor is it waited for: the share has been made, or this worker is wanted
        ex.check(run)
        return False
    try:
        future.result()
    except JobCancelled:
        ex.check(run)
        return False
    except Exception:  # noqa: BLE001 - the share's own worker says what is wrong
        return None
    made = {s: run.keys[s] for s in stage.written_slots()}
    return {s: store.get(key) for s, key in made.items() if store.holds(key)}


def ended(future: Future[Any], is_over: Callable[[], bool]) -> Future[Any] | None:
    """What runs apart, once it has ended; None where `is_over` says before that nobody is to wait for it."""
    while not wait([future], _LOOK_S).done:
        if is_over():
            return None
    return future


class _Aside(Store):
    """The tiles that a share makes, in the memory of another store."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._memory = store

    def allocate(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], place: Place | None = None
    ) -> np.ndarray[Any, Any]:
        """An uninitialized buffer for a tile."""
        return self._memory.allocate(shape, dtype, place)

    @contextmanager
    def room(self, nbytes: int) -> Iterator[None]:
        """Count memory that is taken outside of the pool for a while."""
        with self._memory.room(nbytes):
            yield

    def put(self, key: Key, tile: Any, reads: int | None = None, lent: bool = False) -> None:
        """Complete a tile, which stays: nobody reads it here."""
        super().put(key, tile)


class _Whereabouts:
    """Tiles as the process of `ex` has them."""

    def __init__(self, ex: Executor, run: Run, rank: int, number: int) -> None:
        self._ex = ex
        self._operands = list(run.program.tasks[run.index].reads())
        self._lent = run.job, rank, number
        slots = zip(run.keys, run.plan.slots, strict=True)
        self._everywhere = {key for key, slot in slots if slot.tiling.duplicate and ex.store.holds(key)}

    own = -1

    def is_here(self, key: Key, rank: int) -> bool:
        """Whether this process has it; of what all have its own is as good."""
        return key in self._everywhere or (rank == self._ex.rank and self._ex.store.holds(key))

    def tile(self, key: Key) -> Any:
        """A tile of the process's own."""
        try:
            return self._ex.store.get(key)
        except KeyError:
            raise dropped(key) from None

    def ask(self, key: Key, rank: int, region: Region) -> Future[Any]:
        """A region of another's, if that is still there."""
        if rank == self._ex.rank:
            gone: Future[Any] = Future()
            gone.set_exception(dropped(key))
            return gone
        return self._ex.transfer.fetch(key, rank, region, peeks=True)

    def look(self, key: Key, rank: int, region: Region) -> None:
        """Nothing: whoever stands in for another is none of those that a tile is kept for."""

    def instead(self, operand: PiecedOperand) -> Future[Any] | None:
        """What the share's own worker has read, who else would not have begun."""
        place = next((k for k, o in enumerate(self._operands) if o is operand), None)
        return None if place is None else self._ex.transfer.operand(*self._lent, place)
