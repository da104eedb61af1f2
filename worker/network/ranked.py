"""The workers of one job by rank, as its executor sees them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from spartan_ng.arrays import Key
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.network.transfer import Peers
from spartan_ng.worker.scheduling.stealing import Offers


class RankedPeers:
    """The workers of one job by rank, as the executor sees them."""

    def __init__(self, peers: Peers, names: Sequence[str], offers: Offers) -> None:
        self._peers = peers
        self._names = tuple(names)
        self.offers = offers

    def borrow(self, job: str, rank: int, stage: int, usual_s: float) -> Future[Any]:
        """What the worker on `rank` has to lend, see `Offers.lend`."""
        return self._peers.borrow(self._names[rank], job, stage, usual_s)

    def operand(self, job: str, rank: int, offer: int, place: int) -> Future[Any]:
        """What the worker on `rank` has read for its share of a stage, see `Offers.operand`."""
        return self._peers.operand(self._names[rank], job, offer, place)

    def give_back(self, job: str, rank: int, offer: int, task: int, result: Any) -> Future[Any]:
        """Give a borrowed task's result to the worker on `rank`; done when it has arrived."""
        return self._peers.give_back(self._names[rank], job, offer, task, result)

    def fetch(self, key: Key, rank: int, region: Region, peeks: bool = False) -> Future[Any]:
        """The region of the tile on `rank`, as soon as it is complete there: an array (read-only), a CSR
        array or updates; WorkerLost if that worker dies. Who `peeks` is in `Transfer.fetch`."""
        return self._peers.fetch(self._names[rank], key, region, peeks=peeks)

    def look(self, key: Key, rank: int, region: Region) -> Future[Any]:
        """See `Transfer.look`."""
        return self._peers.fetch(self._names[rank], key, region, looks=True)
