"""What earlier starts of this program came to: steps of NumPy's, or a plan, and to which.

Such a program comes to the session again, so that it need not find out how much it has to do before it begins
to import that; one that came to steps alone has what runs these imported with the package. The record is a
file of its own beside the kernels, which is asked for in the time of a call; it says nothing of the package's
version, as whatever needed a plan needs another one.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from spartan_ng.system.sealed import put_sealed, read_sealed

CACHE_VARIABLE = "SPARTAN_NG_CACHE_DIR"
"""Environment variable with the directory of compiled kernels, and of what lies beside them."""
PROGRAMS = 256
"""Programs that are known to have come to plans."""
KEPT = "spartan_ng_"
"""What the names of all that is kept begin with."""

_PREFIX = f"{KEPT}program_"
_DIGEST_BYTES = 32
_NAME_DIGITS = 16


def kept_folder() -> Path:
    """The folder for all that later processes find. Who reads or writes there finds out whether it is there,
    and ours."""
    root = os.environ.get(CACHE_VARIABLE)
    return Path(root) if root else Path.home() / ".cache" / "spartan_ng" / "kernels"


def came_to_plans() -> bool:
    """Whether an earlier start of this program came to any."""
    return bool(_recorded_bytes())


def came_to_steps() -> bool:
    """Whether an earlier start of this program had NumPy compute any, or came to plans."""
    return _recorded_bytes() is not None


def _recorded_bytes() -> int | None:
    try:
        return _record().stat().st_size
    except (OSError, RuntimeError):  # there is no record, no folder, nor a home for it
        return None


def earlier_plans() -> list[str]:
    """The digests of the plans that the last start came to, in their order."""
    content = None
    if came_to_plans():  # a record of steps alone is empty, and stays
        with suppress(OSError, RuntimeError):
            content = read_sealed(_record())
    found = content or b""
    return [found[i : i + _DIGEST_BYTES].hex() for i in range(0, len(found), _DIGEST_BYTES)]


def note_plans(digests: Sequence[str]) -> None:
    """Leave word of the plans that this process has come to."""
    if digests == earlier_plans():
        return
    record = _record()
    put_sealed(record, b"".join(map(bytes.fromhex, digests)))
    keep_newest(record.parent, _PREFIX)


def note_steps() -> None:
    """Leave word that NumPy has computed steps of this program."""
    with suppress(OSError, RuntimeError):
        record = _record()
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        record.touch()
        keep_newest(record.parent, _PREFIX)


def keep_newest(folder: Path, prefix: str) -> None:
    """Remove what is of programs beyond `PROGRAMS`, the oldest first: the files whose names begin so."""
    known = [(file.stat().st_mtime, file) for file in folder.glob(f"{prefix}*")]
    for _, file in sorted(known)[:-PROGRAMS]:
        with suppress(OSError):  # others may be at it
            file.unlink()


def program_name() -> str:
    """What files are called for that are of what this process has been asked to run."""
    digest = hashlib.sha256("\0".join(sys.orig_argv).encode(errors="surrogateescape")).hexdigest()
    return digest[:_NAME_DIGITS]


def _record() -> Path:
    return kept_folder() / f"{_PREFIX}{program_name()}"
