"""What an executor asks of other ranks, whoever brings it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from spartan_ng.arrays import Key
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.scheduling.stealing import Offers


class Transfer(Protocol):
    """Where regions of other ranks' tiles come from."""

    def fetch(self, key: Key, rank: int, region: Region, peeks: bool = False) -> Future[Any]:
        """The region of the tile of `key` that `rank` holds, as soon as it is complete; who only `peeks` is
        not one of those whom the tile is kept for, and gets WorkerLost where it is not there."""
        ...

    def look(self, key: Key, rank: int, region: Region) -> Future[Any] | None:
        """The region, as soon as it is complete, where it lies, in memory or on disk, or None where this
        process cannot read it there; None at once where it can read nothing of others."""
        ...

    @property
    def offers(self) -> Offers:
        """What this worker has to lend."""
        ...

    def borrow(self, job: str, rank: int, stage: int, usual_s: float) -> Future[Any]:
        """What `Offers.lend` of `rank` says."""
        ...

    def operand(self, job: str, rank: int, offer: int, place: int) -> Future[Any]:
        """What `Offers.operand` of `rank` says."""
        ...

    def give_back(self, job: str, rank: int, offer: int, task: int, result: Any) -> Future[Any]:
        """Give a borrowed task's result to `rank`."""
        ...


class NoPeers:
    """The transfer of a single worker."""

    def fetch(self, key: Key, rank: int, region: Region, peeks: bool = False) -> Future[Any]:
        """Nobody else is there."""
        raise AssertionError(f"a single worker was asked to fetch {key} from rank {rank}")

    def look(self, key: Key, rank: int, region: Region) -> Future[Any] | None:
        """Nobody else is there."""
        raise AssertionError(f"a single worker was asked to look at {key} of rank {rank}")

    @property
    def offers(self) -> Offers:
        """Nobody asks."""
        raise AssertionError("a single worker has nobody to lend to")

    def borrow(self, job: str, rank: int, stage: int, usual_s: float) -> Future[Any]:
        """Nobody has anything."""
        raise AssertionError(f"a single worker was to borrow from rank {rank}")

    def operand(self, job: str, rank: int, offer: int, place: int) -> Future[Any]:
        """Nobody else is there."""
        raise AssertionError(f"a single worker was to stand in for rank {rank}")

    def give_back(self, job: str, rank: int, offer: int, task: int, result: Any) -> Future[Any]:
        """Nobody has lent anything."""
        raise AssertionError(f"a single worker was to give something back to rank {rank}")
