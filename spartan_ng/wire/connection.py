"""Why a connection to the master does not come about: from ZeroMQ's events to our errors."""

from __future__ import annotations

import zmq

from spartan_ng.errors import AuthenticationFailed, ConnectionFailed, MasterUnreachable, VersionMismatch
from spartan_ng.wire.messages import Refused

REFUSED = (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
"""After these ZeroMQ connects no more."""
_KINDS = {"version": VersionMismatch, "rate": ConnectionFailed}
_CLOSED = 3
"""Handshakes that the other end closes without a reason, before that is taken for a refusal: where keys are
missing it closes each at once, where it is only slow, each after a while (`loop.HANDSHAKE_S`)."""


class Handshake:
    """What has happened so far on the way to the master at `address`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._reached = False
        self._done = False
        self._closed = 0
        self._refused = False

    @property
    def failed(self) -> bool:
        """The other end is there, but refuses the security handshake, or closes it again and again."""
        return self._refused or self._closed >= _CLOSED

    def note(self, event: int) -> None:
        """Take one event of the socket's monitor."""
        if event == zmq.EVENT_CONNECTED:
            self._reached = True
        elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            self._done = True
        elif event in REFUSED:
            self._refused = True
        # One that has succeeded, and ends, is no refusal: the master may have been started again.
        elif event == zmq.EVENT_DISCONNECTED and self._reached and not self._done:
            self._closed += 1

    def error(self, timeout_s: float) -> ConnectionFailed:
        """The error to raise when nothing came within the timeout, or the handshake has failed."""
        if self.failed:
            return AuthenticationFailed(
                f"{self._address} is there, but refuses the connection: the keys are missing, wrong, or not "
                "known to the master (pass the directory that `spartan-ng keygen` wrote for it), or too "
                "many from this host have connected without any"
            )
        if self._reached and not self._done:
            return MasterUnreachable(
                f"{self._address} is there, but has not let us in within {timeout_s:g} s: "
                "it is slow, or no master"
            )
        if self._done:
            return MasterUnreachable(f"{self._address} accepts connections, but nothing answers there")
        return MasterUnreachable(f"no master answers at {self._address} within {timeout_s:g} s")

    def refused(self, message: Refused) -> ConnectionFailed:
        """The error for a master that says no."""
        kind = _KINDS.get(message.reason, AuthenticationFailed)
        return kind(f"{self._address}: {message.message}")
