"""Run a plan's stages on one rank: fetch operands, run blocks on threads, store tiles.

The one worker core: embedded mode is this with one rank and nobody to fetch from. Stages run in the
plan's order; a read of a tile that another rank has not finished waits for that tile alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import Key
from spartan_ng.compressed import is_compressed
from spartan_ng.config import config
from spartan_ng.costs.choices import BACKUP_S
from spartan_ng.errors import JobCancelled, WorkerLost
from spartan_ng.events import now_ns, record
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.user import Acting
from spartan_ng.memory import copied_bytes
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import Stage
from spartan_ng.plan.stats import StageStats
from spartan_ng.sources import Unread
from spartan_ng.worker.blocks import BlockThreads, Run
from spartan_ng.worker.memory.regions import Piece, PiecedOperand, data_bytes, gathered_pieces
from spartan_ng.worker.memory.store import Region, Store, read_region
from spartan_ng.worker.network.protocol import Transfer
from spartan_ng.worker.network.whereabouts import OwnTiles, Whereabouts
from spartan_ng.worker.scheduling.backups import Backup
from spartan_ng.worker.scheduling.lending import borrow
from spartan_ng.worker.scheduling.program import Program
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.scheduling.vanguard import Vanguard
from spartan_ng.worker.stages.stages import handler

_CHECK_S = 0.1
"""How often a wait looks whether its job has been cancelled."""
_IDLE_S = 0.01
"""How long a worker waits before it asks for others' tasks."""
_ASKED = 8
"""How many others a worker that has done its part asks, so that messages grow with the workers only."""
_WAYS = 3
"""To so many jobs that begin a worker gives way which helps with another; then it helps beside them, as who
stands still would be waited for as long as one job follows another."""
_PROGRAMS = 256
"""Programs that a worker keeps for plans it may run again."""


Started = list[tuple[PiecedOperand, list[tuple[Piece, Any]]]]
"""Operands under way: for each its pieces, as views or futures."""
Asked = list[tuple[int, Key, Region, Future[Any] | None]]
"""Regions of ranks' tiles under way; those of this rank are read in the end."""


class Executor(BlockThreads):
    """Runs plans for one rank.

    Parameters
    ----------
    rank, world : this worker's number and the number of workers
    store : its tiles
    transfer : where other ranks' tiles come from
    threads : threads for blocks (the calling thread is one of them)
    tiles : who says where tiles lie; by default the rank's own lie in `store`
    """

    def __init__(
        self,
        rank: int,
        world: int,
        store: Store,
        transfer: Transfer,
        threads: int,
        tiles: Whereabouts | None = None,
    ) -> None:
        super().__init__(transfer, threads)
        self.rank = rank
        self.world = world
        self.store = store
        self.tiles = tiles or OwnTiles(rank, store, transfer)
        self.waiting: dict[str, tuple[int, str]] = {}
        """By job: for which rank this one has waited for a while, and in which stage."""
        self._vanguard = Vanguard()
        self._begun = 0
        """Parts of jobs that have begun."""
        self._done: dict[str, Run] = {}
        """Parts that have ended, of jobs that others may need help with."""
        self._programs: OrderedDict[tuple[str, int], Program] = OrderedDict()
        self._lock = threading.Lock()

    def run(
        self,
        job: str,
        plan: Plan,
        inputs: Sequence[Key],
        outputs: Sequence[Key],
        cancelled: threading.Event,
        progress: Callable[[float], None] | None = None,
    ) -> list[StageStats]:
        """Run all stages of this rank; the results lie in the store under the keys `outputs`.

        `progress` is told how many stages are done, and which part of the next, in any thread. Raises
        whatever a stage raises, and `JobCancelled` soon after `cancelled` is set.
        """
        program = self.program(plan, job)
        begun_ns = now_ns()
        keys: list[Key] = [(job, s) for s in range(len(plan.slots))]
        for slot, key in (*zip(plan.inputs, inputs, strict=True), *zip(plan.outputs, outputs, strict=True)):
            keys[slot] = key
        run = Run(job, plan, program, keys, cancelled, report=progress)
        self._begun += 1
        if self.world == 1:
            self._run_stages(run, begun_ns)
            return run.took
        self.transfer.offers.begin(job)
        try:
            self._run_stages(run, begun_ns)
        finally:
            self.transfer.offers.end(job)
        if program.is_shared:
            self._done[job] = run
        return run.took

    def _run_stages(self, run: Run, end_ns: int) -> None:
        """Stages follow each other without a gap, from `end_ns` on."""
        with self._entered(), Acting(run.job):
            for i, (stage, task) in enumerate(zip(run.plan.stages, run.program.tasks, strict=True)):
                self.check(run)
                run.stats, run.index = StageStats(), i
                begin_ns = end_ns
                plainly = partial(handler(type(stage)), self)
                handle = self._with_backup if i in run.program.backed else plainly
                try:
                    if run.program.users[i] and self.world > 1:
                        with self._vanguard.passing(self, run):
                            handle(run, stage, task)
                    else:
                        handle(run, stage, task)
                    if run.files:
                        self.look(run, at_once=True)
                except BaseException as error:
                    if record.is_on:
                        moved = run.stats.bytes_moved
                        record.note("stage", stage.name, begin_ns, now_ns(), run.job, i, moved, error)
                    if isinstance(error, Exception):
                        error.add_note(f"in stage {i} of {len(run.plan.stages)}, {stage.name!r}")
                    raise
                if run.program.dying[i]:
                    self._release(run, i)
                end_ns = now_ns()
                run.stats.seconds = (end_ns - begin_ns) / 1e9
                if record.is_on:
                    moved = run.stats.bytes_moved
                    record.note("stage", stage.name, begin_ns, end_ns, run.job, i, moved)
                run.took.append(run.stats)
                if run.report is not None:
                    run.report(i + 1)

    def standing_in(self, rank: int, store: Store, tiles: Whereabouts) -> Executor:
        """Who runs a share of another rank in this process, into a store of its own; to be closed."""
        other = Executor(rank, self.world, store, self.transfer, self.threads, tiles)
        other.errstate = self.errstate
        return other

    def handle(self, run: Run, stage: Stage, task: Task) -> None:
        """Run a share of a stage."""
        handler(type(stage))(self, run, stage, task)

    def _with_backup(self, run: Run, stage: Stage, task: Task) -> None:
        """Run a share of a stage that another worker may run, too, where this one is slow; but not what the
        memory of both has no room for on its way."""
        budget = None if self.store.pool is None else self.store.pool.budget_bytes
        touched = dict.fromkeys((*stage.read_slots(), *stage.written_slots()))
        held = sum(slot.nbytes for s in touched if not (slot := run.plan.slots[s]).is_outside)
        if budget is not None and held // self.world > copied_bytes(budget):
            self.handle(run, stage, task)
            return
        nbytes = sum(run.plan.slots[s].nbytes for s in touched) // self.world
        backup = Backup(nbytes, partial(self._put_for, run), task.reads)
        self.transfer.offers.share(run.job, run.index, backup)
        try:
            self.overtakable(run, backup, lambda own: self.handle(own, stage, task))
        finally:
            self.transfer.offers.share(run.job, run.index, None)

    def _put_for(self, run: Run, slot: int, tile: Any) -> None:
        """Complete this rank's tile with what another worker has made."""
        if self.store.holds(run.keys[slot]):
            return  # it was made here after all, and somebody may have read it
        if isinstance(tile, np.ndarray):
            found, tile = tile, self.store.allocate(tile.shape, tile.dtype)
            np.copyto(tile, found)
        self.put(run, slot, tile)
        run.stats.bytes_moved += data_bytes(tile)

    def help(self, job: str, stopped: threading.Event) -> None:
        """After the own part of a job: do tasks of those next to us who have not finished theirs.

        It asks nobody at first, as most end at about the same time, and less and less often while there are
        none. Whole shares of theirs it leaves to others for a while where a job begins here.
        """
        done, begun, ways = self._done.pop(job, None), self._begun, 0
        if done is None or stopped.wait(_IDLE_S if done.program.lends else BACKUP_S):
            return

        def is_busy() -> bool:
            return self._begun != begun and ways < _WAYS

        run = replace(done, cancelled=stopped)
        # Each rank begins with its own neighbour, so that not all ask the first.
        near = range(1, min(run.plan.ranks, 1 + _ASKED))
        ranks = [(self.rank + k) % run.plan.ranks for k in near]
        pause = _IDLE_S
        while ranks and not stopped.is_set():
            if is_busy():
                begun, ways = self._begun, ways + 1
                stopped.wait(BACKUP_S)
                continue
            rank = ranks.pop(0)
            try:
                with Acting(job):
                    worked = borrow(self, run, rank, is_busy)
            except JobCancelled:
                return  # stopped meanwhile
            if worked:
                ranks.insert(0, rank)
                pause = _IDLE_S
            elif worked is False:
                ranks.append(rank)
                stopped.wait(pause)
                pause = min(2 * pause, _CHECK_S)

    def forget(self, is_over: Callable[[str], bool]) -> None:
        """Keep nothing of plans whose keys are over, nor of the functions in them."""
        with self._lock:
            for key in [k for k in self._programs if is_over(k[0])]:
                del self._programs[key]

    def program(self, plan: Plan, job: str = "") -> Program:
        """A plan as this rank's tasks, made for `job` where it is new."""
        key = (plan.key, plan.workers)
        with self._lock:
            found = self._programs.get(key)
            if found is not None:
                self._programs.move_to_end(key)
                return found
        with record.span("prepare", "", job):
            # Without the lock: it takes a while, and of two that are made at one time either will do.
            program = Program(plan, self.rank)
        with self._lock:
            self._programs[key] = program
            if len(self._programs) > _PROGRAMS:
                self._programs.popitem(last=False)
        return program

    # --- data ---------------------------------------------------------------------------------------

    def put(self, run: Run, slot: int, tile: Any) -> None:
        """Complete this rank's tile of a slot; peers may read it from now on."""
        plan = run.plan
        if not isinstance(tile, np.ndarray):
            run.stats.bytes_made += data_bytes(tile)
        elif config.check and tile.dtype != plan.slots[slot].dtype:
            raise TypeError(f"%{slot} is to be of {plan.slots[slot].dtype.str}, not {tile.dtype.str}")
        # What depends on data is read as often as these say, which nobody can count before.
        kept = slot in plan.outputs or slot in run.program.dynamic
        reads = None if kept else run.program.remote_reads[slot]
        if run.backup is None:
            self.store.put(run.keys[slot], tile, reads)
        else:
            run.backup.put(lambda: self.store.put(run.keys[slot], tile, reads))

    def _release(self, run: Run, index: int) -> None:
        """Let go of the slots that this rank needs no more (peers may still have to read them)."""
        for slot in run.program.dying[index]:
            if slot not in run.program.dynamic:
                self.store.release(run.keys[slot])

    def load(self, run: Run, operand: PiecedOperand) -> Any:
        """Gather an operand: this rank's part as a view, others' pieces from their workers."""
        return _unpacked(operand.present(self.gather(run, operand)))

    def load_all(self, run: Run, operands: Iterable[PiecedOperand]) -> list[Any]:
        """Gather several operands, all requests under way at once."""
        return self.finish_all(run, self.start_all(run, operands))

    def start_all(self, run: Run, operands: Iterable[PiecedOperand]) -> Started:
        """Ask for several operands without waiting for any; once for pieces that they have in common."""
        started: Started = []
        asked: dict[int, list[tuple[Piece, Any]]] = {}
        for operand in operands:
            parts = asked.get(id(operand.pieces)) if operand.pieces else None
            if parts is None:
                parts = asked[id(operand.pieces)] = self._start(run, operand)
            started.append((operand, parts))
        return started

    def finish_all(self, run: Run, started: Started, packed: bool = False, unread: bool = False) -> list[Any]:
        """The operands that `start_all` has asked for; what several of them show is put together once."""
        gathered: dict[int, Any] = {}
        found = []
        for operand, parts in started:
            if id(parts) not in gathered:
                gathered[id(parts)] = self._finish(run, operand, parts, unread)
            elif run.backup is not None:
                run.backup.note(operand, gathered[id(parts)])
            value = gathered[id(parts)]
            found.append(value if unread and isinstance(value, Unread) else operand.present(value))
        return found if packed else [_unpacked(value) for value in found]

    def unread_all(self, run: Run, operands: Iterable[PiecedOperand]) -> list[Any]:
        """As `load_all`, but what sources give is left to be read by the caller."""
        return self.finish_all(run, self.start_all(run, operands), packed=True, unread=True)

    def read(self, unread: Unread) -> np.ndarray[Any, Any]:
        """A region of a source, as a whole."""
        with self.store.room_beside(unread.source.beside_bytes):
            out = self.store.allocate(unread.shape, unread.dtype)
            unread.into(out)
        return out

    def gather(self, run: Run, operand: PiecedOperand) -> Any:
        """The operand's region in the array's own axes."""
        return self._finish(run, operand, self._start(run, operand))

    def _start(self, run: Run, operand: PiecedOperand) -> list[tuple[Piece, Any]]:
        """Views of local pieces, futures of remote ones."""
        key = run.keys[operand.slot]
        parts: list[tuple[Piece, Any]] = []
        for piece in operand.pieces:
            if piece.rank != self.tiles.own and not self.tiles.is_here(key, piece.rank):
                parts.append((piece, self._fetch(run, key, piece.rank, piece.region)))
                continue
            tile = self.tiles.tile(key)
            dense_tile = tile.__class__ is np.ndarray
            if dense_tile and not tile.flags.writeable:
                self.watch(run, tile)
            parts.append((piece, tile[piece.index] if dense_tile else read_region(tile, piece.region)))
        return parts

    def _fetch(self, run: Run, key: Key, rank: int, region: Region) -> Future[Any]:
        """A region of another rank's tile, as soon as it has come."""
        future = self.tiles.ask(key, rank, region)
        if record.wants("transfer"):
            begin_ns, index = now_ns(), run.index

            def arrived(future: Future[Any]) -> None:
                if not future.cancelled() and future.exception() is None:
                    nbytes = data_bytes(future.result())
                    record.note("transfer", f"from worker {rank}", begin_ns, now_ns(), run.job, index, nbytes)

            future.add_done_callback(arrived)
        return future

    def _finish(
        self, run: Run, operand: PiecedOperand, parts: list[tuple[Piece, Any]], unread: bool = False
    ) -> Any:
        """The operand put together; what lies in a source is read, or left to be read if `unread`."""
        if len(parts) == 1 and not isinstance(parts[0][1], Future):
            value = parts[0][1]
            return self.read(value) if isinstance(value, Unread) and not unread else value
        arrived = []
        for piece, data in parts:
            if isinstance(data, Future):
                try:
                    data = self.wait(run, data, piece.rank)
                except WorkerLost:
                    found = self.tiles.instead(operand)
                    if found is None:
                        raise
                    value = self.wait(run, found, piece.rank)
                    if value is None:
                        raise
                    return value
                run.stats.bytes_moved += data_bytes(data)
            arrived.append((piece, data))
        slot = run.plan.slots[operand.slot]
        value = gathered_pieces(arrived, operand.shape, slot.dtype, self.store.allocate)
        if run.backup is not None:
            run.backup.note(operand, value)
        return value

    def wait(self, run: Run, future: Future[Any], rank: int) -> Any:
        """The future's result, giving up when the job is cancelled; meanwhile do tasks of others, those of
        `rank` first, who is to send it."""
        begin_ns = now_ns() if record.is_on and not future.done() else 0
        if run.backup is not None:
            run.backup.waits()
        try:
            return self._wait(run, future, rank)
        finally:
            self.waiting.pop(run.job, None)
            if run.backup is not None:
                run.backup.goes_on()
            if begin_ns:
                record.note("wait", f"for worker {rank}", begin_ns, now_ns(), run.job, run.index)

    def _wait(self, run: Run, future: Future[Any], rank: int) -> Any:
        pause = _IDLE_S if run.program.lends else _CHECK_S
        asked = rank
        while True:
            try:
                return future.result(timeout=pause)
            except FutureTimeout:
                if future.done():  # it may have come since
                    return future.result()
                self.check(run)
                self.waiting[run.job] = (asked, run.plan.stages[run.index].name)
            if run.program.is_shared:
                worked = rank != self.rank and borrow(self, run, rank, future.done)
                pause = _IDLE_S if worked else min(2 * pause, _CHECK_S)
                rank = rank if worked else (rank + 1) % run.plan.ranks

    def fetch_all(self, run: Run, slot: int, reads: Iterable[tuple[int, Region]]) -> list[Any]:
        """Regions of ranks' tiles, known only now (data-dependent reads), all under way at once."""
        return self.arrived(run, self.ask_all(run, slot, reads))

    def ask_all(self, run: Run, slot: int, reads: Iterable[tuple[int, Region]]) -> Asked:
        """As `fetch_all`, without waiting for any."""
        key = run.keys[slot]
        return [
            (r, key, x, None if self.tiles.is_here(key, r) else self._fetch(run, key, r, x)) for r, x in reads
        ]

    def arrived(self, run: Run, asked: Asked) -> list[Any]:
        """The regions that `ask_all` has asked for."""
        found = []
        for rank, key, region, future in asked:
            if future is None:
                own = read_region(self.tiles.tile(key), region)
                found.append(self.read(own) if isinstance(own, Unread) else own)
                continue
            data = self.wait(run, future, rank)
            run.stats.bytes_moved += data_bytes(data)
            found.append(data)
        return found


def _unpacked(value: Any) -> Any:
    return dense(value) if is_compressed(value) else value
