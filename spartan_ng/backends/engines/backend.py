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
import logging
import pickle
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, Tiling, box_of, box_slices
from spartan_ng.backends import forked
from spartan_ng.backends.engines.holdings import EngineHoldings, comes_as_it_is, region_of
from spartan_ng.backends.engines.inlined import Inlined
from spartan_ng.backends.engines.jobs import EngineJob, TilePlace, Tiles
from spartan_ng.backends.engines.protocol import Engine, Forgotten, Handle, TaskKilled
from spartan_ng.backends.engines.steps import EngineStep, is_sure, ordered_steps
from spartan_ng.backends.protocol import INLINE_BYTES, Progress, RunStats, Way, bring, measured
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import ENGINE_MESSAGE_NS, ENGINE_TASK_NS
from spartan_ng.errors import GivenUp, MasterUnreachable, UserFunctionError, WorkerLost, WorkersChanged
from spartan_ng.events import record as happened
from spartan_ng.ops.functions import UserFunction, named_functions, users_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Slot
from spartan_ng.wire.functions import Pickled, dump_function, load_function
from spartan_ng.worker.memory.regions import gathered_pieces, identity
from spartan_ng.worker.tasks import facts, read, read_apart

_log = logging.getLogger(__name__)
T = TypeVar("T")

_PLANS = 256
"""Plans that are kept on the engine for programs that come again."""
_LOOK_S = 0.1
"""Seconds from one question to an engine that has arrays to the next, whether it has grown."""
_DOUBTS = 256
"""Jobs that are waited for once something was lost."""


class _Known(Struct):
    """A plan on the engine."""

    handle: Handle
    steps: list[EngineStep]


class _ReadKilled(Exception):
    """What a job reads was given up before: it is no fault of the job's."""


class EngineBackend:
    """Runs plans as tasks of `engine`, in so many parts as it can run tasks at a time."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.tasks = Inlined(engine)
        """Where tasks go whose operands are those of arrays here."""
        self._workers = max(1, engine.slots())
        self._looked_s = float("-inf")
        """When it was last asked whether it has grown."""
        self._held = EngineHoldings(self.tasks, self, self._close_if_retired)
        self.recover: Callable[[Sequence[ArrayRef]], bool] | None = None
        """See `Losing`."""
        self.is_better_anew: Callable[[Plan, Way, int], bool] | None = None
        """See `Losing`; no job is set aside here."""
        self._plans: OrderedDict[str, _Known] = OrderedDict()
        self._retired = False
        self._ahead = 0
        """Jobs since one was waited for."""
        self._doubts = 0
        """Jobs that are still to be waited for since something was lost."""
        forked.sever_in_forks(self)

    def sever(self) -> None:
        """See `forked`."""
        forked.keep_in_forks(self.engine, self.tasks, self._held, self._plans)
        self.engine = self.tasks = self._held = forked.Severed()  # type: ignore[assignment]  # for each
        self.recover = None

    @property
    def workers(self) -> int:
        """Into how many parts plans cut: as many as the engine could run tasks when it had no arrays, or more
        where it has grown since."""
        # Without arrays no tiling binds it.
        if not self._held:
            self._workers = max(1, self.engine.slots())
        elif time.monotonic() - self._looked_s > _LOOK_S and self.engine.is_there():
            self._looked_s = time.monotonic()
            self._workers = max(self._workers, self.engine.slots())
        return self._workers

    @property
    def profile(self) -> Profile:
        """Assumed rates."""
        return Profile(workers=self._workers, task_ns=ENGINE_TASK_NS, message_ns=ENGINE_MESSAGE_NS)

    # --- arrays

    def reads(self, ref: ArrayRef) -> bool:
        """What is mapped is cut as any value is."""
        return ref.value is None

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """See `Backend`; WorkersChanged where the plan that asks for it is for more parts."""
        if tiling.highest >= self._workers:
            raise WorkersChanged(f"a tiling of {tiling.highest + 1} parts, but arrays have {self._workers}")
        self._held.upload(ref, tiling, self._workers)

    def adopt(self, ref: ArrayRef, tiling: Tiling, handles: Sequence[Handle]) -> None:
        """Keep an array that the engine has made: for each tile of the grid what gives a `Made` of it."""
        tiles = {rank: TilePlace(handle, 0, alone=True) for rank, handle in enumerate(handles)}
        self._held.keep(ref, tiling, tiles, self._workers)

    def tiles(self, ref: ArrayRef) -> Tiles:
        """Where the tiles of an array are; one that only the program has goes to the engine first."""
        if ref.backend is not self:
            if ref.value is None and ref.source is None:
                bring(ref)
            self.upload(ref, Tiling.single(len(ref.shape)))
        elif self._held.is_forgotten(ref):
            self._again([ref], lambda: self._bring_again(ref, ref.tiling or Tiling.single(len(ref.shape))))
        return self._held[ref]

    def laid_out(self, ref: ArrayRef) -> tuple[Tiles, Tiling]:
        """An array's tiles for others to read, and how they are cut; what lies outside is read in parts."""
        source = ref.source
        if ref.value is not None or source is None:
            tiles, tiling = self.tiles(ref), ref.tiling
            assert tiling is not None, "an array on an engine has a tiling"
            return tiles, tiling
        parts = [min(self.workers, max(n, 1)) for n in ref.shape[:1]]
        tiling = Tiling.grid(*parts, *(1 for _ in ref.shape[1:]))
        boxes = [(rank, tiling.box_on(ref.shape, rank)) for rank in range(tiling.ntiles)]
        submit = self.tasks.submit
        return {r: TilePlace(submit("read", read_apart, source, box), 0, True) for r, box in boxes}, tiling

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
        return self._again([ref], lambda: self._gather(ref, box))

    def _again(self, refs: Sequence[ArrayRef], act: Callable[[], T]) -> T:
        """Act on arrays, which are computed again where they turn out to be lost."""
        for left in reversed(range(config.retries + 1)):
            try:
                return act()
            except (WorkerLost, MasterUnreachable) as error:
                if isinstance(error, MasterUnreachable) and not self.is_gone():
                    raise
                if not left or self.recover is None or not any(map(self.is_lost, refs)):
                    raise
                if not self.recover(refs):
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _gather(self, ref: ArrayRef, box: Box) -> Any:
        if ref.value is not None and ref.backend is not self:  # computed again, it has come here
            return ref.value[box_slices(box)]
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
            tiles = self._held[ref]
            assert ref.tiling is not None, "an array on an engine has a tiling"
            operand = identity(0, box, Slot(ref.shape, ref.dtype, ref.tiling, ref.format), 0)
            pieces = [(p, tiles[p.rank]) for p in operand.pieces]
            operands.append((ref, operand, pieces))
            handles += [
                tile.handle
                if comes_as_it_is(ref, tile, p)
                else self.tasks.submit("gather", read, tile.handle, tile.number, p.region)
                for p, tile in pieces
            ]
        # Several boxes may come as one whole tile, which is fetched once.
        distinct = list(dict.fromkeys(handles))
        found = dict(zip(distinct, self.tasks.get(distinct), strict=True))
        arriving = (found[handle] for handle in handles)
        return [
            _writable(
                gathered_pieces(
                    [(p, region_of(next(arriving), tile, p)) for p, tile in pieces],
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
        if plan.workers != self._workers:  # as long as there are no arrays, the engine may shrink and grow
            raise WorkersChanged(f"a plan of {plan.workers} parts, but arrays have {self._workers}")
        try:
            return self._run(plan, inputs, progress)
        except (
            Forgotten,
            _ReadKilled,
        ):  # more than is known here: so it is where a client had to connect anew
            self._plans.clear()
            for n, ref in zip(plan.inputs, inputs, strict=True):
                if ref.value is not None or ref.source is not None:
                    self.upload(ref, plan.slots[n].tiling)
        try:
            return self._run(plan, inputs, progress)
        except Forgotten as error:
            raise WorkerLost(f"{self._has_forgotten()} what a job was making: {error}") from error
        except _ReadKilled as error:
            raise WorkerLost(str(error)) from error

    def _run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None
    ) -> tuple[list[ArrayRef], RunStats]:
        start = time.perf_counter()
        known = self._known(plan)
        for n, ref in zip(plan.inputs, inputs, strict=True):
            if self._held.is_forgotten(ref):
                self._bring_again(ref, plan.slots[n].tiling)
        where = {n: self._here(ref, plan.workers) for n, ref in zip(plan.inputs, inputs, strict=True)}
        read = [known.handle, *(tile.handle for tiles in where.values() for tile in tiles.values())]
        job = EngineJob(self.tasks, plan, known.handle, known.steps, where)
        try:
            job.submit(progress)
            results = self._results(plan, job, progress)
        except KeyboardInterrupt:
            # Nobody wants them: they would hold up the next program.
            self.tasks.cancel(job.handles())
            raise
        except TaskKilled as error:
            self.tasks.cancel(job.handles())
            if self.tasks.lost(read):
                raise _ReadKilled(str(error)) from error
            users = plan.suspects
            if users:
                raise UserFunctionError(
                    f"{named_functions(users)}: the processes that ran this ended\n{error}"
                ) from error
            raise GivenUp(str(error)) from error
        except Forgotten:
            self.tasks.cancel(job.handles())
            raise
        if progress is not None:
            progress(len(plan.stages), len(plan.stages))
        job.stats[-1:] = [replace(s, seconds=time.perf_counter() - start) for s in job.stats[-1:]]
        return results, RunStats(time.perf_counter() - start, job.stats)

    def _here(self, ref: ArrayRef, ranks: int) -> Tiles:
        """The tiles of an array that a plan for so many ranks reads, maybe more than it was made for."""
        tiles = self._held[ref]
        assert ref.tiling is not None, "an array on an engine has a tiling"
        return dict.fromkeys(range(ranks), tiles[0]) if ref.tiling.duplicate else tiles

    def _results(self, plan: Plan, job: EngineJob, progress: Progress | None) -> list[ArrayRef]:
        """Keep what the job has made, as soon as all of it is there; small values come here."""
        slots = [plan.slots[n] for n in plan.outputs]
        refs = [ArrayRef(s.shape, s.dtype, format=s.format, tiling=s.tiling) for s in slots]
        tiles = [job.output(n) for n in plan.outputs]
        for ref, slot, each in zip(refs, slots, tiles, strict=True):
            self._held.keep(ref, slot.tiling, each, plan.workers)
        self._workers = plan.workers  # which somebody else may have asked for meanwhile
        if progress is not None:
            self._follow(plan, tiles, progress)
        little = [i for i, s in enumerate(slots) if s.nbytes <= INLINE_BYTES and s.format == "dense"]
        values = self._gathered([(refs[i], box_of(refs[i].shape)) for i in little]) if little else []
        for i, value in zip(little, values, strict=True):
            refs[i].value = value
            self._held.has_come(refs[i], slots[i].tiling, plan.workers)
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

    def _goes_on(self, plan: Plan, job: EngineJob) -> bool:
        """Whether the program may go on while a job is under way: nothing of it is to be known here, not even
        what it takes, and nothing that it does raises because of what the program has written."""
        self._ahead += 1
        self._doubts = max(self._doubts - 1, 0)
        if self._doubts or measured.get() or config.debug or happened.is_full:
            return False
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
            found = self._plans[plan.key] = _Known(self._given(plan), ordered_steps(plan))
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(plan.key)
        return found

    def _given(self, plan: Plan) -> Handle:
        """A plan as an object of the engine. Functions of the user's may read arrays when they are pickled,
        which an engine had better not do in the middle of its own."""
        if users_of(plan.stages):
            return self.tasks.submit("plan", pickle.loads, pickle.dumps(plan, pickle.HIGHEST_PROTOCOL))
        return self.tasks.submit("plan", _same, plan)

    # --- what is lost (see `Losing`): the session computes it again

    def is_lost(self, ref: ArrayRef) -> bool:
        """Whether only the engine had a tile of an array, and has it no more, nor makes it again."""
        if ref.value is not None or ref.source is not None or ref not in self._held:
            return False
        return self.is_gone() or self._held.is_lost(ref)

    def is_gone(self) -> bool:
        """Whether programs run elsewhere now, and the engine was closed."""
        return self._retired and not self.engine.is_there()

    def is_moved(self, ref: ArrayRef) -> bool:
        """Ranks are no workers here."""
        return False

    def tiles_of(self, ref: ArrayRef) -> dict[Box, ArrayRef | None]:
        """See `Losses`."""
        return {} if self.is_gone() else self._held.tiles_of(ref)

    def sparse_left(self, refs: Sequence[ArrayRef]) -> ArrayRef | None:
        """Sparse arrays are computed again as a whole."""
        return None

    def take_notice(self) -> None:
        """Something was lost, and more may be than is known: no job is left to end by itself for a while, as
        what it makes of what was lost would be lost, too."""
        self._doubts = _DOUBTS

    def spare(self, ref: ArrayRef) -> None:
        """An engine keeps its own second copies, if any."""

    def living(self) -> list[ArrayRef]:
        """None that should have a second copy."""
        return []

    def partner(self) -> tuple[int, int]:
        """None."""
        return 0, self._workers

    def restore(self, ref: ArrayRef, by: ArrayRef) -> None:
        """See `Losing`."""
        self._held.restore(ref, by)

    def tell_recovered(self, text: str) -> None:
        """To the program's log: the engine's page is its own."""
        _log.info("%s", text)

    def close(self) -> None:
        """Let go of all arrays, and leave the engine."""
        self._held.clear()
        self._plans.clear()
        self.recover = self.is_better_anew = None
        self.engine.close()

    def retire(self) -> None:
        """Close when the last array is gone that only the engine has."""
        self._retired = True
        self._close_if_retired()

    def _close_if_retired(self) -> None:
        if self._retired and not self._held:
            self.close()


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
    return _loaded, (given.origin, *dump_function(given.function, f"{given} (at {given.origin})"))


def _loaded(origin: str, name: str | None, pickled: Pickled | None) -> UserFunction:
    return UserFunction(load_function(name, pickled, f"The function (at {origin})"), origin)


copyreg.pickle(UserFunction, _reduced)
