"""The page's server: a thread of its own, on one port, for those who have its link.

    /?token=...       the page; sets a cookie, and leads to itself without the token
    /state            what there is, as JSON; `?since=VERSION` gives what has changed
    /events           the same, as it changes, as server-sent events
    /plan?key=...     a plan's picture; `/plan.json?key=...` what it shows
    /metrics          for Prometheus

Whoever has not the token (in the link, the cookie, or as `Authorization: Bearer`) gets the same 401 for
whatever they send, and no word besides: see `door`. It only tells: nothing can be changed through it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from spartan_ng.config import PAGE_TOKEN_VARIABLE
from spartan_ng.errors import ConnectionFailed, OptionError
from spartan_ng.rates import Rate, Tries
from spartan_ng.web.board import Board
from spartan_ng.web.door import Entrance
from spartan_ng.web.drawing import picture

_STATIC = Path(__file__).parent / "static"
_FILES = {
    "page.js": "text/javascript",
    "page.css": "text/css",
    "charts.js": "text/javascript",
    "flames.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
    "uPlot.LICENSE": "text/plain",
}
_LEAST_TOKEN = 32
_LOOK_S = 0.5
"""How often somebody who looks is told."""
_QUIET_S = 15.0
"""How long a connection says nothing before it says that it lives."""
_SHUTDOWN_S = 1.0
_LINES = Rate(8, 0.1)
"""In the log, of what goes wrong here: whoever connects may have it go wrong again and again."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_log = logging.getLogger("spartan_ng.web")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """Serves a board at `http://host:port/`; port 0 is any free one. ConnectionFailed where it is taken."""

    def __init__(self, board: Board, host: str = "127.0.0.1", port: int = 0) -> None:
        self._board = board
        self._host, self._port = host, port
        self._token = _token()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._failed)
        self._lines = Tries(_LINES, time.monotonic())
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            raise ConnectionFailed(f"no page at {host}:{port}: {self._error}") from self._error

    @property
    def address(self) -> str:
        """Where it is, without the token."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}/"

    @property
    def token(self) -> str:
        """What lets somebody in."""
        return self._token

    @property
    def url(self) -> str:
        """The link: whoever has it sees all there is to see."""
        return f"{self.address}?token={quote(self._token, safe='')}"

    def close(self) -> None:
        """Serve no more."""
        if self._thread.is_alive():
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._stop)
            self._thread.join()

    def _stop(self) -> None:
        assert self._stopping is not None, "a loop that runs has begun"
        self._stopping.set()

    # --- on its own thread

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        app = web.Application(middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/state", self._state),
                web.get("/events", self._events),
                web.get("/plan", self._plan),
                web.get("/plan.json", self._plan_json),
                web.get("/metrics", self._metrics),
                web.get("/static/{name}", self._static),
            ]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_S, handle_signals=False)
        await runner.setup()
        assert runner.server is not None, "it has been set up"
        self._door = Entrance(self._token, lambda: self._cookie, runner.server)
        try:
            server = await self._loop.create_server(self._door, self._host, self._port)
            self._port = server.sockets[0].getsockname()[1]
        except (OSError, OverflowError, ValueError) as error:  # taken, no port, no host's name
            self._error = error
            self._ready.set()
            await runner.cleanup()
            return
        self._ready.set()
        await self._stopping.wait()
        server.close()
        self._door.close()
        await runner.cleanup()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self._lines.take(time.monotonic()):
            _log.warning("the page: %s: %s", context["message"], context.get("exception"))

    @property
    def _cookie(self) -> str:
        """Cookies of one host are shared by all its ports."""
        return f"spartan_ng_{self._port}"

    @web.middleware  # type: ignore[untyped-decorator]
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Let in who has the token, with each request."""
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (request.query.get("token", ""), request.cookies.get(self._cookie, ""), bearer)
        if not self._door.is_own(*given):  # a connection may be several users', behind a proxy
            return web.Response(status=401, headers={"Server": ""})
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update({**_HEADERS, "Server": ""})
            raise
        if not response.prepared:
            response.headers.update({**_HEADERS, "Server": ""})
        return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "token" in request.query:  # not to stand in the browser's history
            found = web.HTTPSeeOther("/")
            found.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict", path="/")
            raise found
        return web.Response(
            body=(_STATIC / "page.html").read_bytes(), content_type="text/html", charset="utf-8"
        )

    async def _static(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in _FILES:
            raise web.HTTPNotFound
        body = (_STATIC / name).read_bytes()
        return web.Response(body=body, content_type=_FILES[name], charset="utf-8")

    async def _state(self, request: web.Request) -> web.StreamResponse:
        return web.json_response(self._board.changes(_number(request)))

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_HEADERS, "Server": "", "Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionResetError):  # who looked has gone
            await self._tell(response, _number(request))
        return response

    async def _tell(self, response: web.StreamResponse, version: int) -> None:
        """Say what changes after a version, until the server stops."""
        assert self._stopping is not None, "it serves"
        quiet_s = 0.0
        while not self._stopping.is_set():
            if self._board.version != version or not version:
                found = self._board.changes(version)
                version, quiet_s = found["version"], 0.0
                await response.write(f"data: {json.dumps(found)}\n\n".encode())
            elif quiet_s >= _QUIET_S:
                quiet_s = 0.0
                await response.write(b": here\n\n")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _LOOK_S)
            quiet_s += _LOOK_S

    async def _plan_json(self, request: web.Request) -> web.StreamResponse:
        found = self._board.plan(request.query.get("key", ""))
        if found is None:
            raise web.HTTPNotFound
        return web.json_response(found)

    async def _plan(self, request: web.Request) -> web.StreamResponse:
        found = self._board.plan(request.query.get("key", ""))
        if found is None:
            raise web.HTTPNotFound
        return web.Response(text=picture(found), content_type="image/svg+xml")

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        from spartan_ng.web.metrics import CONTENT_TYPE, metrics

        return web.Response(body=metrics(self._board), headers={"Content-Type": CONTENT_TYPE})


def _token() -> str:
    """A new token, or the one that the environment sets."""
    given = os.environ.get(PAGE_TOKEN_VARIABLE)
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < _LEAST_TOKEN:
        raise OptionError(f"{PAGE_TOKEN_VARIABLE} has {len(given)} characters; {_LEAST_TOKEN} are the least")
    return given


def _number(request: web.Request) -> int:
    """The version that somebody has seen."""
    text = request.query.get("since", "0")
    if not text.isdecimal() or len(text) > 18:
        raise web.HTTPBadRequest
    return int(text)
