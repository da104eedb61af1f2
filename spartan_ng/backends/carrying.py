"""Elements on their way between the driver and the workers' tiles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait
from itertools import zip_longest
from typing import Any

import numpy as np

from spartan_ng.arrays import ArrayRef, Box, Key, Tiling, box_shape, box_slices, intersect
from spartan_ng.arrays.sparse import csr_array, stacked
from spartan_ng.backends.link import MasterLink
from spartan_ng.events import record
from spartan_ng.kernels.formats import dense
from spartan_ng.wire.messages import Member
from spartan_ng.worker.network.long_reads import PART_BYTES, UNDER_WAY, parts_of
from spartan_ng.worker.network.long_writes import comes_in_parts

CHECK_S = 1.0
"""How often who waits looks whether the link still stands."""
_NOTHING = np.empty(0)


class Carrier:
    """Puts arrays' tiles on the workers behind `link`, and gets regions of them.

    Whatever waits here ends with WorkerLost, or the link's own error, where a worker or the master is lost.
    """

    def __init__(self, link: MasterLink) -> None:
        self._link = link

    def put(self, ref: ArrayRef, tiling: Tiling, key: Key, members: Sequence[Member]) -> None:
        """Send a driver array's tiles, called `key`, to `members` by rank: all, or in the end none."""
        futures: deque[Future[Any]] = deque()
        in_parts: list[tuple[Member, Any]] = []
        try:
            with record.span("upload", str(ref.shape)):
                for rank, member in enumerate(members):
                    box = tiling.box_on(ref.shape, rank)
                    if box is None:
                        continue
                    tile = part_of_array(ref.value, box)
                    if comes_in_parts(tile, member):
                        in_parts.append((member, tile))
                    else:
                        futures.append(self._link.peers.put(member.name, key, tile, member.since))
                self._put_parts(key, in_parts, futures)
                while futures:
                    self._wait(futures.popleft())
        except BaseException:
            self._withdraw(key, futures, [member for member, _ in in_parts])
            raise

    def _put_parts(
        self, key: Key, tiles: Sequence[tuple[Member, Any]], under_way: deque[Future[Any]]
    ) -> None:
        """Send tiles part by part, to all of their workers at a time, a few parts to each."""
        boxes = [parts_of(tile.shape, tile.itemsize, PART_BYTES) for _, tile in tiles]
        for together in zip_longest(*boxes):
            for (member, tile), box in zip(tiles, together, strict=True):
                if box is None:
                    continue
                while len(under_way) >= UNDER_WAY * len(tiles):
                    self._wait(under_way.popleft())
                part = tile[box_slices(box)].copy()  # here, and not where all connections wait for a disk
                put = self._link.peers.put(member.name, key, part, member.since, (tile.shape, box))
                under_way.append(put)

    def _withdraw(self, key: Key, futures: Collection[Future[Any]], unfinished: Sequence[Member]) -> None:
        """Give an upload up: drop its tiles once all that is under way has arrived."""
        left = list(futures)

        def end() -> None:
            # Not earlier: a release goes by way of the master, and might overtake a tile, which would stay
            # for good.
            puts = [self._link.peers.put(m.name, key, _NOTHING, m.since) for m in unfinished]
            if puts:  # the tile that takes the place of what has come of another
                self._withdraw(key, puts, ())
            else:
                self._link.release(key[1])

        def arrived(future: Future[Any]) -> None:
            left.pop()
            if not left:
                end()

        for future in list(left):
            future.add_done_callback(arrived)
        if unfinished and not futures:
            end()

    def get(
        self,
        ref: ArrayRef,
        box: Box,
        key: Key,
        members: Sequence[Member],
        is_there: Callable[[], bool],
    ) -> Any:
        """The elements inside `box` as a NumPy (or CSR) array, from tiles called `key` on `members` by rank.

        `is_there` tells, while somebody waits, whether they still are.
        """
        assert ref.tiling is not None, "an array on workers has a tiling"
        out = None if ref.format == "csr" else np.empty(box_shape(box), ref.dtype)
        parts = []
        for rank, tile in ref.tiling.tiles(ref.shape, box):
            common = intersect(tile, box) if box else ()
            assert common is not None, "tiles() yields tiles that meet the box"
            region = tuple((lo - t, hi - t, 1) for (lo, hi), (t, _) in zip(common, tile, strict=True))
            member = members[rank]
            place = tuple((lo - o, hi - o) for (lo, hi), (o, _) in zip(common, box, strict=True))
            into = None if out is None else part_of_array(out, place)
            fetched = self._link.peers.fetch(member.name, key, region, member.since, into, is_there)
            parts.append((common, into, fetched))
        if out is None:
            return self.stacked([(at, f) for at, _, f in parts], box, ref.dtype)
        for _, into, future in parts:
            part = self._wait(future)
            if into is not None and part is not into:
                into[...] = dense(part)
        return out

    def stacked(self, parts: Sequence[tuple[Box, Future[Any]]], box: Box, dtype: np.dtype[Any]) -> Any:
        """CSR parts put together: beside each other in a band of rows, then the bands below each other."""
        if not parts:
            return csr_array(box_shape(box), dtype=dtype)
        bands: dict[int, list[tuple[int, Any]]] = {}
        for at, part in parts:
            bands.setdefault(at[0][0], []).append((at[1][0], self._wait(part)))
        return stacked([p for _, p in sorted(band, key=lambda b: b[0])] for _, band in sorted(bands.items()))

    def _wait(self, future: Future[Any]) -> Any:
        """A transfer's result. It always ends: lost workers and a lost master fail what waits for them."""
        while not wait([future], CHECK_S).done:
            self._link.check()
        return future.result()


def part_of_array(value: Any, box: Box) -> Any:
    """The part of a driver's array inside `box`."""
    slices: tuple[Any, ...] = box_slices(box)
    return value[(*slices, ...)] if isinstance(value, np.ndarray) else value[slices]  # 0-d stays an array
