"""The memory that this process may use: the machine's, or what its control group leaves of it; and the disk,
for what memory has no room for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from spartan_ng.config import config
from spartan_ng.system import machine_bytes

ROOT = Path("/sys/fs/cgroup")
SHARES = (2, 3)
"""Arrays may take two thirds of it; the rest is for the program, its libraries and the pages of files."""


def budget_bytes() -> int:
    """What arrays may take: `config.memory_bytes`, or two thirds of what this process has."""
    if config.memory_bytes is not None:
        return config.memory_bytes
    part, whole = SHARES
    return available_bytes() * part // whole


def disk_folder() -> str:
    """Where arrays go that do not fit: `config.disk_folder`, or the system's folder for temporary files."""
    return config.disk_folder or tempfile.gettempdir()


def free_disk_bytes() -> int:
    """What the disk of that folder has room for."""
    found = os.statvfs(disk_folder())
    return found.f_bavail * found.f_frsize


@cache
def available_bytes() -> int:
    """Memory of the machine, or of the control group if that is less."""
    try:
        groups = Path("/proc/self/cgroup").read_text()
    except OSError:
        groups = ""
    return min([machine_bytes(), *limits(ROOT, groups)])


def limits(root: Path, groups: str) -> Iterator[int]:
    """The limits of a process's control groups and of all above them, in both versions' files.

    `groups` is the text of `/proc/self/cgroup`. In a container the group's own folder is the root.
    """
    for line in groups.splitlines():
        number, controllers, name = line.split(":", 2)
        if number == "0":
            place, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            place, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = place / name.lstrip("/")
        for folder in (own, *own.parents):
            if not folder.is_relative_to(place):
                break
            try:
                text = (folder / file).read_text().strip()
            except OSError:
                continue
            if text.isdecimal():
                yield int(text)
