"""How far another machine's clock is from ours, from messages that go there and back.

Of the last round trips the quickest says it best: its message took at most so long one way, at least nothing.

Cristian, Probabilistic clock synchronization (Distributed Computing, 1989); Mills, RFC 5905, section 8.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec.structs import replace

from spartan_ng.system.segments import host_identity
from spartan_ng.wire.messages import Happened, Here

_TRIPS = 32
"""Round trips that count: clocks drift apart."""


class Clock:
    """Another process's clock, seen from ours."""

    def __init__(self, is_ours: bool) -> None:
        self._is_ours = is_ours
        """Whether it is on our machine, where all processes share one clock."""
        self._trips: deque[tuple[int, int]] = deque(maxlen=_TRIPS)

    def note(self, sent_ns: int, heard_ns: int, answered_ns: int, returned_ns: int) -> None:
        """A message was sent and its answer returned by our clock, heard and answered by the other's."""
        trip_ns = (returned_ns - sent_ns) - (answered_ns - heard_ns)
        ahead_ns = ((heard_ns - sent_ns) + (answered_ns - returned_ns)) // 2
        self._trips.append((trip_ns, ahead_ns))

    @property
    def ahead_ns(self) -> int | None:
        """How far it is ahead of ours; None where nothing is known yet."""
        if self._is_ours:
            return 0
        return min(self._trips)[1] if self._trips else None


def on_our_clock(message: Happened, clock: Clock) -> Happened:
    """A message with its events on our clock; without them, where the other's clock is not known yet."""
    ahead_ns = clock.ahead_ns
    if ahead_ns == 0:
        return message
    if ahead_ns is None:
        return replace(message, events=())
    events = (e._replace(begin_ns=e.begin_ns - ahead_ns, end_ns=e.end_ns - ahead_ns) for e in message.events)
    return replace(message, events=tuple(events))


class Clocks:
    """The clocks of those who have greeted a master."""

    def __init__(self) -> None:
        self._clocks: dict[str, Clock] = {}

    def greet(self, peer: str, host: str) -> None:
        """Somebody is there."""
        self._clocks[peer] = Clock(host == host_identity() != "")

    def forget(self, peer: str) -> None:
        """Somebody is gone."""
        self._clocks.pop(peer, None)

    def take(self, peer: str, message: Any, now_ns: int) -> Any:
        """What `peer` says, with its events on our clock; learns from the answers to our probes."""
        match message:
            case Here():
                self._clocks[peer].note(message.sent_ns, message.now_ns, message.now_ns, now_ns)
            case Happened():
                return on_our_clock(message, self._clocks[peer])
        return message
