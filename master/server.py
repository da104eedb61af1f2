"""The master's sockets: one port, one loop; every decision is `master.state`'s.

A peer is gone when ZeroMQ has disconnected it: at once for a dead process, after missed heartbeats for a
dead host. The ROUTER does not say whose connection closed, but refuses to send to who is gone, so every
disconnection makes it probe all peers; a slow timer does it, too.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from spartan_ng.errors import ConnectionFailed, OptionError
from spartan_ng.events import now_ns
from spartan_ng.extras import needed
from spartan_ng.master.jobs import Instructions
from spartan_ng.master.journal import Journal
from spartan_ng.master.state import MasterState
from spartan_ng.system.segments import host_identity
from spartan_ng.wire.access import Access, is_local, leave, own_address
from spartan_ng.wire.clocks import Clocks
from spartan_ng.wire.codec import encode
from spartan_ng.wire.loop import Frames, Loop
from spartan_ng.wire.messages import (
    FROM_ADMIN,
    FROM_CLIENT,
    FROM_WORKER,
    AskPage,
    Hello,
    PageAt,
    Probe,
    Watched,
)
from spartan_ng.wire.port import Peer, Port

if TYPE_CHECKING:
    from spartan_ng.master.watcher import Watcher
    from spartan_ng.web.server import PageServer

DEFAULT_ADDRESS = "tcp://127.0.0.1:7077"
"""Where a master with keys serves if nothing else is said."""
_PROBE_S = 1.0
_TICK_S = 0.25
_SETTLE_S = 0.02
"""ZeroMQ reports a disconnection a moment before it forgets the peer."""
_MOST_WAITING = 10_000
"""Messages of one peer that wait for the master, before its connection is read no further."""

_READERS = {"worker": FROM_WORKER, "client": FROM_CLIENT, "admin": FROM_ADMIN}
_log = logging.getLogger("spartan_ng.master")


class MasterServer:
    """Serves clients and workers at `address` (port `*` or 0: any free one); by default its user's own."""

    def __init__(self, address: str | None = None, access: Access | None = None) -> None:
        self._access = access = access or Access()
        address = address or (own_address() if access.keys is None else DEFAULT_ADDRESS)
        self.loop = Loop(lambda error: _log.error("an error of the master's own", exc_info=error))
        self._state = MasterState(self.loop.now(), host_identity(), now_ns)
        self._clocks = Clocks()
        self._journal = Journal()
        pair = None if access.keys is None else access.keys.own
        try:
            self._port = Port(
                self.loop, address, access, pair, self, lambda: Probe(now_ns()), True, _MOST_WAITING
            )
        except BaseException:
            self.loop.close()
            raise
        self.address = self._port.address
        self._watcher: Watcher | None = None
        self._page: PageServer | None = None
        self._look_at_keys()
        self._probing = False
        self.loop.every(_PROBE_S, self._probe)
        self.loop.every(_PROBE_S, self._look_at_keys)
        self.loop.every(_TICK_S, self._tick)

    def run(self) -> None:
        """Serve until `stop`, or until an admin says so; workers outlive it, and wait for the next."""
        try:
            self.loop.run()
        finally:
            if self._page is not None:
                self._page.close()
            self.loop.close(linger_s=0.2)
            leave(self.address)

    def stop(self) -> None:
        """End `run`. Thread-safe."""
        self.loop.stop()

    def greeted(self, peer: Peer, hello: Hello) -> None:
        """Somebody has proved who they are."""
        self._clocks.greet(peer.name, hello.host)
        out = [*self._state.greet(peer.name, peer.role, hello), (peer.name, Probe(now_ns()))]
        if self._watcher is not None and peer.role != "worker":
            out.append((peer.name, Watched()))
        self._do(out)

    def heard(self, peer: Peer, frames: Frames) -> None:
        """Somebody who has greeted says something."""
        message = self._clocks.take(peer.name, _READERS[peer.role](frames), now_ns())
        if isinstance(message, AskPage):
            self._do([(peer.name, self._page_at())])
            return
        label = self._state.label(peer.name)
        out = self._state.handle(peer.name, message)
        self._journal.heard(label, message, now_ns())
        if self._watcher is not None:
            self._watcher.heard(peer.name, label, message)
        self._do(out)
        if self._state.role(peer.name) == "stranger":
            self._port.forget(peer.name)
            self._clocks.forget(peer.name)
            self._journal.lost(peer.name)

    def gone(self, name: str) -> None:
        """Somebody's connection has been cut."""
        self._clocks.forget(name)
        self._journal.lost(name)
        self._do(self._state.lost(name))

    def open_page(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Serve the page, and give its link. Raises ConnectionFailed where the port is taken, MissingLibrary
        where there is nothing to serve it with."""
        for library in ("aiohttp", "prometheus_client"):
            needed(library, "page")
        from spartan_ng.master.watcher import Watcher  # most masters have no page
        from spartan_ng.web.board import Board
        from spartan_ng.web.server import PageServer

        board = Board(f"cluster at {self.address}")
        self._page = PageServer(board, host, port)
        self._watcher = Watcher(board, self._state.members())
        logging.getLogger("spartan_ng").addHandler(self._watcher.log)
        self._state.watched = True
        self._do([(name, Watched()) for name in self._state.clients])
        return self._page.url

    def _page_at(self) -> PageAt:
        """The link, for who may connect; a master of one user's own opens a page when it is asked."""
        if self._page is None and not is_local(self.address):
            return PageAt("", "the master was started without --page")
        try:
            return PageAt(self._page.url if self._page is not None else self.open_page())
        except ModuleNotFoundError as error:
            return PageAt("", f"{error}: install spartan-ng[page]")
        except (ConnectionFailed, OptionError) as error:
            return PageAt("", str(error))

    def _look_at_keys(self) -> None:
        """Take notice of keys that were added or revoked."""
        if self._access.keys is None:
            return
        users = self._access.keys.authorized()
        if users != self._port.door.users:
            self._port.door.users = users
            self._do(self._state.authorize(tuple(users.items())))
            self._port.cut_unknown()

    def disconnected(self) -> None:
        """Somebody is gone: find out who."""
        if not self._probing:
            self._probing = True
            self.loop.after(_SETTLE_S, self._probe)

    def _tick(self) -> None:
        self._do(self._state.tick(self.loop.now()))
        for name in self._state.held_up():
            _log.warning("%s does not stop, and says nothing; it is given up", self._who(name))
            self._port.end(name)

    def _who(self, peer: str) -> str:
        """A peer as people know it."""
        return f"{self._state.role(peer)} {self._state.label(peer)}"

    def _probe(self) -> None:
        self._probing = False
        probe = Probe(now_ns())
        self._do([(peer, probe) for peer in self._state.peers])

    def _do(self, instructions: Instructions) -> None:
        """Send; whoever cannot be reached is lost, which makes more to send."""
        queue = deque(instructions)
        last, frames = None, None
        gone: set[str] = set()
        while queue:
            receiver, message = queue.popleft()
            if receiver in gone:
                continue
            # What all are told stands in a row, and is encoded once.
            if message is not last or frames is None:
                last, frames = message, encode(message)
                self._journal.said(message, now_ns())
                if self._watcher is not None:
                    self._watcher.said(message)
            if not self._port.send(receiver, frames):
                gone.add(receiver)
                self._port.forget(receiver)
                self._clocks.forget(receiver)
                self._journal.lost(receiver)
                if not self._state.ends:
                    wanted = self._state.is_let_go(receiver)
                    _log.log(logging.INFO if wanted else logging.WARNING, "%s is gone", self._who(receiver))
                queue += self._state.lost(receiver)
        if self._state.is_over:
            self.stop()
