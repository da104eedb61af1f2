"""Many workers inside one process, without sockets: every rank's executor on a thread of its own.

The plans, the worker core, the parked reads and the counted bytes are the cluster's; only the wire is
missing. Tests run programs on any number of workers with it, and studies of scale count what would move.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Box, Key, Tiling, box_of, box_slices
from spartan_ng.backends.protocol import Progress, RunStats
from spartan_ng.costs import Profile
from spartan_ng.errors import JobCancelled, MemoryBudgetError, WorkerLost
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stats import StageStats
from spartan_ng.sources import SourceTile
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.memory.pool import BufferPool
from spartan_ng.worker.memory.regions import gathered_pieces, identity
from spartan_ng.worker.memory.store import Region, Store, read_region
from spartan_ng.worker.scheduling.stealing import Offers


class _Transfer:
    """One rank's reads from the other ranks' stores, as soon as their tiles are complete."""

    is_near = False

    def __init__(self, stores: list[Store], every: list[Offers], rank: int) -> None:
        self._stores = stores
        self._every = every
        self.offers = every[rank]
        self._own = stores[rank]

    def fetch(self, key: Key, rank: int, region: Region, peeks: bool = False) -> Future[Any]:
        """The region, copied as the wire would."""
        future: Future[Any] = Future()
        store = self._stores[rank]
        if peeks and not store.holds(key):
            future.set_exception(WorkerLost(f"array {key[1]} of {key[0]} has been dropped"))
            return future

        def read() -> None:
            try:
                future.set_result(self._copied(read_region(store.get(key), region)))
            except MemoryBudgetError as error:
                future.set_exception(error)
            if not peeks:
                store.release(key)

        store.when_ready(key, read)
        return future

    def look(self, key: Key, rank: int, region: Region) -> Future[Any] | None:
        """The region where it lies, if the ranks are on one host; else None."""
        if not self.is_near:
            return None
        future: Future[Any] = Future()
        store = self._stores[rank]
        store.when_ready(key, lambda: future.set_result(read_region(store.get(key), region)))
        return future

    def borrow(self, job: str, rank: int, stage: int, usual_s: float) -> Future[Any]:
        """What the rank has to lend, at once."""
        return _settled(self._every[rank].lend(job, stage, usual_s))

    def operand(self, job: str, rank: int, offer: int, place: int) -> Future[Any]:
        """What the rank has read for a share, copied as the wire would."""
        found = self._every[rank].operand(job, offer, place)
        return _settled(None if found is None else self._copied(found))

    def give_back(self, job: str, rank: int, offer: int, task: int, result: Any) -> Future[Any]:
        """Give a result to the rank, at once."""
        self._every[rank].come_back(job, offer, task, result)
        return _settled(None)

    def _copied(self, data: Any) -> Any:
        """What has arrived, in this rank's memory."""
        if not isinstance(data, np.ndarray):
            return data if isinstance(data, list) else data.copy()
        out = self._own.allocate(data.shape, data.dtype)
        out[...] = data
        return out


def _settled(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(result)
    return future


_MOST_THREADS = 4096
"""Each rank of a job has one, and a function that a job runs may begin other jobs."""


class SimulatedBackend:
    """`workers` single-threaded workers in this process; plans are made by the rates of `profile`, and its
    memory binds where it is limited."""

    def __init__(self, workers: int, profile: Profile | None = None) -> None:
        self.profile = replace(profile or Profile(), workers=workers)
        pooled = self.profile.limited
        self._stores = [
            Store(BufferPool(self.profile.memory_bytes) if pooled else None) for _ in range(workers)
        ]
        offers = [Offers() for _ in range(workers)]
        self._executors = [
            Executor(r, workers, s, _Transfer(self._stores, offers, r), 1) for r, s in enumerate(self._stores)
        ]
        self._threads = ThreadPoolExecutor(_MOST_THREADS, "rank")
        self._numbers = count(1)

    @property
    def workers(self) -> int:
        """How many workers are simulated."""
        return len(self._stores)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that a worker with a budget has had in use at one time."""
        return max(s.pool.peak_bytes for s in self._stores if s.pool is not None)

    @property
    def tiles(self) -> int:
        """Tiles that all workers hold now."""
        return sum(len(s.complete()) for s in self._stores)

    def reads(self, ref: ArrayRef) -> bool:
        """What is mapped is cut as any value is."""
        return ref.value is None

    def upload(self, ref: ArrayRef, tiling: Tiling) -> None:
        """Cut the driver's value into the workers' stores."""
        for rank, store in enumerate(self._stores):
            box = tiling.box_on(ref.shape, rank)
            if ref.value is None:
                store.put(("driver", ref.serial), SourceTile(ref.source))
            elif box is not None:
                part = ref.value[box_slices(box)]
                if ref.format == "dense":  # what is sent lies in C order; a file's is read where it lies
                    part = np.asarray(part) if ref.source is not None else np.array(part, order="C")
                store.put(("driver", ref.serial), part)
        self._own(ref, tiling)

    def _own(self, ref: ArrayRef, tiling: Tiling) -> None:
        ref.tiling = tiling
        ref.on_release(self, self._release)

    def _release(self, serial: int) -> None:
        for store in self._stores:
            store.drop(("driver", serial))

    def run(
        self, plan: Plan, inputs: Sequence[ArrayRef], progress: Progress | None = None
    ) -> tuple[list[ArrayRef], RunStats]:
        """Run `plan` on all ranks at once."""
        job = f"job/{next(self._numbers)}"
        slots = [plan.slots[s] for s in plan.outputs]
        refs = [ArrayRef(s.shape, s.dtype, format=s.format) for s in slots]
        bound: list[Key] = [("driver", r.serial) for r in inputs]
        outputs: list[Key] = [("driver", r.serial) for r in refs]
        cancelled, over = threading.Event(), threading.Event()
        done = count(1)

        def rank(executor: Executor) -> list[Any]:
            try:
                stats = executor.run(job, plan, bound, outputs, cancelled)
                if next(done) == len(self._executors):
                    over.set()
                executor.help(job, over)
                return stats
            except BaseException:
                cancelled.set()
                over.set()
                raise

        start = time.perf_counter()
        futures = [self._threads.submit(rank, executor) for executor in self._executors]
        errors = [f.exception() for f in futures]
        for store in self._stores:
            store.drop_owner(job)
        for ref, slot in zip(refs, slots, strict=True):
            self._own(ref, slot.tiling)
            if slot.format == "csr":
                ref.nnz = self._nnz(("driver", ref.serial), slot.tiling)
        failed = [e for e in errors if e is not None]
        if failed:  # the others were cancelled for the sake of one
            raise next((e for e in failed if not isinstance(e, JobCancelled)), failed[0])
        every = [f.result() for f in futures]
        stages = [
            StageStats(
                max(s.seconds for s in ranks),
                sum(s.bytes_moved for s in ranks),
                sum(s.bytes_made for s in ranks),
                sum(s.stolen for s in ranks),
            )
            for ranks in zip(*every, strict=True)
        ]
        return refs, RunStats(time.perf_counter() - start, stages)

    def _nnz(self, key: Key, tiling: Tiling) -> int:
        """Non-zeros of a sparse result."""
        tiles = [store.get(key) for store in self._stores if store.holds(key)]
        return int(tiles[0].nnz) if tiling.duplicate and tiles else sum(int(t.nnz) for t in tiles)

    def gather(self, ref: ArrayRef, box: Box) -> Any:
        """Put the tiles' parts together."""
        assert ref.tiling is not None, "the workers hold the array"
        slot = Slot(ref.shape, ref.dtype, ref.tiling, ref.format)
        operand = identity(0, box, slot, 0)
        parts = [
            (p, read_region(self._stores[p.rank].get(("driver", ref.serial)), p.region))
            for p in operand.pieces
        ]
        return gathered_pieces(parts, operand.shape, np.dtype(ref.dtype))

    def value(self, ref: ArrayRef) -> Any:
        """The whole array."""
        return self.gather(ref, box_of(ref.shape))

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False)
        for executor in self._executors:
            executor.close()

    def retire(self) -> None:
        """Nothing: the stores live as long as the arrays that refer to them."""
