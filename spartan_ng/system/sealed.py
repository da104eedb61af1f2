"""Files that processes of a user leave for later ones: put in place whole, behind a digest, and not read
where anybody else could have written them.

Processes read and write without locks: a file is there as a whole or not at all, and what cannot be read,
whoever broke it, is removed. So folders that are deleted, or thinned out, under a process do no harm.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from spartan_ng.system.ownership import why_not_own

_DIGEST_BYTES = 32


def read_sealed(path: Path) -> bytes | None:
    """What `put_sealed` has put there, and note its use; None, and no file left, where it is not there whole,
    or may be somebody else's."""
    with suppress(OSError):
        if stat.S_ISREG(os.lstat(path).st_mode) and why_not_own(path) is None:  # a device may have no end
            sealed = path.read_bytes()
            content = sealed[_DIGEST_BYTES:]
            if sealed == _sealed(content):
                # Those that were used least recently go first.
                os.utime(path)
                return content
        path.unlink()
    return None


def put_sealed(path: Path, content: bytes) -> None:
    """Write a file that is read by `read_sealed` alone; a disk that has no room for it changes nothing."""
    put_whole(path, _sealed(content))


def put_whole(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as f:
                f.write(content)
            os.replace(temporary, path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)


def _sealed(content: bytes) -> bytes:
    """What is to be read again, behind its digest: what is broken must not be used."""
    return hashlib.sha256(content).digest() + content
