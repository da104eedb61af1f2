"""A connection to the master that is made again when it is lost, as long as the timeout allows.

One thread owns it; what is said over it is `link`'s.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import zmq
from msgspec.structs import replace

from spartan_ng.errors import (
    ConnectionFailed,
    MasterUnreachable,
)
from spartan_ng.system.heap import give_back
from spartan_ng.wire.access import Access
from spartan_ng.wire.connection import Handshake
from spartan_ng.wire.hosts import label
from spartan_ng.wire.loop import Loop, Socket, send, send_frames
from spartan_ng.wire.messages import (
    PROTOCOL,
    Bye,
    Hello,
    Members,
)
from spartan_ng.wire.pieces import Buffer
from spartan_ng.wire.port import greeting, name_of, new_identity

_LOOK_S = 0.1
AGAIN = "np.connect makes a new one where a master runs; what only the workers had is gone"
UNDER_WAY = "the master was lost while the job ran"

_log = logging.getLogger(__name__)

CLOSED = (
    "the connection to the cluster is closed; after np.disconnect(), programs run in their own process again"
)


class Reconnecting(ABC):
    """Who is connected to the master at `address`, under one name for good.

    Parameters
    ----------
    address, access : where the master is, and what it knows us by
    timeout_s : how long there may be none
    role : "client" or "admin"
    """

    def __init__(self, address: str, access: Access, timeout_s: float, role: str) -> None:
        self._identity, self._access = new_identity(), access
        self.name = name_of(role, self._identity)
        self.address = address
        self.members = Members(0, ())
        self._timeout_s = timeout_s
        self._answered: Future[None] = Future()
        self._changed = threading.Condition()
        self._error: ConnectionFailed | None = None
        self._is_greeted = False
        """Whether the master has heard who we are, on the present connection."""
        self._is_up = False
        """Whether it has let us in, and has told us of its workers."""
        self._lost_at: float | None = None
        """Since when there is no master, where we had one."""
        self._ends = False
        """Whether the next loss of the master is what we have asked for."""
        self._handshake = Handshake(address)
        self._loop = Loop()
        try:
            self._master = self._dial()
        except zmq.ZMQError as error:
            self._loop.close()
            raise MasterUnreachable(
                f"{address} is not an address that can be connected to: {error}"
            ) from error
        except BaseException:
            self._loop.close()
            raise
        self._hello = Hello(PROTOCOL, role, label())
        self._loop.receive(self._master, self._receive, self._broken, copy=True)
        self._loop.every(_LOOK_S, self._look)
        self._thread = threading.Thread(target=self._run, name="spartan-ng-client", daemon=True)

    def open(self) -> None:
        """Connect; raises MasterUnreachable, AuthenticationFailed or VersionMismatch within the timeout."""
        self._thread.start()
        try:
            self._answered.result(self._timeout_s)
        except TimeoutError:
            self.close()
            raise self._handshake.error(self._timeout_s) from None
        except BaseException:
            self.close()
            raise

    def wait_for_master(self) -> None:
        """Wait until there is a master; raises as `check` does, where none comes."""
        if not self._is_up:
            with self._changed:
                self._changed.wait_for(lambda: self._is_up or self._error is not None)
        self.check()

    def check(self) -> None:
        """Raise if the connection is lost or closed."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Leave; the cluster drops all that is ours."""
        if self._loop.closed or not self._thread.is_alive():
            self._loop.close()
            return

        def leave() -> None:
            self._send(Bye())
            self._fail(ConnectionFailed(CLOSED))
            self._loop.stop()

        self._loop.call(leave)
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    # --- on the loop's thread

    @abstractmethod
    def _receive(self, frames: Sequence[Buffer]) -> None:
        """What the master says."""

    @abstractmethod
    def _interrupted(self) -> None:
        """What is under way will not be answered; the connection is made again."""

    @abstractmethod
    def _ended(self, error: ConnectionFailed) -> None:
        """No more is said."""

    def _run(self) -> None:
        try:
            self._loop.run()
        except Exception as error:  # noqa: BLE001 - whoever waits for us hears of it
            why = (
                f"the connection to the master at {self.address} is given up: {type(error).__name__}: {error}"
            )
            self._fail(error if isinstance(error, ConnectionFailed) else ConnectionFailed(why))
        finally:
            self._fail(ConnectionFailed(CLOSED))
            self._loop.close(linger_s=0.5)
            give_back()

    def _dial(self) -> Socket:
        server = None if self._access.keys is None else self._access.keys.server_public
        return self._loop.dealer(self.address, self._identity, self._access, server, self._connection_event)

    def _send(self, message: Any) -> None:
        """What is said while there is no master, need not be said to the next one."""
        if self._error is None and self._is_up:
            send(self._master, message)

    def _connection_event(self, event: int) -> None:
        self._handshake.note(event)
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            send_frames(self._master, greeting(replace(self._hello, epoch=self.members.epoch)))
            self._is_greeted = True
        elif event == zmq.EVENT_DISCONNECTED and self._is_greeted:
            self._lose_master()
        elif self._handshake.failed:
            self._fail(self._handshake.error(self._timeout_s))

    def _lose_master(self) -> None:
        """Connect again: what is under way on a broken connection must not reach the next master."""
        if self._error is not None:
            return
        self._is_greeted = self._is_up = False
        if self._ends:
            self._fail(ConnectionFailed(f"the cluster at {self.address} has ended"))
            return
        if self._lost_at is None:
            self._lost_at = self._loop.now()
            _log.warning("the connection to the master at %s is lost; it is made again", self.address)
        self._interrupted()
        # Later: this is called by the monitor of the socket that goes.
        self._loop.call(self._dial_again)

    def _dial_again(self) -> None:
        self._loop.release(self._master)
        self._handshake = Handshake(self.address)
        try:
            self._master = self._dial()
        except ConnectionFailed as error:  # others could be the master there by now
            self._fail(error)
            return
        self._loop.receive(self._master, self._receive, self._broken, copy=True)

    def _look(self) -> None:
        if self._lost_at is not None and self._loop.now() - self._lost_at > self._timeout_s:
            self._fail(MasterUnreachable(f"the connection to the master at {self.address} is lost; {AGAIN}"))

    def _broken(self, error: Exception) -> None:
        self._fail(ConnectionFailed(f"the master at {self.address} said what cannot be read: {error}"))

    def _fail(self, error: ConnectionFailed) -> None:
        """The connection is of no use any more; everybody who waits hears of it."""
        if self._error is not None:
            return
        with self._changed:
            self._error = error
            self._changed.notify_all()
        if not self._answered.done():
            self._answered.set_exception(error)
        self._ended(error)
