"""Regions that are too long for one message: the reader asks its owner for part after part.

A message lies in memory as a whole, where it comes from and where it arrives, and no budget knows of it. So
what does not lie in shared memory, and is long, is leased: the reader makes room for it where its own store
says, on disk if need be, and has a few parts of it under way at a time, until it gives the lease back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.scratch import put
from spartan_ng.wire.values import Make
from spartan_ng.worker.memory.store import Region, is_ranges, range_lengths, selected_places

LONG_BYTES = 1 << 22
"""Dense regions of more bytes come in parts."""
PART_BYTES = 1 << 20
UNDER_WAY = 4
"""Parts of a region that are asked for at a time."""


def is_read_in_parts(tile: Any, region: Region) -> bool:
    """Whether a region of a tile comes in parts."""
    if not isinstance(tile, np.ndarray) or tile.dtype.hasobject or len(region) != tile.ndim:
        return False
    return bool(prod(selected_places(along) for along in region) * tile.dtype.itemsize > LONG_BYTES)


def parts_of(shape: Sequence[int], itemsize: int, most_bytes: int) -> Iterator[Box]:
    """Boxes of at most so many bytes that fill an array in C order, each in one piece of its memory."""
    axis, below = len(shape) - 1, itemsize
    while axis > 0 and below * shape[axis] <= most_bytes:
        below *= shape[axis]
        axis -= 1
    length = max(1, most_bytes // below)
    rest = tuple((0, n) for n in shape[axis + 1 :])
    for lead in np.ndindex(*shape[:axis]):
        for lo in range(0, shape[axis], length):
            yield (*((i, i + 1) for i in lead), (lo, min(lo + length, shape[axis])), *rest)


def part_of_region(region: Region, box: Box) -> Region:
    """A box of what a region selects, as a region of the same tile."""
    return tuple(_part_along(along, lo, hi) for along, (lo, hi) in zip(region, box, strict=True))


def _part_along(along: Any, lo: int, hi: int) -> Any:
    if isinstance(along, tuple):
        found = range(*along)[lo:hi]
        return found.start, found.stop, found.step
    if not is_ranges(along):
        return along[lo:hi]
    ends = np.cumsum(range_lengths(along))
    first, last = int(np.searchsorted(ends, lo, "right")), int(np.searchsorted(ends, hi, "left"))
    begins = ends - range_lengths(along)
    rows = along[first : last + 1].copy()
    rows[-1, 1] = along[last, 0] + (hi - begins[last]) * along[last, 2]
    rows[0, 0] = along[first, 0] + (lo - begins[first]) * along[first, 2]
    return rows


class LongRead:
    """One region on its way. All is on the loop's thread, but what touches a disk.

    Parameters
    ----------
    ask : for a part, to be written to an array where one is named
    done : hears the whole, or what went wrong, once
    on_loop : has the loop's thread call something
    helper : makes room, and writes to disk
    """

    def __init__(
        self,
        ask: Callable[[Box, np.ndarray[Any, Any] | None], Future[Any]],
        done: Callable[[Any], None],
        on_loop: Callable[[Callable[[], None]], None],
        helper: Executor,
    ) -> None:
        self._ask, self._done, self._on_loop, self._helper = ask, done, on_loop, helper
        self._whole: np.ndarray[Any, Any]
        self._boxes: Iterator[Box] = iter(())
        self._left = 0
        self._is_over = False

    def begin(self, allocate: Make, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Make room, and then ask for the first parts."""

        def make_room() -> Callable[[], None]:
            return partial(self._begin, allocate(shape, dtype))

        self._off_loop(make_room)

    def _begin(self, whole: np.ndarray[Any, Any]) -> None:
        self._whole = whole
        boxes = list(parts_of(whole.shape, whole.dtype.itemsize, PART_BYTES))
        self._boxes, self._left = iter(boxes), len(boxes)
        for _ in range(UNDER_WAY):
            self._go_on()

    def _go_on(self) -> None:
        box = None if self._is_over else next(self._boxes, None)
        if box is None:
            return
        place = self._whole[box_slices(box)]
        into = None if is_mapped(self._whole) else place
        self._ask(box, into).add_done_callback(partial(self._arrived, place))

    def _arrived(self, place: np.ndarray[Any, Any], part: Future[Any]) -> None:
        """A part is there, or never will be."""
        error = part.exception()
        if error is not None:
            self._end(error)
            return
        data = part.result()
        if data is place:
            self._filled()
        elif data.shape != place.shape or data.dtype != place.dtype:
            self._end(ValueError(f"{data.dtype} of shape {data.shape} came for a part of {place.shape}"))
        else:
            self._off_loop(lambda: self._written(place, data))

    def _written(self, place: np.ndarray[Any, Any], data: np.ndarray[Any, Any]) -> Callable[[], None]:
        put(place, data)
        return self._filled

    def _filled(self) -> None:
        self._left -= 1
        if self._left:
            self._go_on()
        else:
            self._end(self._whole)

    def _end(self, result: Any) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(result)

    def _off_loop(self, work: Callable[[], Callable[[], None]]) -> None:
        """Do work on the helper's thread, and what it gives on the loop's."""

        def run() -> None:
            try:
                then = work()
            except Exception as error:  # noqa: BLE001 - the reader's error
                then = partial(self._end, error)
            self._on_loop(then)

        with suppress(RuntimeError):  # the process is stopping, and nobody waits any more
            self._helper.submit(run)
