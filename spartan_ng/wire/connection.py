"""Why a connection to the master does not come about: from ZeroMQ's events to our errors."""

from __future__ import annotations

import zmq

from spartan_ng.errors import AuthenticationFailed, ConnectionFailed, MasterUnreachable, VersionMismatch
from spartan_ng.wire.messages import Refused

_FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
)


class Handshake:
    """What has happened so far on the way to the master at `address`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._reached = False
        self._done = False
        self.failed = False
        """The other end is there, but closes or refuses the security handshake."""

    def note(self, event: int) -> None:
        """Take one event of the socket's monitor."""
        if event == zmq.EVENT_CONNECTED:
            self._reached = True
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._done = True
        elif event in _FAILED or (event == zmq.EVENT_DISCONNECTED and self._reached and not self._done):
            self.failed = True

    def error(self, timeout_s: float) -> ConnectionFailed:
        """The error to raise when nothing came within the timeout, or the handshake has failed."""
        if self.failed or (self._reached and not self._done):
            return AuthenticationFailed(
                f"{self._address} is there, but refuses the connection: the keys are missing, wrong, or not "
                "known to the master (pass the directory that `spartan-ng keygen` wrote for it)"
            )
        if self._done:
            return MasterUnreachable(f"{self._address} accepts connections, but nothing answers there")
        return MasterUnreachable(f"no master answers at {self._address} within {timeout_s:g} s")

    def refused(self, message: Refused) -> ConnectionFailed:
        """The error for a master that says no."""
        kind = VersionMismatch if message.reason == "version" else AuthenticationFailed
        return kind(f"{self._address}: {message.message}")
