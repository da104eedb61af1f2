"""Who has said hello to the master, and what it knows of them."""

from __future__ import annotations

from msgspec import Struct, field

from spartan_ng.wire.codec import Blob
from spartan_ng.wire.messages import Hello, Holds, Member

SILENT_S = 10.0
"""A worker that was told to stop a job, and says nothing for so long, is held up by a function for good."""
_UNDER_WAY_S = 2.0


class Worker(Struct):
    """A worker that has said hello."""

    member: Member
    plans: set[tuple[str, str]] = field(default_factory=set)
    """`(client, plan key)` of the plans it has."""
    heard_s: float = 0.0
    """When it last said something."""
    told_s: float | None = None
    """When it was told to stop a job, where nothing that it has said since answers that."""

    @classmethod
    def who_said(cls, hello: Hello, name: str, since: int) -> Worker:
        """A worker that joins in an epoch."""
        host, threads, memory = hello.host, hello.threads, hello.memory_bytes
        power = hello.processors, hello.rates
        return cls(Member(name, hello.label, hello.address, host, threads, memory, hello.key, since, *power))

    def hear(self, now_s: float) -> None:
        """It has said something; soon after an order, that may have been under way before."""
        self.heard_s = now_s
        if self.told_s is not None and now_s - self.told_s > _UNDER_WAY_S:
            self.told_s = None

    def tell(self, now_s: float) -> None:
        """It is told to stop a job."""
        self.told_s = now_s if self.told_s is None else self.told_s

    def is_held_up(self, now_s: float) -> bool:
        """Whether it was told to stop a job, and nothing has been heard of it for long."""
        return self.told_s is not None and now_s - max(self.told_s, self.heard_s) > SILENT_S


class Client(Struct):
    """A client that has said hello."""

    label: str
    is_admin: bool = False
    plans: dict[str, Blob] = field(default_factory=dict)
    holds: Holds | None = None
    """What it had when it lost the master before."""
