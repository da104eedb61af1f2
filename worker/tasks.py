"""One rank's share of stages as a function of tiles: what engines run, which have tasks and objects.

`reads` says what a task needs of others' tiles, for most stages. What the rest reads depends on data:
`run_task` then gives `Needs` in place of `Made`, and is run again with what it asked for behind what it had.
A task asks in the same order each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from copy import copy
from functools import cache
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct, field

from spartan_ng.arrays import Box, Key
from spartan_ng.arrays.copying import aligned
from spartan_ng.arrays.sparse import is_csr
from spartan_ng.error_state import entered
from spartan_ng.kernels.user import Acting
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import Accumulate, MergeParts, ScanTile, Stage
from spartan_ng.sources.source import Source, read_box
from spartan_ng.system.heap import keep_freed
from spartan_ng.system.machine import machine_bytes
from spartan_ng.worker.blocks import Run
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.memory.recycle import Recycler
from spartan_ng.worker.memory.regions import data_bytes
from spartan_ng.worker.memory.store import Region, Store, read_region, selected_places
from spartan_ng.worker.scheduling.program import Program
from spartan_ng.worker.scheduling.shares import task_of
from spartan_ng.worker.scheduling.stealing import Offers
from spartan_ng.worker.stages.sorted_parts import samples_of
from spartan_ng.worker.stages.stages import handler

_MUCH = 8
"""Regions of at least one part in so many of a tile keep it while they are there."""
_SHARE = 32
"""A process keeps at most one part in so many of the machine's memory for tiles to come."""
_LIMIT_SHARE = 8
"""And one in so many of what its engine lets it have."""
_PROGRAMS = 1024
"""Programs that a process keeps, one for each plan and rank."""


class Wanted(Struct, frozen=True):
    """A region of the tile of `slot` that `rank` has, or, with `region` None, all of it."""

    slot: int
    rank: int
    region: Region | None = None


Number = int | tuple[int, int]
"""Which of a task's tiles: its slot; with the rank, where one task has done a stage for all of them."""


class Given(Struct, frozen=True):
    """Where a task finds what it reads: in its datum `at`, or (None) among what it has made itself. That is a
    region that has been read, or tile `number` of a task's `Made`, of which it wants `wanted`."""

    wanted: Wanted
    at: int | None
    number: Number | None = None


class Part(Struct, frozen=True):
    """The share of `rank` in a stage, as a task runs it: what it is given, and the numbers of the tiles that
    it makes, by slot."""

    stage: int
    rank: int
    given: tuple[Given, ...]
    makes: tuple[tuple[int, Number], ...]


class Made(Struct):
    """What a task has made: its tiles; by the slot of a scan's totals, the states of its chunks."""

    tiles: dict[Any, Any]
    chunks: dict[int, Any] = field(default_factory=dict)
    nbytes: int = 0
    """Bytes made where these cannot be known before (users' updates, CSR tiles)."""

    def __sizeof__(self) -> int:
        """What engines count, so that they know what to keep and where to run what reads it."""
        return 64 + sum(data_bytes(tile) for tile in self.tiles.values())

    def __reduce__(self) -> tuple[Any, ...]:
        """With the dtypes of tiles in the other order of bytes beside these: below protocol 5, which dask's
        scheduler does not take, NumPy brings them into the machine's."""
        others = {
            number: tile.dtype
            for number, tile in self.tiles.items()
            if isinstance(tile, np.ndarray) and not tile.dtype.isnative
        }
        bits = {number: self.tiles[number].view(dtype.newbyteorder("=")) for number, dtype in others.items()}
        return _made, (self.tiles | bits, others, self.chunks, self.nbytes)


def _made(
    tiles: dict[Any, Any], others: dict[Any, np.dtype[Any]], chunks: dict[int, Any], nbytes: int
) -> Made:
    tiles = {number: _in_words(tile) for number, tile in tiles.items()}
    tiles |= {number: tiles[number].view(dtype) for number, dtype in others.items()}
    return Made(tiles, chunks, nbytes)


def _in_words(arrived: Any) -> Any:
    """A tile, a region of one or several as kernels want them: where an engine puts a message into one piece
    of memory, arrays begin anywhere in it."""
    if isinstance(arrived, np.ndarray):
        return aligned(arrived)
    if isinstance(arrived, list):
        return [_in_words(part) for part in arrived]
    if is_csr(arrived):
        arrived = copy(arrived)
        arrived.data, arrived.indices, arrived.indptr = map(
            aligned, (arrived.data, arrived.indices, arrived.indptr)
        )
    return arrived


class Needs(Struct):
    """What a task asks for, because its data say so."""

    wanted: list[Wanted]

    def of(self, slot: int, rank: int) -> Iterator[Region | None]:
        """The regions of one tile, in the order of the questions."""
        return (w.region for w in self.wanted if (w.slot, w.rank) == (slot, rank))


class _NeedsMore(Exception):
    """What a task reads is not there yet."""


def reads(plan: Plan, stage: Stage, rank: int) -> Iterator[Wanted] | None:
    """What the task of `rank` reads of its own and others' tiles, as far as that is known without data; None
    where it has nothing to do."""
    task = task_of(plan, stage, rank)
    if task.box is None:
        return None
    slots = dict.fromkeys(stage.read_slots())
    own = [s for s in slots if plan.slots[s].tiling.box_on(plan.slots[s].shape, rank) is not None]
    found = [Wanted(s, rank) for s in own]
    if isinstance(stage, ScanTile) and stage.totals is not None:
        found.append(Wanted(stage.totals, rank))
    if isinstance(stage, Accumulate) and not stage.grid.duplicate:
        region = tuple((lo, hi, 1) for lo, hi in task.box)
        ranks = [stage.grid.rank((part,)) for part in range(stage.grid.parts[0])]
        found += [Wanted(stage.updates, r, region) for r in ranks if r != rank]
    if isinstance(stage, MergeParts) and not (stage.grid.duplicate or stage.spans or stage.length):
        every = [Wanted(stage.values, stage.grid.rank((p,)), region) for p, region in samples_of(plan, stage)]
        found += [w for w in every if w.rank != rank]
    found += [
        Wanted(operand.slot, piece.rank, piece.region)
        for operand in task.reads()
        for piece in operand.pieces
        if piece.rank != rank
    ]
    return iter(dict.fromkeys(found))


def wanted_elements(wanted: Wanted) -> int:
    """Elements of a region of a dense tile."""
    return prod(map(selected_places, wanted.region or ((0,),)))


def uploaded(made: Made) -> Made:
    """A tile of the program's, which has come with this task.

    As an object that was unpickled it is in memory of its own, if need be: dask keeps what comes with a task
    as long as what that makes.
    """
    return made


def read_apart(source: Source, box: Box) -> Made:
    """A part of what lies outside, as a tile."""
    return Made({0: read_box(source, box)})


def read(made: Made, number: Number, region: Region | None) -> Any:
    """A region of a tile; run where the tile lies.

    In memory of its own, so that the tile may go; but where the tile is not much larger, it stays.
    """
    tile = made.tiles[number]
    part = tile if region is None else read_region(tile, region)
    if not isinstance(part, np.ndarray):
        return part
    if part.flags.c_contiguous and part.nbytes * _MUCH >= tile.nbytes:
        return _for_reading(part)
    return np.array(part)


def read_asked(made: Made, number: Number, asked: Needs, slot: int, rank: int) -> list[Any]:
    """All that a task has asked for of one tile."""
    return [read(made, number, region) for region in asked.of(slot, rank)]


def pick_tiles(made: Made, numbers: tuple[Number, ...]) -> Made:
    """Some of several tiles, so that the others may go, or stay."""
    states = {slot: chunks for slot, chunks in made.chunks.items() if slot in numbers}
    return Made({number: made.tiles[number] for number in numbers}, states)


def asked(found: Made | Needs) -> dict[tuple[int, int], int]:
    """How many elements a task asks for, by the slot and the rank of the tile; nothing where it is done."""
    sizes: dict[tuple[int, int], int] = {}
    for w in found.wanted if isinstance(found, Needs) else ():
        sizes[w.slot, w.rank] = sizes.get((w.slot, w.rank), 0) + wanted_elements(w)
    return sizes


def facts(made: Made, number: Number) -> tuple[int, int]:
    """Non-zeros of a CSR tile (0 of others), and bytes made."""
    return int(getattr(made.tiles.get(number), "nnz", 0)), made.nbytes


Round = tuple[tuple[tuple[int, int], Number], ...]
"""The tiles, by slot and rank, of which a task has got what it asked for, and their numbers."""


def run_task(
    plan: Plan, parts: tuple[Part, ...], makes: tuple[Number, ...], rounds: tuple[Round, ...], *data: Any
) -> Made | Needs:
    """Run the parts one after the other, and give the tiles `makes`.

    `data` are the tiles and regions that the parts are given; then, for each round in which the first part
    has asked for more, its `Needs` and for each tile the answers, or the `Made` that has it.
    """
    _prepare()
    data = tuple(map(_in_words, data))
    last = {g.number: i for i, part in enumerate(parts) for g in part.given if g.at is None}
    made = Made({})
    for i, part in enumerate(parts):
        found = _run_part(plan, part, made, rounds if i == 0 else (), data)
        if isinstance(found, Needs):
            return found
        made.tiles.update(found.tiles)
        made.chunks.update(found.chunks)
        made.nbytes += found.nbytes
        for given in part.given:
            if given.at is None and last[given.number] == i and given.number not in makes:
                made.tiles.pop(given.number, None)
    tiles = {n: made.tiles[n] for n in makes if n in made.tiles}
    return Made(tiles, {s: c for s, c in made.chunks.items() if s in tiles}, made.nbytes)


def run_apart(plan: Plan, parts: tuple[Part, ...], makes: tuple[Number, ...], *data: Any) -> list[Made]:
    """As `run_task`, each tile by itself; for stages that ask for nothing more."""
    made = run_task(plan, parts, makes, (), *data)
    assert isinstance(made, Made), "nothing that it reads depends on data"
    return [
        Made(
            {n: t for n, t in made.tiles.items() if n == number},
            {s: c for s, c in made.chunks.items() if s == number},
        )
        for number in makes
    ]


def _run_part(
    plan: Plan, part: Part, own: Made, rounds: tuple[Round, ...], data: tuple[Any, ...]
) -> Made | Needs:
    """One stage's share; `own` has what the task has made so far."""
    program = _program(plan, part.rank)
    stage, job = plan.stages[part.stage], f"{plan.key}/{part.stage}/{part.rank}"
    keys: list[Key] = [(job, s) for s in range(len(plan.slots))]
    store = Store(recycler=_recycler)
    chunks: dict[int, Any] = {}
    arrived: dict[Wanted, Any] = {}
    for what in part.given:
        wanted, datum = what.wanted, own if what.at is None else data[what.at]
        if what.number is None:
            arrived[wanted] = datum
        elif wanted.region is not None:
            arrived[wanted] = read_region(datum.tiles[what.number], wanted.region)
        else:
            chunks.update(datum.chunks)
            if wanted.rank == part.rank:
                store.put(keys[wanted.slot], _for_reading(datum.tiles[what.number]))
    transfer = _Given(arrived, _answers(rounds, data))
    # One thread: the engine runs as many tasks at a time as it has processors.
    executor = Executor(part.rank, plan.workers, store, transfer, 1)
    run = Run(job, plan, program, keys, threading.Event(), index=part.stage, chunks=chunks)
    try:
        with entered(executor.errstate), Acting(job):
            handler(type(stage))(executor, run, stage, program.tasks[part.stage])
    except _NeedsMore:
        return Needs(transfer.missing)
    finally:
        executor.close()
    made = {s: store.get(keys[s]) for s, _ in part.makes if store.holds(keys[s])}
    return Made(
        {n: made[s] for s, n in part.makes if s in made},
        {s: c for s, c in run.chunks.items() if s in made},
        run.stats.bytes_made,
    )


def _answers(rounds: tuple[Round, ...], data: tuple[Any, ...]) -> list[Any]:
    """What has been asked for, in the order of the questions."""
    left = iter(data[len(data) - sum(1 + len(tiles) for tiles in rounds) :])
    answers: list[Any] = []
    for tiles in rounds:
        needs = next(left)
        parts = {tile: _asked_of(next(left), needs, *tile, number) for tile, number in tiles}
        answers += [next(parts[w.slot, w.rank]) for w in needs.wanted]
    return answers


def _asked_of(found: Made | list[Any], needs: Needs, slot: int, rank: int, number: Number) -> Iterator[Any]:
    """What has been asked for of a tile, from where it lies or as it has been read there."""
    if isinstance(found, Made):
        return iter([read_region(found.tiles[number], region or ()) for region in needs.of(slot, rank)])
    return iter(found)


def _for_reading(tile: Any) -> Any:
    """A tile that others have, too: nobody writes into it."""
    if isinstance(tile, np.ndarray):
        tile = tile.view()
        tile.flags.writeable = False
    return tile


class _Given:
    """The transfer of a task that has its tiles: what is not there is noted."""

    def __init__(self, arrived: dict[Wanted, Any], answers: list[Any]) -> None:
        self._arrived = arrived
        self._answers = answers
        self._asked = 0
        self.missing: list[Wanted] = []

    def fetch(self, key: Key, rank: int, region: Region, peeks: bool = False) -> Future[Any]:
        """What has been given, or, of reads that depend on data, the answer of the same number."""
        wanted = Wanted(key[1], rank, region)
        future: Future[Any] = Future()
        if all(isinstance(r, tuple) for r in region) and wanted in self._arrived:
            future.set_result(self._arrived[wanted])
            return future
        number, self._asked = self._asked, self._asked + 1
        if number < len(self._answers):
            future.set_result(self._answers[number])
        else:
            self.missing.append(wanted)
            future.set_exception(_NeedsMore())
        return future

    def look(self, key: Key, rank: int, region: Region) -> None:
        """Nothing: what others have comes with the task."""

    @property
    def offers(self) -> Offers:
        """Engines move whole tasks only."""
        raise AssertionError("a task of an engine has nothing to lend")

    def borrow(self, job: str, rank: int, stage: int, usual_s: float) -> Future[Any]:
        """Engines move whole tasks only."""
        raise AssertionError(f"a task of an engine was to borrow from rank {rank}")

    def operand(self, job: str, rank: int, offer: int, place: int) -> Future[Any]:
        """Engines move whole tasks only."""
        raise AssertionError(f"a task of an engine was to stand in for rank {rank}")

    def give_back(self, job: str, rank: int, offer: int, task: int, result: Any) -> Future[Any]:
        """Engines move whole tasks only."""
        raise AssertionError(f"a task of an engine was to give something back to rank {rank}")


@cache
def _prepare() -> None:
    """Once in a process: dask has its workers return each freed block to the system, which for blocks of a
    cache's size takes longer than what is computed in them."""
    keep_freed()


def limit_memory(limit_bytes: int) -> None:
    """Keep less for what is to come where the engine stops, or ends, a process that has so much."""
    _prepare()
    keep_freed(limit_bytes)
    _recycler.keep_bytes = min(_recycler.keep_bytes, limit_bytes // _LIMIT_SHARE)


_recycler = Recycler(machine_bytes() // _SHARE)
"""Memory for the tiles that this process makes: a loop's steps make as many as the one before has let go."""
_programs: OrderedDict[tuple[str, int], Program] = OrderedDict()
_lock = threading.Lock()


def _program(plan: Plan, rank: int) -> Program:
    """The plan as `rank` sees it, kept with what is known of its kernels."""
    key = (plan.key, rank)
    with _lock:
        found = _programs.get(key)
        if found is not None:
            _programs.move_to_end(key)
            return found
    program = Program(plan, rank)
    program.lends = program.backed = frozenset()
    with _lock:
        _programs[key] = program
        if len(_programs) > _PROGRAMS:
            _programs.popitem(last=False)
    return program
