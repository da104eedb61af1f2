"""How this process ends with others, how many descriptors it may have, and what it may do to others."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from spartan_ng.errors import OptionError
from spartan_ng.system import library
from spartan_ng.system.library import INT, LONG

_resource = library.module("resource")
_prctl = library.function("prctl", [INT, LONG])
_PR_SET_PDEATHSIG = 1
_MOST_DESCRIPTORS = 1 << 10
"""Taken for how many this process may have where the system does not say."""


def has_ended(process: int) -> bool:
    """Whether there is no process of that number, where it has been seen by its number here (on Linux)."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:  # somebody else's
        return False
    return False


def needs_linux(what: str) -> None:
    """OptionError where processes cannot be had as clusters need them."""
    if not hasattr(os, "pidfd_open"):
        raise OptionError(
            f"{what} needs Linux: here programs run in their own process, or connect to clusters elsewhere"
        )


def after_fork(function: Callable[[], None]) -> None:
    """Call a function in each fork of this process, before anything else there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def before_fork(function: Callable[[], None]) -> None:
    """Call a function before each fork of this process."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=function)


def end_with_parent() -> None:
    """Ask the kernel to terminate this process when its parent dies, where it does such things."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def give_way(niceness: int) -> None:
    """Let other processes go first."""
    if hasattr(os, "nice"):
        os.nice(niceness)


def give_way_here(niceness: int) -> None:
    """Let other threads go first, where each has a priority of its own; those that it starts inherit it."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.nice(niceness)


def take_at_most(cpu_s: int, wall_s: int) -> None:
    """End this process once it has taken so many seconds of a processor, or so many have gone by, where the
    system counts them."""
    if _resource is not None:
        _resource.setrlimit(_resource.RLIMIT_CPU, (cpu_s, cpu_s))
    if hasattr(signal, "alarm"):
        signal.alarm(wall_s)


def run_instead(command: list[str], environment: Mapping[str, str]) -> NoReturn:
    """Have this process be another program's. Where that one would be a stranger, for whose end a shell does
    not wait, it is a child, and its exit code this one's."""
    if os.name == "posix":
        os.execve(command[0], command, environment)
    import subprocess  # takes longer than all of this module, which every program imports

    sys.exit(subprocess.run(command, env=environment, check=False).returncode)


def start_alone(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    """Start a process that outlives this one, and whatever this was started from; it is told, and tells,
    nothing. Without an environment it has this process's."""
    needs_linux("a process that outlives its program")
    nowhere = [(os.POSIX_SPAWN_OPEN, n, os.devnull, os.O_RDWR, 0) for n in range(3)]
    given = os.environ if environment is None else environment
    os.posix_spawn(sys.executable, command, given, file_actions=nowhere, setsid=True)


def kill(process: int) -> None:
    """End a process of this machine, whatever it does."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)


def stands_still(process: int) -> bool:
    """Whether a process has been stopped by a signal; nobody can tell where there is no `/proc`."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
    return False


def be_called(name: str) -> None:
    """Have `ps` and `top` show this process under a name."""
    with suppress(OSError):
        Path("/proc/self/comm").write_text(name)


def most_descriptors() -> int:
    """How many this process may have open."""
    return _MOST_DESCRIPTORS if _resource is None else int(_resource.getrlimit(_resource.RLIMIT_NOFILE)[0])


def raise_descriptors() -> None:
    """Let this process have as many open as the system allows."""
    if _resource is not None:
        _, hard = _resource.getrlimit(_resource.RLIMIT_NOFILE)
        _resource.setrlimit(_resource.RLIMIT_NOFILE, (hard, hard))


def never_wait_for(descriptor: int) -> None:
    """Have reads of a pipe raise BlockingIOError where there is nothing to read, if pipes can."""
    if hasattr(os, "set_blocking"):
        os.set_blocking(descriptor, False)


def has_terminal() -> bool:
    """Whether a terminal sends its Ctrl-C to this process, and so to its children, too."""
    if not hasattr(os, "tcgetpgrp"):
        return False
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
