"""Events of all workers on the master's clock."""

from __future__ import annotations

from typing import Any

from spartan_ng.system.segments import host_identity
from spartan_ng.wire.clocks import Clock, on_our_clock
from spartan_ng.wire.messages import Happened, Here


class Clocks:
    """The clocks of those who have greeted."""

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
