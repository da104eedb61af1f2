"""Compile what programs asked for and did not live to see, after their end.

A program of a second asks for kernels, and is through before they are there; so would be its next run, and
all that come after. When a program ends, the sources that it waits for are left in the cache's folder, and a
process that outlives it is started: its heir. This compiles what lies there, keeps it and ends. There is one
for a folder at a time, at the lowest priority, and bounded in what it takes, whatever it is doing: the next
start of the program may be under way. What it leaves, later ones compile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from spartan_ng.kernels.compiled.cache import keep_code, keep_source, take_source, thin_out, waiting_sources
from spartan_ng.system.files import locked
from spartan_ng.system.processes import give_way, take_at_most

LOWEST = 19
"""How far it stands back: it gets what nobody wants."""
ENOUGH_CPU_S = 2.0
"""Seconds of a processor after which it takes no further kernel: it has made some thirty, the hottest."""
MOST_CPU_S = 60
"""Seconds of a processor after which it ends, whatever it is at."""
MOST_S = 600
"""Seconds after which it ends: what is left then waits for the next one."""
LOCK = "heir.lock"


def inherit(folder: Path, compile: Callable[[str, str], bytes]) -> None:
    """Compile the sources that wait in a folder by `compile`, of a name and a source; nothing where another
    process is at it."""
    take_at_most(MOST_CPU_S, MOST_S)
    give_way(LOWEST)
    with suppress(OSError):  # a folder that has gone
        while waiting_sources(
            folder
        ):  # once more when the lock is free: some may have come at the last moment
            with locked(str(folder / LOCK), waits=False) as is_alone:
                if not is_alone:
                    return
                for file in waiting_sources(folder):
                    _compile(file, compile)
                    if time.process_time() >= ENOUGH_CPU_S:
                        return


def _compile(file: Path, compile: Callable[[str, str], bytes]) -> None:
    found = take_source(file)
    if found is None:
        return
    name, source = found
    try:
        code = compile(name, source)
    except Exception:  # noqa: BLE001 - who wants it next will be told why
        return
    keep_code(file.parent, name, code)
    keep_source(file.parent, name, source)
    thin_out(file.parent)
