"""What the machine has: its processors and its memory, and what control groups leave of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from spartan_ng.system import library

UNKNOWN_BYTES = 4 * 2**30
"""Taken for the machine's memory where the system does not say."""

_GROUPS = Path("/sys/fs/cgroup")

_CPUS = Path("/proc/cpuinfo")
_FEATURES = ("flags", "Features")
_KIND = (
    *("vendor_id", "cpu family", "model", "model name", "stepping"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
    *_FEATURES,
)
"""What tells apart processors that run other machine code, as Linux calls it on x86 and ARM."""

_resource = library.module("resource")
_processor = library.function("sched_getcpu", [], is_short=True)


def processor() -> int:
    """The processor that this thread runs on; -1 where the system does not say."""
    return -1 if _processor is None else int(_processor())


def keep_off(avoided: int, threads: Sequence[int]) -> None:
    """Let threads of this process, by their native numbers, run on all processors that it may use but one.

    Nothing where there is no other, and where the system has no such thing.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    others = os.sched_getaffinity(0) - {avoided}
    for thread in threads if others else ():
        # A system may forbid it, or have ended the thread: it only helps less.
        with suppress(OSError):
            os.sched_setaffinity(thread, others)


def processors() -> tuple[int, ...]:
    """Numbers of the processors that this process may use; all of the machine's where the system knows no
    affinity."""
    affinity = getattr(os, "sched_getaffinity", None)
    return tuple(sorted(affinity(0))) if affinity is not None else tuple(range(os.cpu_count() or 1))


def processor_kind() -> str:
    """What the machine's processors are and can do, in the system's words; empty where it does not say."""
    try:
        first = _CPUS.read_text().partition("\n\n")[0]
    except OSError:
        return ""
    parts = [line.partition(":") for line in first.splitlines()]
    fields = {name.strip(): words.strip() for name, _, words in parts}
    known = [f"{name} {fields[name]}" for name in _KIND if name in fields]
    return " ".join([os.uname().machine, *known]) if any(fields.get(name) for name in _FEATURES) else ""


def cores() -> int:
    """How many processors this process may use."""
    return len(processors())


def cache_bytes() -> int:
    """The last level of the processors' cache; 0 where the system does not say."""
    return _configured("SC_LEVEL3_CACHE_SIZE")


def machine_bytes() -> int:
    """The machine's memory."""
    return _configured("SC_PAGE_SIZE") * _configured("SC_PHYS_PAGES") or UNKNOWN_BYTES


def resident_bytes() -> int:
    """Memory that this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _configured("SC_PAGE_SIZE")
    except OSError:
        return 0


def group_limits() -> Iterator[int]:
    """The limits on the memory of this process's control groups."""
    try:
        groups = Path("/proc/self/cgroup").read_text()
    except OSError:
        return iter(())
    return limits(_GROUPS, groups)


def process_limits() -> Iterator[int]:
    """The limits that this process was started with (`ulimit`): on its data, and on its addresses."""
    if _resource is None:
        return
    for kind in (_resource.RLIMIT_DATA, _resource.RLIMIT_AS):
        soft = _resource.getrlimit(kind)[0]
        if soft != _resource.RLIM_INFINITY:
            yield soft


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


def _configured(name: str) -> int:
    """A number of the system's, 0 where it has none of that name."""
    try:
        return max(os.sysconf(name), 0)
    except (AttributeError, ValueError, OSError):
        return 0
