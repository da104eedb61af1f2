"""Whether files of source are the same, by what Python knows whether its byte code is of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def signs_of(places: Iterable[Path]) -> list[str]:
    """By what Python knows whether its byte code is of these files, or of all in these folders."""
    signs: list[str] = []
    waiting: list[str] = [str(place) for place in places]
    while waiting:
        place = waiting.pop()
        if place.endswith(".py"):
            status = os.stat(place)
            signs.append(f"{place} {status.st_size} {status.st_mtime_ns}")
        else:
            with os.scandir(place) as entries:
                waiting += sorted(e.path for e in entries if e.name.endswith(".py") or _is_room(e))
    return signs


def _is_room(entry: os.DirEntry[str]) -> bool:
    return entry.name != "__pycache__" and "." not in entry.name and entry.is_dir()
