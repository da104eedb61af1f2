"""The memory that this process may use: the machine's, or what its control group leaves of it; and the disk,
for what memory has no room for."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache

from spartan_ng.config import config
from spartan_ng.system.machine import group_limits, machine_bytes, process_limits

SHARES = (2, 3)
"""Arrays may take two thirds of it; the rest is for the program, its libraries and the pages of files."""
_COPIES = 4


def budget_bytes() -> int:
    """What arrays may take: `config.memory_bytes`, or two thirds of what this process has."""
    if config.memory_bytes is not None:
        return config.memory_bytes
    part, whole = SHARES
    return available_bytes() * part // whole


def copied_bytes(budget: int | None = None) -> int:
    """What an array may take, of this process's budget or another, that is copied, and copied again, before
    anything is made of it."""
    return (budget_bytes() if budget is None else budget) // _COPIES


def disk_folder() -> str:
    """Where arrays go that do not fit: `config.disk_folder`, or the system's folder for temporary files."""
    return config.disk_folder or tempfile.gettempdir()


def free_disk_bytes() -> int:
    """What the disk of that folder has room for."""
    return shutil.disk_usage(disk_folder()).free


@cache
def available_bytes() -> int:
    """Memory of the machine, or what control groups or the process's own limits leave of it."""
    return min([machine_bytes(), *group_limits(), *process_limits()])
