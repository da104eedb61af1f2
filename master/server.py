"""The master's sockets: one ROUTER, one loop; every decision is `master.state`'s.

A peer is gone when ZeroMQ has disconnected it: at once for a dead process, after missed heartbeats for a
dead host. The ROUTER does not say whose connection closed, but refuses to send to who is gone, so every
disconnection makes it probe all peers; a slow timer does it, too.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence

import zmq

from spartan_ng.master.state import Instructions, MasterState
from spartan_ng.wire.codec import Buffer, encode
from spartan_ng.wire.loop import Loop, send, send_frames
from spartan_ng.wire.messages import FROM_CLIENT, FROM_STRANGER, FROM_WORKER, Probe, Stop
from spartan_ng.wire.security import Keys, require_keys, token

DEFAULT_ADDRESS = "tcp://127.0.0.1:7077"
_PROBE_S = 1.0
_SETTLE_S = 0.02
"""ZeroMQ reports a disconnection a moment before it forgets the peer."""

_READERS = {"stranger": FROM_STRANGER, "worker": FROM_WORKER, "client": FROM_CLIENT}
_log = logging.getLogger("spartan_ng.master")


class MasterServer:
    """Serves clients and workers at `address` (port `*` or 0: any free one)."""

    def __init__(self, address: str = DEFAULT_ADDRESS, keys: Keys | None = None) -> None:
        require_keys(address, keys)
        self.loop = Loop()
        self._state = MasterState(token())
        try:
            self._socket, self.address = self.loop.router(address, keys)
        except BaseException:
            self.loop.close()
            raise
        self.loop.receive(self._socket, self._receive, copy=True)
        self._probing = False
        self.loop.every(_PROBE_S, self._probe)

    def run(self) -> None:
        """Serve until `stop`."""
        self.loop.monitor(self._socket, self._connection_event)
        try:
            self.loop.run()
        finally:
            for name in self._state.peers:
                send(self._socket, Stop(), name)
            self.loop.close(linger_s=0.2)

    def stop(self) -> None:
        """End `run`. Thread-safe."""
        self.loop.stop()

    def _connection_event(self, event: int) -> None:
        if event == zmq.EVENT_DISCONNECTED and not self._probing:
            self._probing = True
            self.loop.after(_SETTLE_S, self._probe)

    def _receive(self, frames: Sequence[Buffer]) -> None:
        peer = bytes(frames[0]).decode()
        try:
            message = _READERS[self._state.role(peer)](frames[1:])
        except ValueError as error:
            _log.warning("%s said what it may not: %s", peer, error)
            return
        self._do(self._state.handle(peer, message))

    def _probe(self) -> None:
        self._probing = False
        self._do([(peer, Probe()) for peer in self._state.peers])

    def _do(self, instructions: Instructions) -> None:
        """Send; whoever cannot be reached is lost, which makes more to send."""
        queue = deque(instructions)
        last, frames = None, None
        gone: set[str] = set()
        while queue:
            receiver, message = queue.popleft()
            if receiver in gone:
                continue
            if message is not last or frames is None:
                last, frames = message, encode(message)
            if not send_frames(self._socket, frames, receiver):
                gone.add(receiver)
                _log.warning("%s is gone", receiver)
                queue += self._state.lost(receiver)
