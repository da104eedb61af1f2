"""Plans on engines that have tasks and objects of their own, as dask and Ray do.

A task of ours is (stage, rank), a function of tiles; a tile is an object of the engine, made by one of its
tasks. So the engine places, moves, spills and recomputes, and its page, limits and errors are what its users
know. Ranks are no workers here: they say into how many parts plans cut their arrays.

What a stage reads is known before, but for lookups and merges of sorts: their tasks run as far as they
come, say what they need, and are submitted again with it. A region of a tile is cut out where the tile
lies, so that no more of it moves.

An engine is a file with an `Engine`; see `dask` and `ray` beside this one.
"""

from __future__ import annotations

import copyreg
import time
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spartan_ng.arrays import ArrayRef, Box, Tiling, box_of, box_size, box_slices
from spartan_ng.backends.engines.inlined import Inlined, Value
from spartan_ng.backends.engines.jobs import Job, Tile, Tiles
from spartan_ng.backends.engines.protocol import Engine, Forgotten, Handle, TaskKilled
from spartan_ng.backends.engines.steps import LITTLE_BYTES, Step, is_sure, steps_of
from spartan_ng.backends.protocol import Progress, RunStats
from spartan_ng.costs import Profile
from spartan_ng.errors import UserFunctionError, WorkerLost
from spartan_ng.ops.functions import UserFunction, named, users_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Slot
from spartan_ng.sources import SourceTile
from spartan_ng.wire.functions import Pickled, dump_function, load_function
from spartan_ng.worker.memory.regions import Piece, gathered, identity
from spartan_ng.worker.memory.store import read_region
from spartan_ng.worker.tasks import Made, Wanted, elements, facts, read

INLINE_BYTES = 64 * 1024
"""Results of up to this size each come to the driver with the end of the job."""
_TRAVELS_BYTES = 16 * 1024
"""Tiles of the program's arrays up to this size go inside the tasks that read them."""
_PLANS = 256
"""Plans that are kept on the engine for programs that come again."""
_TASK_NS, _MESSAGE_NS = 2_000_000, 1_000_000
"""What a rank more in a stage costs (its task and those that cut out what it reads), and a remote read, where
the scheduler is a Python process."""


@dataclass(slots=True)
class _Known:
    """A plan on the engine."""

    handle: Handle
    steps: list[Step]


class EngineBackend:
    """Runs plans as tasks of `engine`, in so many parts as it can run tasks at a time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.tasks = Inlined(engine)
        """Where tasks go whose operands are those of arrays here."""
        self._workers = max(1, engine.slots())
        self._arrays: dict[int, Tiles] = {}
        """By the array's serial number."""
        self._plans: OrderedDict[str, _Known] = OrderedDict()
        self._retired = False
        self._ahead = 0
        """Jobs since one was waited for."""

    @property
    def workers(self) -> int:
        """Into how many parts plans cut: as many as the engine could run tasks when it had no arrays."""
        if not self._arrays:
            self._workers = max(1, self.engine.slots())
        return self._workers

    @property
    def profile(self) -> Profile:
        """Assumed rates."""
        return Profile(workers=self._workers, task_ns=_TASK_NS, message_ns=_MESSAGE_NS)

    # --- arrays

    def reads(self, ref: ArrayRef) -> bool:
        """What is mapped is cut as any value is."""
        return ref.value is None

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Give the engine a driver array's tiles as tasks that hold them, so that it can make them again."""
        tiles: Tiles = {}
        for rank in range(1 if tiling.duplicate else self._workers):
            box = tiling.box_on(ref.shape, rank)
            if ref.value is None:
                tile = SourceTile(ref.source)
                tiles[rank] = Tile(self.tasks.submit("upload", Made, {0: tile}, rank=rank), 0, alone=True)
            elif box is not None:
                value = ref.value[box_slices(box)]
                part = np.ascontiguousarray(value).reshape(value.shape) if ref.format == "dense" else value
                little = ref.format == "dense" and part.nbytes <= _TRAVELS_BYTES
                made = (
                    Value(Made({0: part}))
                    if little
                    else self.tasks.submit("upload", Made, {0: part}, rank=rank)
                )
                tiles[rank] = Tile(made, 0, alone=True)
        if any(not isinstance(tile.handle, Value) for tile in tiles.values()):
            self.tasks.begin()  # else two tiles may come to one worker, and none to another
        self._keep(ref, tiling, tiles)

    def adopt(self, ref: ArrayRef, tiling: Tiling, handles: Sequence[Handle]) -> None:
        """Keep an array that the engine has made: for each tile of the grid what gives a `Made` of it."""
        self._keep(ref, tiling, {rank: Tile(handle, 0, alone=True) for rank, handle in enumerate(handles)})

    def tiles(self, ref: ArrayRef) -> Tiles:
        """Where the tiles of an array are; one that only the program has goes to the engine first."""
        if ref.serial not in self._arrays:
            self.upload(ref, Tiling.single(len(ref.shape)))
        elif self._is_forgotten(ref):
            self._bring_again(ref, ref.tiling or Tiling.single(len(ref.shape)))
        return self._arrays[ref.serial]

    def _keep(self, ref: ArrayRef, tiling: Tiling, tiles: Tiles) -> None:
        ref.tiling = tiling
        if tiling.duplicate:
            tiles = dict.fromkeys(range(self._workers), tiles[0])
        self._arrays[ref.serial] = tiles
        if ref.backend is not self:
            this = weakref.ref(self)

            def release(serial: int) -> None:
                backend = this()
                if backend is not None:
                    backend._release(serial)

            ref.on_release(self, release)

    def _release(self, serial: int) -> None:
        self._arrays.pop(serial, None)
        if self._retired and not self._arrays:
            self.close()

    def _is_forgotten(self, ref: ArrayRef) -> bool:
        """Whether somebody has had the engine forget a tile of an array."""
        return not all(self.tasks.is_known(tile.handle) for tile in self._arrays[ref.serial].values())

    def _bring_again(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Give the engine an array again that it has forgotten, if the program has it, or knows its file."""
        if ref.value is None and ref.source is None:
            raise WorkerLost(self._of_forgotten(ref))
        self.upload(ref, tiling)

    def _of_forgotten(self, ref: ArrayRef) -> str:
        return f"{self._has_forgotten()} an array of shape {ref.shape}: make it again"

    def _has_forgotten(self) -> str:
        return f"{self.engine.name} was restarted, or has cancelled futures, and so has forgotten"

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """The elements inside `box` as a NumPy (or CSR) array on the driver."""
        try:
            return self._gathered([(ref, box)])[0]
        except TaskKilled as error:  # of a job that nobody has waited for
            raise WorkerLost(str(error)) from error
        except Forgotten as error:
            raise WorkerLost(self._of_forgotten(ref)) from error

    def _gathered(self, wanted: Sequence[tuple[ArrayRef, Box]]) -> list[Any]:
        """Boxes of several arrays; all are under way at once."""
        operands, handles = [], []
        for ref, box in wanted:
            if ref.serial not in self._arrays or ref.tiling is None:
                raise WorkerLost(f"an array of shape {ref.shape} has no tiles on this engine")
            operand = identity(0, box, Slot(ref.shape, ref.dtype, ref.tiling, ref.format), 0)
            pieces = [(p, self._arrays[ref.serial][p.rank]) for p in operand.pieces]
            operands.append((ref, operand, pieces))
            handles += [
                tile.handle
                if _comes_as_it_is(ref, tile, p)
                else self.tasks.submit("gather", read, tile.handle, tile.number, p.region)
                for p, tile in pieces
            ]
        distinct = list(dict.fromkeys(handles))
        found = dict(zip(distinct, self.tasks.get(distinct), strict=True))
        arriving = (found[handle] for handle in handles)
        return [
            _writable(
                gathered(
                    [(p, _region_of(next(arriving), tile, p)) for p, tile in pieces],
                    operand.shape,
                    np.dtype(ref.dtype),
                )
            )
            for ref, operand, pieces in operands
        ]

    # --- jobs

    def run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None = None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run `plan` as tasks; see `Backend.run`."""
        try:
            return self._run(plan, inputs, progress)
        except Forgotten:  # more than is known here: so it is where a client had to connect anew
            self._plans.clear()
            for n, ref in zip(plan.inputs, inputs, strict=True):
                if ref.value is not None or ref.source is not None:
                    self.upload(ref, plan.slots[n].tiling)
        try:
            return self._run(plan, inputs, progress)
        except Forgotten as error:
            raise WorkerLost(f"{self._has_forgotten()} what a job was making: {error}") from error

    def _run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None
    ) -> tuple[list[ArrayRef], RunStats]:
        start = time.perf_counter()
        known = self._known(plan)
        for n, ref in zip(plan.inputs, inputs, strict=True):
            if self._is_forgotten(ref):
                self._bring_again(ref, plan.slots[n].tiling)
        where = {n: self._arrays[ref.serial] for n, ref in zip(plan.inputs, inputs, strict=True)}
        job = Job(self.tasks, plan, known.handle, known.steps, where)
        try:
            job.submit(progress)
            results = self._results(plan, job, progress)
        except KeyboardInterrupt:
            self.tasks.cancel(job.handles())
            raise
        except TaskKilled as error:
            self.tasks.cancel(job.handles())
            users = users_of(plan.stages)
            if users:
                raise UserFunctionError(
                    f"{named(users)}: the processes that ran this ended\n{error}"
                ) from error
            raise WorkerLost(str(error)) from error
        except Forgotten:
            self.tasks.cancel(job.handles())
            raise
        if progress is not None:
            progress(len(plan.stages), len(plan.stages))
        job.stats[-1:] = [replace(s, seconds=time.perf_counter() - start) for s in job.stats[-1:]]
        return results, RunStats(time.perf_counter() - start, job.stats)

    def _results(self, plan: Plan, job: Job, progress: Progress | None) -> list[ArrayRef]:
        """Keep what the job has made, as soon as all of it is there; small values come here."""
        slots = [plan.slots[n] for n in plan.outputs]
        refs = [ArrayRef(s.shape, s.dtype, format=s.format, tiling=s.tiling) for s in slots]
        tiles = [job.output(n) for n in plan.outputs]
        for ref, slot, each in zip(refs, slots, tiles, strict=True):
            self._keep(ref, slot.tiling, each)
        if progress is not None:
            self._follow(plan, tiles, progress)
        little = [i for i, s in enumerate(slots) if s.nbytes <= INLINE_BYTES and s.format == "dense"]
        values = self._gathered([(refs[i], box_of(refs[i].shape)) for i in little]) if little else []
        for i, value in zip(little, values, strict=True):
            refs[i].value = value
        if not little and self._goes_on(plan, job):
            self.tasks.send()
            return refs
        self._ahead = 0
        large = (each for i, each in enumerate(tiles) if i not in little)
        self.tasks.wait(list(dict.fromkeys(t.handle for each in large for t in each.values())))
        job.learn()
        for ref, slot, each in zip(refs, slots, tiles, strict=True):
            if ref.format == "csr":
                ref.nnz = self._nnz(slot, each)
        return refs

    def _follow(self, plan: Plan, results: Sequence[Tiles], progress: Progress) -> None:
        """Tell of what is done of a job, in stages, while its results are made."""
        stages = len(plan.stages)
        handles = dict.fromkeys(tile.handle for tiles in results for tile in tiles.values())
        self.tasks.follow([*handles], lambda done: progress(done * stages, stages))

    def _goes_on(self, plan: Plan, job: Job) -> bool:
        """Whether the program may go on while a job is under way: nothing of it is to be known here, and
        nothing that it does raises because of what the program has written."""
        self._ahead += 1
        return self._ahead < self.tasks.ahead and not job.teaches and is_sure(plan)

    def _nnz(self, slot: Slot, tiles: Tiles) -> int:
        distinct = [tiles[0]] if slot.tiling.duplicate else list(tiles.values())
        return sum(
            n
            for n, _ in self.tasks.get(
                [self.tasks.submit("count", facts, t.handle, t.number) for t in distinct]
            )
        )

    def _known(self, plan: Plan) -> _Known:
        """The plan on the engine, and what its stages read."""
        found = self._plans.get(plan.key)
        if found is None or not self.tasks.is_known(found.handle):
            found = self._plans[plan.key] = _Known(self.tasks.submit("plan", _same, plan), steps_of(plan))
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(plan.key)
        return found

    def close(self) -> None:
        """Let go of all arrays, and leave the engine."""
        self._arrays.clear()
        self._plans.clear()
        self.engine.close()

    def retire(self) -> None:
        """Close when the last array is gone that only the engine has."""
        self._retired = True
        if not self._arrays:
            self.close()


def _comes_as_it_is(ref: ArrayRef, tile: Tile, piece: Piece) -> bool:
    """Whether a tile is fetched as an object: alone in it, and little or wanted whole."""
    if not tile.alone or ref.format != "dense" or ref.tiling is None:
        return False
    size = box_size(ref.tiling.box_on(ref.shape, piece.rank) or ())
    little = size * np.dtype(ref.dtype).itemsize <= LITTLE_BYTES
    return little or elements(Wanted(0, piece.rank, piece.region)) == size


def _region_of(found: Any, tile: Tile, piece: Piece) -> Any:
    """What is wanted of what has come."""
    return read_region(found.tiles[tile.number], piece.region) if isinstance(found, Made) else found


def _writable(value: Any) -> Any:
    """An array that may be written to: an engine's own memory is for reading, and what is part of a tile here
    is the tile's."""
    kept = isinstance(value, np.ndarray) and (value.base is not None or not value.flags.writeable)
    return value.copy() if kept else value


def _same(plan: Plan) -> Plan:
    """A plan as an object of the engine."""
    return plan


def _reduced(given: UserFunction) -> tuple[Any, ...]:
    """A user's function as it travels to our own workers, whatever pickle the engine has."""
    return _loaded, (given.origin, *dump_function(given.function))


def _loaded(origin: str, name: str | None, pickled: Pickled | None) -> UserFunction:
    return UserFunction(load_function(name, pickled), origin)


copyreg.pickle(UserFunction, _reduced)
