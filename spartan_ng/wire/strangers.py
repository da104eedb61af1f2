"""Who has connected and not greeted yet: how many there may be, and how many may come a second.

A connection costs its host one of a number of tries, which come back with the time, and at once when somebody
greets over it: whoever proves who they are comes as often as they like. Who comes from a host without tries
left is cut off before the handshake, and so is everybody where all hosts together have none. OpenSSH's
`MaxStartups` and `PerSourcePenalties` are of this kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from spartan_ng.rates import Rate, Tries, TriesOfEach
from spartan_ng.wire.monitor import Connection

MOST = 512
"""Connections that have not greeted; of more, the oldest are cut. Each may have one frame under way."""
MOST_BYTES = 1 << 15
"""What one of them may have sent when it is looked at: more than a handshake and a greeting."""
OF_A_HOST = Rate(2048, 100.0)
OF_ALL_HOSTS = Rate(4 * OF_A_HOST.most, 4 * OF_A_HOST.a_second)
_TEXTS = 1024
"""Words in the log that are remembered."""
_QUIET_S = 10.0
"""Between two words in the log about the same."""

_log = logging.getLogger("spartan_ng.wire")


class Strangers:
    """Those at one socket.

    `connections` gives all that it has, the oldest first, and `known` those that have greeted.
    """

    def __init__(
        self,
        now: Callable[[], float],
        connections: Callable[[], Collection[Connection]],
        known: Callable[[], set[Connection]],
    ) -> None:
        self._now = now
        self._connections = connections
        self._known = known
        self._hosts = TriesOfEach(OF_A_HOST)
        self._all = Tries(OF_ALL_HOSTS, now())
        self._refused: set[Connection] = set()
        self._said: dict[str, float] = {}

    def come(self) -> None:
        """The last of the connections is new."""
        connections = list(self._connections())
        if not connections:
            return  # it has ended already
        newest = connections[-1]
        host = newest.host
        if host is None:
            return
        if not (self._hosts.take(host, self._now()) and self._all.take(self._now())):
            newest.cut()
            self._say(f"{host or 'this machine'} connects too often and does not say who it is")
        # Those who have greeted count here, which costs a look and cuts nobody.
        elif len(connections) > MOST:
            self._make_room(connections)

    def greeted(self, connection: Connection) -> None:
        """One is a stranger no more."""
        host = connection.host
        if host is not None:
            self._hosts.give_back(host)
            self._all.give_back()

    def look(self) -> None:
        """Whoever sends much and does not say who they are makes room."""
        known = self._known()
        for connection in list(self._connections()):
            # ZeroMQ hands over whole messages only, so that the system is asked what has come.
            if connection not in known and connection.received_bytes > MOST_BYTES:
                self._say(f"{connection.host} sends much and does not say who it is")
                connection.cut()

    def may_be_answered(self, connection: Connection) -> bool:
        """Whether one whose greeting is refused is told why: once."""
        # Those that have ended are forgotten, so that this does not grow.
        self._refused &= set(self._connections())
        is_first = connection not in self._refused
        self._refused.add(connection)
        return is_first

    def _make_room(self, connections: list[Connection]) -> None:
        """Whoever only occupies a connection makes room for who comes after him."""
        known = self._known()
        strangers = [c for c in connections if c not in known]
        for connection in strangers[:-MOST]:
            connection.cut()
        if len(strangers) > MOST:
            self._say(f"more than {MOST} have connected and say nothing; the oldest are cut")

    def _say(self, text: str) -> None:
        now = self._now()
        if now - self._said.get(text, -_QUIET_S) >= _QUIET_S:
            if len(self._said) >= _TEXTS:
                # Hosts are in the texts: a stranger with many addresses would fill the memory.
                self._said.clear()
            self._said[text] = now
            _log.warning("%s", text)
