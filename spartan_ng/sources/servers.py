"""How long HTTP servers of files are waited for, and what is said of those that do not answer.

fsspec waits for minutes, asks twice, and calls a file missing whose server is. So a server is asked by each
process before it is asked for files, but if it has answered lately, and again where a file is missing. It has
`config.timeout_s` to answer, and between any two pieces of what it sends; sources keep that of the program,
also on workers, as an option of the file system.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed

_HTTP = "http://", "https://"

_answered: dict[tuple[int, str], float] = {}
"""By process and server, when it has last: within the time that one waits for it, it is not asked again."""


def patient(url: str, options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options of a file system with how long it waits, where these do not say it themselves."""
    client = (options or {}).get("client_kwargs") or {}
    if not url.startswith(_HTTP) or "timeout" in client:
        return options
    wait_s = config.timeout_s
    timeout = needed("aiohttp", "remote").ClientTimeout(total=None, sock_connect=wait_s, sock_read=wait_s)
    return {**(options or {}), "client_kwargs": {**client, "timeout": timeout}}


@contextmanager
def asked_again(files: Any, url: str) -> Iterator[None]:
    """SourceError where a file is missing because its server, which has answered lately, is gone."""
    try:
        yield
    except FileNotFoundError:
        check_answers(files, url, lately=False)
        raise


def check_answers(files: Any, url: str, lately: bool = True) -> None:
    """SourceError where the server of a URL cannot be reached, or says nothing; one that has answered
    `lately` need not."""
    where = urlsplit(url).netloc
    key, now_s = (os.getpid(), where), time.monotonic()  # a fork has no connection of its parent's
    # Other file systems (s3, gs) have their own tries and limits, and tell a missing file from a server.
    if not url.startswith(_HTTP) or not hasattr(files, "set_session"):
        return
    if lately and key in _answered and now_s - _answered[key] < config.timeout_s:
        return
    aiohttp = needed("aiohttp", "remote")

    async def ask() -> None:
        session = await files.set_session()
        async with session.head(files.encode_url(url), allow_redirects=False, **files.kwargs):
            pass  # whatever it says of the file

    try:
        needed("fsspec.asyn", "remote").sync(files.loop, ask)
    except TimeoutError as error:
        raise SourceError(
            f"{url}: the server at {where} has not answered within {_waited(files):g} s (np.config.timeout_s)"
        ) from error
    except aiohttp.ClientConnectorError as error:
        raise SourceError(f"{url}: the server at {where} cannot be reached: {error}") from error
    except aiohttp.ClientError:
        pass  # it is there: what it says of the file, others find
    _answered[key] = now_s


def _waited(files: Any) -> float:
    timeout = files.client_kwargs["timeout"]
    said = getattr(timeout, "sock_read", None) or getattr(timeout, "total", None) or timeout
    return float(said) if isinstance(said, int | float) else config.timeout_s
