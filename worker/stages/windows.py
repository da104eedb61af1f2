"""Operands that sources give: arrays of their full size, of which only what is worked on has memory.

A pass goes along one dimension (its `band`) in runs of blocks. An operand is cut along its axis that
follows this dimension into slabs, which are read ahead on threads of their own, just before the first run
that needs them, and whose memory is given back after the last. Kernels see an ordinary array; they meet only
those parts of it that are there. Each slab is read once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, contextmanager, nullcontext
from mmap import PAGESIZE
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.memory import READERS, readers_at_once
from spartan_ng.plan.rows import Read
from spartan_ng.plan.stages import Fused, ScanTile, ScanTotals
from spartan_ng.sources import Unread
from spartan_ng.system.mapping import Reservation
from spartan_ng.worker.memory.regions import PiecedOperand
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.scheduling.shares import Task

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

Banded = Fused | ScanTile | ScanTotals
"""Passes that go along a dimension (`plan.bands`)."""
AHEAD = 2
"""Slabs that are read while those before are worked on."""
_TIGHT_SLABS = 2
"""Slabs that are there where memory has room for no more: the one that is worked on, or read, and what the
source gives beside its place."""
_LARGE = 1 << 22
"""Slabs of so many bytes take large pages: fewer of them cost less to get."""
_CHECK_S = 0.1


class Window:
    """One array that is read, or several that are parts of it.

    `axis` of the region that the task reads follows the dimension of the bands; slab n has the region's
    indices `span(n)` of it. Slabs begin where the source's chunks do, if they are as long.
    """

    def __init__(self, slot: int, unread: Unread, read: Read, axis: int, box: Box, length: int) -> None:
        self.slot = slot
        self.unread = unread
        self.axis = axis
        self.size = unread.shape[axis]
        along = read.axes[axis]
        self._box, self._down = box[along.label], along.step < 0
        self._start, _, self._step = unread.region[axis]
        chunk = unread.source.chunks[axis]
        every = length * self._step
        chunks = every // chunk * chunk
        self._every = chunks if chunks >= self._step else every  # no slab is empty
        rest = (*unread.shape[:axis], *unread.shape[axis + 1 :])
        line = int(np.prod(rest, dtype=object)) * unread.dtype.itemsize
        self.line_bytes, self.slab_bytes = line, line * -(-self._every // self._step)
        self._memory = Reservation(line * self.size, self.slab_bytes >= _LARGE)
        whole = self._memory.array().view(unread.dtype).reshape((self.size, *rest))
        self._whole = np.moveaxis(whole, 0, axis)
        self._gone: set[int] = set()
        """Slabs that have been let go."""

    def shows(self, slot: int, read: Read, region: Region, axis: int) -> bool:
        """Whether a read of that region finds all of it here, slab by slab."""
        if (slot, axis, read.axes[axis].step < 0) != (self.slot, self.axis, self._down):
            return False
        pairs = enumerate(zip(region, self.unread.region, strict=True))
        return all(part == whole if i == axis else _within(part, whole) for i, (part, whole) in pairs)

    def seen(self, operand: PiecedOperand, region: Region) -> np.ndarray[Any, Any]:
        """The operand, which reads that region of what is here, as an array."""
        pairs = zip(region, self.unread.region, strict=True)
        own = tuple(
            slice((a - lo) // by, (b - lo + by - 1) // by, s // by) for (a, b, s), (lo, _, by) in pairs
        )
        return operand.present(self._whole[own])  # type: ignore[no-any-return]

    def span(self, slab: int) -> tuple[int, int]:
        """The indices of a slab."""
        first = self._start // self._every + slab
        lo = -(-(first * self._every - self._start) // self._step)
        hi = -(-((first + 1) * self._every - self._start) // self._step)
        return max(lo, 0), min(hi, self.size)

    def slabs(self, lo: int, hi: int) -> range:
        """The slabs with the indices `lo` to `hi` of the domain's dimension."""
        first, last = lo - self._box[0], hi - 1 - self._box[0]
        if self._down:
            first, last = self.size - 1 - last, self.size - 1 - first
        return range(self._slab(first), self._slab(last) + 1)

    def _slab(self, index: int) -> int:
        return int((self._start + index * self._step) // self._every - self._start // self._every)

    def load(self, slab: int) -> None:
        """Read a slab into its place."""
        lo, hi = self.span(slab)
        place: tuple[Any, ...] = (*[slice(None)] * self.axis, slice(lo, hi), ...)
        part = self._whole[place]
        self.unread.part(self.axis, lo, hi).into(part)

    def let_go(self, slab: int) -> None:
        """Give a slab's memory back; a page that it shares with others goes with the last of them."""
        self._gone.add(slab)
        first = last = slab
        page = self._start_of(slab) // PAGESIZE * PAGESIZE
        while first - 1 in self._gone and self._start_of(first) > page:
            first -= 1
        page = -(-self._start_of(slab + 1) // PAGESIZE) * PAGESIZE
        while last + 1 in self._gone and self._start_of(last + 1) < page:
            last += 1
        self._memory.let_go(self._start_of(first), self._start_of(last + 1))

    def _start_of(self, slab: int) -> int:
        """Where a slab begins in memory."""
        return min(self.span(slab)[0], self.size) * self.line_bytes


def _within(part: tuple[int, int, int], whole: tuple[int, int, int]) -> bool:
    """Whether all indices of one range with steps are among those of another."""
    inner, outer = range(*part), range(*whole)
    return part == whole or (part[2] % whole[2] == 0 and inner[0] in outer and inner[-1] in outer)


class Bands:
    """The windows of a pass: which slabs are there, which are on their way, and who needs them still."""

    def __init__(
        self, ex: Executor, run: Run, windows: Sequence[Window], stage: Banded, is_tight: bool = False
    ) -> None:
        """Where memory `is_tight`, one slab is read at a time, and worked on by one thread."""
        assert stage.band is not None, "a pass with windows has bands"
        self._ahead, self._most = (0, 1) if is_tight else (AHEAD, READERS)
        self._alone = threading.Lock() if is_tight else nullcontext()
        self._ex, self._run, self._windows = ex, run, windows
        self._along, self._length = stage.band
        self._loads: dict[tuple[int, int], Future[None]] = {}
        self._wanted: list[tuple[int, int]] = []
        """`(window, slab)` in the order in which they are needed, and"""
        self._next = 0
        """how many of them have been asked for."""
        self._needs: list[list[tuple[int, int]]] = []
        """For each run its slabs."""
        self._place: dict[tuple[int, int], int] = {}
        self._left: Counter[tuple[int, int]] = Counter()
        self._lock = threading.Lock()
        self._readers: ThreadPoolExecutor | None = None

    @property
    def held_bytes(self) -> int:
        """What all windows take at a time, with what sources give while slabs are read."""
        slabs = self._ex.threads + self._ahead + 1 + self._most if self._ahead else _TIGHT_SLABS
        return int(sum(min(w.slab_bytes * slabs, w.line_bytes * w.size) for w in self._windows))

    @property
    def beside_bytes(self) -> int:
        """And what is unpacked for that besides."""
        beside: int = max(w.unread.source.beside_bytes for w in self._windows)
        return readers_at_once(beside) * beside

    def show_end(self, box: Box) -> None:
        """Have the end of the dimension read: a kernel that has to prove itself works on the last block."""
        lo, hi = box[self._along]
        for key in self._slabs((max(lo, hi - self._length), hi)):
            self._ask(key)
            self._wait(key)

    def begin(self, runs: Sequence[Sequence[Box]]) -> Iterable[int]:
        """The order in which runs of blocks go through what is read."""
        spans = [(min(b[self._along][0] for b in r), max(b[self._along][1] for b in r)) for r in runs]
        self._needs = [self._slabs(span) for span in spans]
        order = sorted(range(len(runs)), key=lambda i: spans[i])
        self._wanted = list(dict.fromkeys(key for i in order for key in self._needs[i]))
        self._place = {key: n for n, key in enumerate(self._wanted)}
        self._left = Counter(key for needs in self._needs for key in needs)
        return order

    def _slabs(self, span: tuple[int, int]) -> list[tuple[int, int]]:
        return [(w, slab) for w, window in enumerate(self._windows) for slab in window.slabs(*span)]

    @contextmanager
    def reading(self, run: int) -> Iterator[None]:
        """Around the work on a run: what it needs is there, and what comes next is on its way."""
        needs = self._needs[run]
        with self._alone:
            with self._lock:
                last = max(self._place[key] for key in needs)
                while self._next < min(last + 1 + self._ahead * len(self._windows), len(self._wanted)):
                    self._ask(self._wanted[self._next])
                    self._next += 1
            for key in needs:
                self._wait(key)
            try:
                yield
            finally:
                with self._lock:
                    for key in needs:
                        self._left[key] -= 1
                        if not self._left[key]:
                            del self._loads[key]  # of which there may be millions
                            self._windows[key[0]].let_go(key[1])

    def _ask(self, key: tuple[int, int]) -> None:
        if key not in self._loads:
            if self._readers is None:
                self._readers = ThreadPoolExecutor(self._most, "source")
            self._loads[key] = self._readers.submit(self._windows[key[0]].load, key[1])

    def _wait(self, key: tuple[int, int]) -> None:
        while True:
            try:
                return self._loads[key].result(timeout=_CHECK_S)
            except FutureTimeout:
                if self._loads[key].done():  # it may have come since, or be what the source raised
                    return self._loads[key].result()
                self._ex.check(self._run)

    def close(self) -> None:
        """Read nothing more."""
        if self._readers is not None:
            self._readers.shutdown(wait=False, cancel_futures=True)


def read_all(ex: Executor, operands: Sequence[PiecedOperand], values: Sequence[Any]) -> list[Any]:
    """Operands as arrays: what `unread_all` has left to be read is, and once what several show."""
    given: dict[int, Any] = {}
    found = []
    for operand, value in zip(operands, values, strict=True):
        if isinstance(value, Unread):
            if id(value) not in given:
                given[id(value)] = ex.read(value)
            value = operand.present(given[id(value)])
        found.append(value)
    return found


@contextmanager
def opened(
    ex: Executor, run: Run, stage: Banded, task: Task, operands: Sequence[Any]
) -> Iterator[tuple[list[Any], Bands | None]]:
    """The operands of a pass as arrays, and who reads those that are not there yet.

    What does not follow the dimension of the bands is read as a whole; and so is all, to disk, where there is
    no room for what is read at a time.
    """
    assert stage.band is not None, "only a pass over sources has bands"
    assert task.box is not None, "checked by the caller"
    along, length = stage.band
    axes = [next((i for i, a in enumerate(r.axes) if a.label == along), None) for r in stage.reads]
    windows: list[Window] = []
    shown: dict[int, Window] = {}
    outside = [i for i, value in enumerate(operands) if isinstance(value, Unread) and value.nbytes]
    for i in sorted(outside, key=lambda i: -operands[i].nbytes):  # parts come after what they are of
        axis, slot, read, value = axes[i], task.operands[i].slot, stage.reads[i], operands[i]
        if axis is None:
            continue
        window = next((w for w in windows if w.shows(slot, read, value.region, axis)), None)
        if window is None:
            window = Window(slot, value, read, axis, task.box, length)
            windows.append(window)
        shown[i] = window
    each = enumerate(zip(task.operands, operands, strict=True))
    seen = [shown[i].seen(operand, v.region) if i in shown else v for i, (operand, v) in each]
    found = read_all(ex, task.operands, seen)
    if not windows:
        yield found, None
        return
    for is_tight in (False, True):
        bands = Bands(ex, run, windows, stage, is_tight)
        with ExitStack() as stack:
            stack.callback(bands.close)
            try:
                stack.enter_context(ex.store.room(bands.held_bytes))
                stack.enter_context(ex.store.room_beside(bands.beside_bytes))
            except MemoryBudgetError:
                continue
            yield found, bands
            return
    yield read_all(ex, task.operands, operands), None
