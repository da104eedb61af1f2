"""Processes that end with this one: a user's script, and a worker that is started again when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import FrameType

from spartan_ng.backends.nanny import Nanny
from spartan_ng.system.processes import end_with_parent, has_terminal, start_alone

LEAVE_S = 3.0
"""A server whose parent is gone ends after this long, whatever holds it up."""


def run_script(environment: Mapping[str, str], command: Sequence[str]) -> int:
    """The exit code of a command, as a shell gives it, with more in its environment. Ctrl-C is its own;
    who interrupts this process alone interrupts it."""
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        preexec_fn=end_with_parent,  # noqa: PLW1509 - threads here are the engines', and hold no locks of ours
    ) as child:
        return _wait(child)


def _wait(child: subprocess.Popen[bytes]) -> int:
    def pass_on(number: int, frame: FrameType | None) -> None:
        if not has_terminal():
            child.send_signal(number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, pass_on)
    try:
        code = child.wait()
    except BaseException:
        child.terminate()
        raise
    return code if code >= 0 else 128 - code


def start_worker(options: Sequence[str]) -> None:
    """Start a worker that outlives this process, and whatever it was started from."""
    start_alone([sys.executable, "-m", "spartan_ng.cli", "worker", *options])


def mind_worker(
    options: Sequence[str], environment: Mapping[str, str] | None = None, lifeline: int | None = None
) -> int:
    """Be the nanny of a worker; the exit code of its last process.

    It ends with this process, by SIGTERM or SIGINT to it, and when the other end of `lifeline` closes.
    """
    reading, _writing = os.pipe()
    command = [
        sys.executable,
        "-m",
        "spartan_ng.cli",
        "worker",
        *options,
        "--lifeline",
        str(reading),
        "--nannied",
    ]

    def start(farewell: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*command, str(farewell)],
            env={**os.environ, **(environment or {})},
            pass_fds=(reading, farewell),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    nanny = Nanny(start, lambda before, now: None)

    def leave(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=_end, args=(nanny,), daemon=True).start()

    def follow(lifeline: int) -> None:
        while os.read(lifeline, 1 << 16):
            pass
        _end(nanny)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    if lifeline is not None:
        threading.Thread(target=follow, args=(lifeline,), daemon=True).start()
    return nanny.wait()


def _end(nanny: Nanny) -> None:
    """Have a nanny's worker leave; a user's function may hold it up."""
    from spartan_ng.worker.server import LEAVE_S as HANDING_OVER_S

    nanny.leave()
    nanny.process.terminate()
    time.sleep(HANDING_OVER_S + LEAVE_S)
    nanny.process.kill()
