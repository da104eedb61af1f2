"""Tasks that idle workers take over: what goes with them, and how a borrower does them.

See `stealing` for who decides. What a borrower gets is the tasks' blocks and their part of the operands; it
interprets them as the owner would have done, block by block.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import Box
from spartan_ng.error_state import entered
from spartan_ng.errors import (
    ConnectionFailed,
    JobCancelled,
    OutOfResources,
    WorkerLost,
    WorkerUnreachable,
)
from spartan_ng.kernels.blocks import box_around
from spartan_ng.kernels.body import Body, Runner, slicer
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.reducers import reducer_of
from spartan_ng.kernels.sampled import runner
from spartan_ng.kernels.user import interrupt
from spartan_ng.memory import copied_bytes
from spartan_ng.plan.stages import Fused
from spartan_ng.worker.memory.regions import data_bytes
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.scheduling.standing_in import ended, made_for
from spartan_ng.worker.scheduling.stealing import WHOLE, Offer

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

Blocks = tuple[Box, ...]


class Lending(Struct, frozen=True):
    """How a pass lends its tasks: see `Offer`; `accept` gives the value that takes the task's place."""

    nbytes: int
    pack: Callable[[int], Any]
    accept: Callable[[int, Any], Any]
    apart: Callable[[], Callable[[Blocks], Any]] | None
    """Of a pass whose owner can go on without its own threads, where others were faster: makes what gives a
    task's result as a borrower would, and has written to nothing until it is taken."""

    def offer(self, stage: int, results: list[Any]) -> Offer:
        """An offer that puts what comes back into `results`."""

        def accept(task: int, result: Any) -> None:
            results[task] = self.accept(task, result)

        return Offer(stage, len(results), self.nbytes, self.pack, accept, self.apart is not None)


def lending(
    ex: Executor,
    run: Run,
    stage: Fused,
    task: Task,
    operands: Sequence[Any],
    runs: Sequence[Sequence[Box]],
    accept: Callable[[int, Any], Any],
) -> Lending | None:
    """How the interpreted pass of a task over `runs` of blocks lends them; None where it does not."""
    # A borrower finds the stage in its own plan by the number: a part of it, or its finish, has none there.
    if run.index not in run.program.lends or stage is not run.plan.stages[run.index] or task.blas:
        return None
    if any(o.dtype.hasobject for o in operands) or len(runs) < 2:
        return None
    assert task.box is not None, "a pass has a box"
    box = task.box
    reads = [replace(read, expand=False) for read in stage.reads]
    cuts = [slicer(read, box, o) for read, o in zip(reads, operands, strict=True)]

    def parts_of(number: int) -> list[Any]:
        around = box_around(runs[number])
        return [cut(o, around) for cut, o in zip(cuts, operands, strict=True)]

    def pack(number: int) -> Any:
        around, parts = box_around(runs[number]), parts_of(number)
        # A frame is one piece of memory.
        whole = tuple(np.asarray(p, order="C") if isinstance(p, np.ndarray) else p for p in parts)
        return around, tuple(runs[number]), whole

    (write,) = stage.writes
    made = sum(run.plan.slots[s].nbytes for s in write.slots) // max(run.plan.workers, 1)
    nbytes = sum(map(data_bytes, parts_of(0))) + made // len(runs)  # places may name any rows, so that all go
    if nbytes > copied_bytes():  # one message, in the memory of both
        return None

    def apart() -> Callable[[Blocks], Any]:
        assert task.body is not None, "prepared with the program"
        return _work(ex, run, stage, runner(task.body, list(operands), box, task.sizes))

    is_folded = write.reducer is not None  # its states are apart anyway; other results are written twice
    return Lending(nbytes, pack, accept, apart if is_folded or run.program.users[run.index] else None)


class _NoTime(Exception):
    """Who has asked for a task has one of its own again."""


def borrow(ex: Executor, run: Run, rank: int, is_busy: Callable[[], bool]) -> bool | None:
    """Ask `rank` for a task and do it: whether there was one; None where it has done its part of the job.

    Nobody is waited for, nor a whole share of a stage run, once `is_busy` says that there is something to do.
    """
    try:
        found = _answer(ex, run, ex.transfer.borrow(run.job, rank, *run.usual(rank)), is_busy)
        if found is None:
            return None
        if len(found) < 2:
            run.at[rank] = found[0] if found else -1
            return False
        number, stage, task, needed = found
        if task == WHOLE:
            result = made_for(ex, run, number, stage, rank, is_busy)
        else:
            result = _done(ex, run, stage, partial(_result, ex, run, stage, *needed), is_busy)
        _answer(ex, run, ex.transfer.give_back(run.job, rank, number, task, result), is_busy)
    except _NoTime:
        return False
    except (WorkerUnreachable, ConnectionFailed, OutOfResources):
        return False  # for now
    except WorkerLost:
        return None  # who needs that worker's tiles hears of it, too
    return True


def _answer(ex: Executor, run: Run, future: Future[Any], is_busy: Callable[[], bool]) -> Any:
    while True:
        try:
            return future.result(timeout=0.1)
        except FutureTimeout:
            if future.done():  # it may have come since
                return future.result()
            ex.check(run)
            if is_busy():
                raise _NoTime from None


def _done(ex: Executor, run: Run, number: int, result: Callable[[], Any], is_busy: Callable[[], bool]) -> Any:
    """A borrowed task's result, None if it cannot be had. A user's function that stands still keeps nobody:
    it runs apart."""
    at_work: set[int] = set()

    def apart() -> Any:
        at_work.add(threading.get_ident())
        return result()

    try:
        if not run.program.users[number]:
            return result()
        future = ended(ex.apart(run.job, apart), lambda: run.cancelled.is_set() or is_busy())
        if future is not None:
            return future.result()
        interrupt(run.job, at_work)
        ex.check(run)
    except JobCancelled:
        ex.check(run)
    except Exception:  # noqa: BLE001 - the owner does the task itself and says what is wrong
        pass
    return None


def _result(
    ex: Executor, run: Run, number: int, around: Box, blocks: Blocks, operands: tuple[Any, ...]
) -> Any:
    """What a borrowed task gives: the run's state, or each block's values."""
    stage = run.plan.stages[number]
    assert isinstance(stage, Fused), "only passes over blocks lend tasks"
    sizes = tuple(max(b[d][1] - b[d][0] for b in blocks) for d in range(len(around)))
    with entered(ex.errstate):
        found = _work(ex, run, stage, runner(Body(stage), list(operands), around, sizes))(blocks)
    ex.look(run, at_once=True)
    return found


def _work(ex: Executor, run: Run, stage: Fused, one: Runner) -> Callable[[Blocks], Any]:
    """What makes a task's result of its blocks."""
    (write,) = stage.writes
    reducer = reducer_of(stage, write)

    def made(block: Box) -> Any:
        ex.check(run)
        registers = one.run(block)
        if reducer is None:
            # A copy: the next block is worked on in the same buffers.
            return np.array(dense(registers[write.register]))
        return block, reducer.block([registers[a] for a in reducer.row.args], block)

    def work(blocks: Blocks) -> Any:
        values: Iterator[Any] = map(made, blocks)
        return tuple(values) if reducer is None else reducer.run_state(values)

    return work
