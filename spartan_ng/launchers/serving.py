"""How the processes of a master and of a worker run, and end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

from spartan_ng.errors import SpartanError
from spartan_ng.launchers.children import LEAVE_S
from spartan_ng.system.processes import after_fork


@contextmanager
def failing(nannied: int | None) -> Iterator[None]:
    """Around what a worker cannot do without: nobody starts it again to fail again."""
    from spartan_ng.backends.nanny import say_farewell

    try:
        yield
    except SpartanError:
        if nannied is not None:
            say_farewell(nannied)
        raise
    except OSError as error:  # a name that is not known yet, or a network that is not there
        raise click.ClickException(f"the master cannot be looked for: {error}") from error


def serve(server: object, lifeline: int | None, nannied: int | None = None) -> None:
    """Run a server to its end, then leave at once: a user's function may still hold a thread."""
    from spartan_ng.backends.nanny import say_farewell
    from spartan_ng.kernels.compiled.compile import compiler
    from spartan_ng.master.server import MasterServer
    from spartan_ng.worker.server import WorkerServer, WorkerStuck

    assert isinstance(server, MasterServer | WorkerServer)

    code = 0
    is_for_good = True

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal is_for_good
        is_for_good = False  # whoever means it has told the nanny; a user's function may send signals, too
        server.stop() if isinstance(server, MasterServer) else server.leave()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    after_fork(_heed_signals)
    if lifeline is not None:
        threading.Thread(target=_follow_parent, args=(lifeline, server.stop), daemon=True).start()
    try:
        server.run()
    except WorkerStuck as error:
        click.echo(f"Error: {error}", err=True)
        code, is_for_good = 1, False
    except SpartanError as error:
        click.echo(f"Error: {error}", err=True)
        code = 1
    if nannied is not None and is_for_good:
        say_farewell(nannied)
    logging.shutdown()
    compiler.end()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _heed_signals() -> None:
    """End by signals, as processes do: one that a user's function has forked serves nobody."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _follow_parent(lifeline: int, stop: Callable[[], None]) -> None:
    """Stop when the other end of the pipe `lifeline` closes: whoever started this process is gone."""
    while os.read(lifeline, 1):
        pass
    stop()
    time.sleep(LEAVE_S)
    os._exit(1)
