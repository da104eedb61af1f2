"""HTTP servers are asked again: who is busy for a moment, or drops a connection, ends no computation.

A session of aiohttp's, as fsspec's file system and zarr use it: what is asked for has an answer once its
status says that the server is not busy, and its bytes have all come. Between two tries are pauses, each twice
as long as the one before, or as long as the server says (`Retry-After`), and together no longer than
somebody waits who has pressed Ctrl-C. A server that stays in trouble all that time is not waited for by those
who ask next; one that cannot be reached, or says nothing, is not asked again at all (`servers`).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from spartan_ng.config import config
from spartan_ng.extras import needed

_T = TypeVar("_T")

BUSY = frozenset({429, 500, 502, 503, 504})
"""Statuses that may be others a moment later: too many requests, and errors of the server's own."""
_PAUSES_S = 0.25, 0.5, 1.0, 2.0
"""Longer than a proxy takes to find another server; together shorter than people wait for an error."""
_MOST_S = 10.0
"""All pauses for one answer, whatever the server says; and how long one is known to be in trouble."""

_in_trouble: dict[str, float] = {}
"""By server, when it was last given up."""


async def wait(seconds: float) -> None:
    """Let others of the loop go on."""
    from asyncio import sleep  # it takes 20 ms to import, and few programs ask a server

    await sleep(seconds)


wait_here = time.sleep
"""What tests put something else for, as for `wait`."""


async def session_that_asks_again(**options: Any) -> Any:
    """The session of fsspec's HTTP file system, which takes this function as `get_client`."""
    return _Session(await needed("fsspec.implementations.http", "remote").get_client(**options))


class _Session:
    """What is asked without changing anything is asked again; all else is aiohttp's."""

    def __init__(self, session: Any) -> None:
        self._session = session
        # Nobody closes sessions that zarr has read by, of which aiohttp would warn as soon as they go.
        weakref.finalize(self, _close, session.connector).atexit = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def get(self, url: Any, **options: Any) -> _Answer:
        """Ask for something."""
        return _Answer(self._session, "get", url, options)

    def head(self, url: Any, **options: Any) -> _Answer:
        """Ask what would be said of it."""
        return _Answer(self._session, "head", url, options)


def _close(connector: Any) -> None:
    if connector is not None and not connector.closed:
        connector._close()


class _Answer:
    """A question to a server, and the response to it, as soon as somebody awaits or enters it."""

    def __init__(self, session: Any, method: str, url: Any, options: dict[str, Any]) -> None:
        self._ask = getattr(session, method)
        self._url, self._options = url, options
        self._pauses = iter(_PAUSES_S)
        self._server = urlsplit(str(url)).netloc
        since_s = time.monotonic() - _in_trouble.get(self._server, -_MOST_S)
        self._left_s = 0.0 if since_s < _MOST_S else _MOST_S
        self._response: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        if self._response is None:
            self._response = await self._asked()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._response.__aexit__(*error)

    async def read(self) -> Any:
        """All bytes; asked for again where the connection is dropped before they have come."""
        dropped = _dropped()
        while True:
            try:
                return await self._response.read()
            except dropped:
                if not await self._paused():
                    raise
                before, self._response = self._response.status, await self._asked()
                if self._response.status != before:  # something else is there by now
                    self._response.raise_for_status()
                    raise

    async def _asked(self) -> Any:
        dropped, unreachable = _dropped(), needed("aiohttp", "remote").ClientConnectorError
        while True:
            said_s = 0.0
            try:
                response = await self._ask(self._url, **self._options)
            except dropped as error:
                if isinstance(error, unreachable) or not await self._paused():
                    raise
                continue
            if response.status in BUSY:
                said_s = _seconds(response.headers.get("Retry-After", ""))
            if response.status not in BUSY or not await self._paused(said_s):
                return response
            response.release()

    async def _paused(self, said_s: float = 0.0) -> bool:
        """Whether there has been a pause, of at least so long if that is no more than is left."""
        step_s = next(self._pauses, 0.0)
        pause_s = min(max(step_s, said_s), self._left_s)
        if not step_s or not pause_s:
            _in_trouble[self._server] = time.monotonic()
            return False
        self._left_s -= pause_s
        await wait(pause_s)
        return True


def repeated(call: Callable[[], _T]) -> _T:
    """What a call gives that reads a server's bytes as they come; called again where the connection is
    dropped."""
    dropped = _dropped()
    for pause_s in _PAUSES_S:
        try:
            return call()
        except dropped:
            wait_here(pause_s)
    return call()


def waited_s(timeout: Any) -> float:
    """How long a server has to answer."""
    said = getattr(timeout, "sock_read", None) or getattr(timeout, "total", None) or timeout
    return float(said) if isinstance(said, int | float) else config.timeout_s


def _dropped() -> tuple[type[Exception], ...]:
    """What aiohttp raises where a connection is no longer there."""
    aiohttp = needed("aiohttp", "remote")
    return aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError


def _seconds(said: str) -> float:
    """What a server says in `Retry-After`: seconds, or a date."""
    if said.strip().isdigit():
        return float(said)
    from email.utils import parsedate_to_datetime  # few servers say it so

    try:
        return max(parsedate_to_datetime(said).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError):
        return 0.0
