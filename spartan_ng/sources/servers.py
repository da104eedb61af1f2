"""How long HTTP servers of files are waited for, and what is said of those that do not answer.

fsspec waits for minutes, asks twice, and calls a file missing whose server is. So a server is asked by each
process before it is asked for files, but if it has answered lately, and again where a file is missing. It has
`config.timeout_s` to answer, and between any two pieces of what it sends; sources keep that of the program,
also on workers, as an option of the file system. So does who asks: again, where a server is busy
(`sessions`). What goes wrong for good is a SourceError that names the URL, whoever reads.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.extras import needed
from spartan_ng.garbage import collected_later
from spartan_ng.sources.sessions import BUSY, session_that_asks_again, waited_s

_HTTP = "http://", "https://"

_answered: dict[tuple[int, str], float] = {}
"""By process and server, when it has last: within the time that one waits for it, it is not asked again."""


def patient(url: str, options: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options of a file system with how long it waits, and who asks, where these do not say it themselves."""
    if not url.startswith(_HTTP):
        return options
    client = (options or {}).get("client_kwargs") or {}
    if "timeout" not in client:
        wait_s = config.timeout_s
        timeout = needed("aiohttp", "remote").ClientTimeout(total=None, sock_connect=wait_s, sock_read=wait_s)
        client = {**client, "timeout": timeout}
    return {"get_client": session_that_asks_again, **(options or {}), "client_kwargs": client}


@contextmanager
def asked_again(files: Any, url: str) -> Iterator[None]:
    """SourceError where what is asked for does not come; a file is missing only where the server says so."""
    try:
        yield
    except FileNotFoundError as error:
        check_answers(files, url, lately=False)  # it may be gone, though it has answered lately
        # File systems call a file missing that their server has not shown them.
        if url.startswith(_HTTP) and _is_of_server(error.__cause__):
            raise _unread(url, error.__cause__) from error
        raise
    except OSError as error:
        if error.errno is not None and error.filename is not None:
            raise
        raise _unread(url, error) from error
    except Exception as error:
        if url.startswith(_HTTP) and isinstance(error, needed("aiohttp", "remote").ClientError):
            raise _unread(url, error) from error
        raise


@contextmanager
def taken_by_server(url: str) -> Iterator[None]:
    """`io.UnsupportedOperation` where an HTTP server does not take what is sent to it: few do."""
    try:
        yield
    except Exception as error:
        if not url.startswith(_HTTP) or not isinstance(
            error, NotImplementedError | needed("aiohttp", "remote").ClientError
        ):
            raise
        status = getattr(error, "status", None)
        said = "" if status is None else f": {status}, {getattr(error, 'message', '')}"
        raise io.UnsupportedOperation(
            f"{url}: the server at {urlsplit(url).netloc} takes no files{said}. Write to a file here, and "
            "send it as the server wants it, or to a URL of a file system (s3://, gs://, sftp://)"
        ) from error


def _is_of_server(cause: BaseException | None) -> bool:
    """Whether a file is called missing because its server is in trouble."""
    aiohttp = needed("aiohttp", "remote")
    if isinstance(cause, aiohttp.ClientResponseError):
        return cause.status in BUSY
    return isinstance(cause, aiohttp.ClientError)


def _unread(url: str, error: BaseException | None) -> SourceError:
    return SourceError(f"{url} cannot be read: {error or type(error).__name__}")


class ServedFile(io.RawIOBase):
    """A file of fsspec's, of which a library is given all that it asks for, or told what is wrong."""

    def __init__(self, files: Any, url: str, file: Any) -> None:
        self._files, self._url, self._file = files, url, file

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def seekable(self) -> bool:
        """Whether it is."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """The place."""
        return int(self._file.tell())

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes, or all that follow; SourceError where the server gives fewer than there are."""
        at, end = self._file.tell(), getattr(self._file, "size", None)
        with asked_again(self._files, self._url):
            found = bytes(self._file.read(-1 if size is None else size))
        wanted = 0 if end is None else max(end - at, 0)
        wanted = wanted if size is None or size < 0 else min(size, wanted)
        if len(found) < wanted:
            raise SourceError(f"{self._url} gave {len(found):,} bytes for {wanted:,} from {at:,} on")
        return found

    def readall(self) -> bytes:
        """All that follows."""
        return self.read()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or what is left of it.

        h5py asks so, and holds its lock meanwhile, without which none of its objects can go: a loop that
        collected some would wait for who waits for the loop.
        """
        with collected_later():
            found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Close it for all."""
        if not self.closed:
            self._file.close()
        super().close()


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
        limit_s = waited_s(files.client_kwargs["timeout"])
        raise SourceError(
            f"{url}: the server at {where} has not answered within {limit_s:g} s (np.config.timeout_s)"
        ) from error
    except aiohttp.ClientConnectorError as error:
        raise SourceError(f"{url}: the server at {where} cannot be reached: {error}") from error
    except aiohttp.ClientError:
        pass  # it is there: what it says of the file, others find
    _answered[key] = now_s
