"""Where the tiles lie that a share of a stage reads: a rank's own here, or those of one it stands in for."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from spartan_ng.arrays import Key
from spartan_ng.worker.memory.regions import PiecedOperand
from spartan_ng.worker.memory.store import Region, Store
from spartan_ng.worker.network.protocol import Transfer


class Whereabouts(Protocol):
    """Where ranks' tiles lie."""

    own: int
    """The rank all of whose tiles lie in this process, or -1."""

    def is_here(self, key: Key, rank: int) -> bool:
        """Whether a tile of a rank lies in this process."""
        ...

    def tile(self, key: Key) -> Any:
        """A tile that does."""
        ...

    def ask(self, key: Key, rank: int, region: Region) -> Future[Any]:
        """A region of one that does not."""
        ...

    def look(self, key: Key, rank: int, region: Region) -> Future[Any] | None:
        """The same where it lies, None where it cannot be read there; None at once where nothing can."""
        ...

    def instead(self, operand: PiecedOperand) -> Future[Any] | None:
        """All of an operand of which pieces are lost, if somebody has read it."""
        ...


class OwnTiles:
    """The rank's own tiles lie in a store; others bring theirs."""

    def __init__(self, rank: int, store: Store, transfer: Transfer) -> None:
        self.own = rank
        self.tile = store.get
        self.ask, self.look = transfer.fetch, transfer.look

    def is_here(self, key: Key, rank: int) -> bool:
        """Whether it is one of its own."""
        return rank == self.own

    def instead(self, operand: PiecedOperand) -> Future[Any] | None:
        """Nobody has."""
