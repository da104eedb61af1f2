"""Who has the page's token, before anything else is made of what they send.

A connection that has not shown the token is a few kilobytes that are searched for it: no library parses them.
Without the token the answer is the same for everybody, and the end of the connection; with it, the connection
is the page's. Those who have not shown it are few at a time, and have not long.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from urllib.parse import parse_qs

STRANGERS = 64
"""Connections without the token at a time; of more, the oldest are cut."""
HEAD_S = 10.0
"""How long the first request's head may take."""
HEAD_BYTES = 16384
NO = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_END = b"\r\n\r\n"


class Entrance:
    """Lets in who has the `token`, in the link, the cookie `cookie()`, or the header; `inside` makes the
    protocol of whoever is let in."""

    def __init__(self, token: str, cookie: Callable[[], str], inside: Callable[[], asyncio.Protocol]) -> None:
        self._token = token.encode()
        self._cookie = cookie
        self.inside = inside
        self._strangers: dict[Stranger, None] = {}

    def __call__(self) -> Stranger:
        """The protocol of a new connection."""
        return Stranger(self)

    def come(self, stranger: Stranger) -> None:
        """Somebody has connected; the oldest make room."""
        self._strangers[stranger] = None
        for oldest in list(self._strangers)[:-STRANGERS]:
            oldest.cut()

    def go(self, stranger: Stranger) -> None:
        """Somebody has left, or is a stranger no more."""
        self._strangers.pop(stranger, None)

    def close(self) -> None:
        """Let nobody wait."""
        for stranger in list(self._strangers):
            stranger.cut()

    def is_own(self, *given: str) -> bool:
        """Whether one of these is the token."""
        texts = [text.encode("utf-8", "surrogateescape") for text in given]
        return any(hmac.compare_digest(text, self._token) for text in texts)

    def lets_in(self, head: bytes) -> bool:
        """Whether the head of a request has the token in it."""
        first, *lines = head.decode("latin-1").split("\r\n")
        parts = first.split(" ")
        given = parse_qs(parts[1].partition("?")[2], max_num_fields=100).get("token", []) if parts[1:] else []
        for line in lines:
            name, _, text = line.partition(":")
            match name.lower():
                case "authorization":
                    given.append(text.strip().removeprefix("Bearer "))
                case "cookie":
                    pairs = [pair.strip().partition("=") for pair in text.split(";")]
                    given += [value.strip('"') for key, _, value in pairs if key == self._cookie()]
        return self.is_own(*given)


class Stranger(asyncio.Protocol):
    """A connection that has not shown the token yet."""

    def __init__(self, door: Entrance) -> None:
        self._door = door
        self._read = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        assert isinstance(transport, asyncio.Transport), "it reads and writes"
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(HEAD_S, self.cut)
        self._door.come(self)

    def data_received(self, data: bytes) -> None:
        """They say something."""
        self._read += data
        end = self._read.find(_END)
        if end < 0 and len(self._read) <= HEAD_BYTES:
            return
        transport = self._leave()
        if 0 <= end <= HEAD_BYTES and self._lets_in(bytes(self._read[:end])):
            inside = self._door.inside()
            transport.set_protocol(inside)
            inside.connection_made(transport)
            inside.data_received(bytes(self._read))
        else:
            transport.write(NO)
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """They have left."""
        self._leave()

    def cut(self) -> None:
        """End the connection."""
        self._leave().abort()

    def _lets_in(self, head: bytes) -> bool:
        try:
            return self._door.lets_in(head)
        except ValueError:  # too many fields
            return False

    def _leave(self) -> asyncio.Transport:
        """Be no stranger any more."""
        assert self._transport is not None, "somebody has connected"
        assert self._timer is not None, "somebody has connected"
        self._timer.cancel()
        self._door.go(self)
        return self._transport
