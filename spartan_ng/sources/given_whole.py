"""Files of servers that send all of them, whatever part is asked for, as Python's own `http.server` does.

Such a file is copied once a process, as a stream, to a file without a name, which is mapped and read there.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import threading
from collections import OrderedDict
from functools import lru_cache
from mmap import ACCESS_READ, mmap
from os import getpid
from typing import Any

from spartan_ng.config import config
from spartan_ng.sources.sessions import repeated

_MOST = 64
"""Copies that a process keeps for those who ask again."""
_SIGNS = "size", "ETag", "Last-Modified"
"""What a server says of a file that changes when the file does."""

_lock = threading.Lock()
_copies: OrderedDict[tuple[Any, ...], bytes | mmap] = OrderedDict()


def given_whole(files: Any, path: str) -> bytes | mmap | None:
    """All bytes of a file, where its server gives no parts of it; None where it does."""
    protocols = (files.protocol,) if isinstance(files.protocol, str) else files.protocol
    if "http" not in protocols or _gives_parts(files, path):
        return None
    said = files.info(path)
    signs = tuple(said.get(sign) for sign in _SIGNS)
    with _lock:
        if signs[1:] == (None, None):  # another file may be there by now
            return repeated(lambda: _copied(files, path))
        key = getpid(), path, *signs
        if key not in _copies:
            _copies[key] = repeated(lambda: _copied(files, path))
            if len(_copies) > _MOST:
                _copies.popitem(last=False)
        return _copies[key]


@lru_cache(1 << 10)
def _gives_parts(files: Any, path: str) -> bool:
    """Whether the server gives the second byte of a file alone."""
    with files.open(path, "rb", cache_type="none") as file:
        try:
            file.seek(1)
            file.read(1)
        except ValueError:  # fsspec's word for it
            return False
        return True


def _copied(files: Any, path: str) -> bytes | mmap:
    with tempfile.TemporaryFile(dir=config.disk_folder) as copy:
        with files.open(path, "rb", block_size=0) as stream:  # a stream is not kept in memory
            shutil.copyfileobj(stream, copy, 1 << 20)
        copy.flush()
        return mmap(copy.fileno(), 0, access=ACCESS_READ) if copy.tell() else b""


class _Bytes(io.RawIOBase):
    """Bytes as a file, without a copy of them."""

    def __init__(self, found: bytes | mmap) -> None:
        self._bytes, self._at = memoryview(found), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._bytes)}[whence]
        self._at = max(begin + offset, 0)
        return self._at

    def readinto(self, buffer: Any) -> int:
        part = self._bytes[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


def as_file(found: bytes | mmap) -> io.BufferedReader:
    """A file to read what was given."""
    return io.BufferedReader(_Bytes(found))
