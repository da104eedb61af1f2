"""A master that follows another: what those who come back know, and when it begins.

A master has nothing that nobody else has, so nothing of it is on disk. Each worker has its tiles, and the
last list of members that it was told; each client has the keys of its arrays, its plans, and what it waits
for. Whoever has been told of an epoch says so in the greeting, and a master that hears of a later one than
its own is not the first at its address. Then:

1. Workers that come back send the list that they know (`Back`). The latest of these says who had which rank.
2. The master waits for all who are on it, `RETURN_S` at most. Nobody is told of members before, so that
   nothing runs.
3. Who has come keeps rank, and the epoch of joining, which arrays and addresses are tied to. Who has not is
   lost like any worker. An epoch begins that is later than all.
4. Clients say what they still hold (`Holds`), and workers drop the rest of theirs: news of what was released
   may have gone with the former master. What belongs to clients that do not come back goes after `OWNERS_S`.
5. The jobs that ran were stopped when the workers lost their master. Their clients submit them again.

Whom a living master has given up comes back, too, and is told that nothing of it is kept. As with Spark's
standalone masters, drivers and workers re-register; there is no log to replay.
"""

from __future__ import annotations

from msgspec import Struct, field

from spartan_ng.wire.messages import Hello, Member, Members

RETURN_S = 5.0
"""How long a master waits for the workers of another; who comes later comes as a new one."""
OWNERS_S = 60.0
"""How long workers keep what belongs to clients that are not there."""

NOBODY = Members(0, ())


class Succession(Struct):
    """Who has come back so far."""

    begun_s: float
    epoch: int = 0
    """The latest that anybody has been told."""
    known: Members = NOBODY
    """The latest list of members."""
    returned: dict[str, Hello] = field(default_factory=dict)
    """Workers that have sent theirs."""
    new: dict[str, Hello] = field(default_factory=dict)
    """Workers that bring nothing."""
    owners: set[str] = field(default_factory=set)
    """Clients of whom workers have tiles."""

    def hear(self, epoch: int) -> None:
        """Somebody has been told of an epoch."""
        self.epoch = max(self.epoch, epoch)

    def back(self, worker: str, hello: Hello, known: Members, owners: tuple[str, ...]) -> None:
        """A worker is there again."""
        self.hear(known.epoch)
        if known.epoch > self.known.epoch:
            self.known = known
        self.returned[worker] = hello
        self.owners.update(owners)

    def leaves(self, worker: str) -> None:
        """A worker is gone again."""
        self.returned.pop(worker, None)
        self.new.pop(worker, None)

    @property
    def is_complete(self) -> bool:
        """Whether all are there."""
        return self.known.epoch > 0 and all(m.name in self.returned for m in self.known.members)

    @property
    def missing(self) -> tuple[Member, ...]:
        """Members that have not come."""
        return tuple(m for m in self.known.members if m.name not in self.returned)

    @property
    def late(self) -> dict[str, Hello]:
        """Workers that have come, and had been given up by the former master."""
        members = {m.name for m in self.known.members}
        return {name: hello for name, hello in self.returned.items() if name not in members}

    def ranks(self) -> list[Member]:
        """Those who are there, by rank: in the place of each who is missing is the last one."""
        members = list(self.known.members)
        for gone in self.missing:
            rank, last = members.index(gone), members.pop()
            if last is not gone:
                members[rank] = last
        return members
