"""The handle on the process that compiles: see `child` for what runs in it.

It is started for the first kernel, and ended when there has been none for a while, or very many; when this
process ends, in whatever way, so does it; what it was asked for and has not made is left to an heir. Either
inherits no files and no settings of Python's or numba's, and belongs to no terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spartan_ng.errors import OptionError
from spartan_ng.kernels.compiled import child
from spartan_ng.system.processes import start_alone

if TYPE_CHECKING:
    import subprocess

MOST_DEATHS = 3
"""How often in a row the process may die before no other is started."""
MOST_KERNELS = 500
"""How many kernels a process compiles: the compiler keeps a third of a megabyte of each, and gives it back to
nobody. Another one takes as long to start as some ten kernels to compile."""
_KEPT = frozenset({"PYTHONHOME", "PYTHONPLATLIBDIR"})
"""Settings of Python's without which an interpreter may not find its library."""


class CompileError(Exception):
    """A kernel that could not be compiled, in the compiler's words."""


class CompilerProcess:
    """A process that is started when it is needed; one thread uses it, another may end it for good."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._in_use = threading.Lock()
        self._deaths = 0
        self._compiled = 0
        self._ended = False

    def compile(self, name: str, source: str, meanwhile: Callable[[], object] = bool) -> bytes:
        """An object file whose function `name` is the kernel of the source; `CompileError` says why not.

        `meanwhile` is done as soon as the process has its work.
        """
        with self._in_use:
            process = self._running()
            try:
                answer = _answer(process, f"{name}\n{source}".encode(), meanwhile)
            except BaseException:  # its answer is not for the next one who asks
                self._clear_away()
                raise
            if answer is None:
                self._clear_away()
                self._deaths += 1
                raise CompileError(f"the compiler's process {_end(process.returncode)}")
            self._compiled += 1
            if self._compiled >= MOST_KERNELS:
                self._clear_away()
        self._deaths = 0
        if answer[:1] == child.FAILURE:
            raise CompileError(answer[1:].decode())
        return answer[1:]

    @property
    def has_compiled(self) -> bool:
        """Whether the process is there, and has all that it needs."""
        return self._process is not None and self._compiled > 0

    @property
    def is_there(self) -> bool:
        """Whether the process has been started, and has not been ended."""
        return self._process is not None

    def rest(self) -> None:
        """End the process until there is more to do."""
        with self._in_use:
            self._clear_away()

    def stop(self) -> None:
        """End the process for good, whatever it is doing; to be called by any thread."""
        self._ended = True
        process = self._process
        if process is not None:
            process.kill()
        self.rest()

    def abandon(self) -> None:
        """After a fork: leave the process to the parent, and keep nothing of it open."""
        if self._process is not None:
            _close(self._process)
            self._process.returncode = 0  # not ours to wait for

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self._clear_away()
        if self._process is None:
            if self._deaths >= MOST_DEATHS:
                raise CompileError(f"the compiler's process died {self._deaths} times in a row")
            self._process, self._compiled = _started(), 0
        if self._ended:  # `stop` may have come too early to see the process
            self._process.kill()
        return self._process

    def _clear_away(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            _close(process)


def _answer(
    process: subprocess.Popen[bytes], request: bytes, meanwhile: Callable[[], object]
) -> bytes | None:
    """What the process says to a request; None where it has ended."""
    assert process.stdin is not None, "a pipe"
    assert process.stdout is not None, "a pipe"
    try:
        child.write_message(process.stdin.fileno(), request)
        meanwhile()
        return child.read_message(process.stdout.fileno())
    except BrokenPipeError:
        return None


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _started() -> subprocess.Popen[bytes]:
    """A new process of the interpreter's."""
    import subprocess  # where kernels lie on disk, nobody needs it

    try:
        return subprocess.Popen(
            _command(""),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=Path(child.__file__).parent,
            env=_settings(),
            # Ctrl-C in a terminal is for the program, and not for its compiler.
            process_group=0,
        )
    except OSError as error:
        raise CompileError(f"the compiler's process did not start: {error}") from error


def start_heir(folder: Path) -> None:
    """Start a process that outlives this one and compiles what lies in a folder; CompileError or OSError
    where there can be none."""
    try:
        start_alone(_command(str(folder)), _settings())
    except OptionError as error:
        raise CompileError(str(error)) from error


def _command(folder: str) -> list[str]:
    """What runs `child`."""
    program = Path(sys.executable or "")
    if getattr(sys, "frozen", False) or "py" not in program.name.lower():
        raise CompileError("the compiler needs a process of its own, and there is no interpreter to start")
    # It runs in another folder.
    paths = [os.path.abspath(p) for p in sys.path if p]
    # -P: beside `child.py` lies a `select.py`, which is not the standard library's.
    return [str(program), "-P", child.__file__, folder, *paths]


def _settings() -> dict[str, str]:
    """The environment without what would change how Python or numba works."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA_")) or k in _KEPT}


def _end(returncode: int) -> str:
    """How a process ended, in words."""
    if returncode >= 0:
        return f"ended with status {returncode}"
    return f"was killed by {signal.Signals(-returncode).name}"
