"""A master here, workers elsewhere, one script on them, and the end of all: what every launcher does.

A launcher is a file that says how workers are started and told their order, and under which address they
reach this machine; see `ssh`, `slurm` and `mpi` beside this one. Each cluster has keys of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.backends.link import MasterLink
from spartan_ng.backends.local import start_master
from spartan_ng.backends.nanny import Process
from spartan_ng.config import KEYS_VARIABLE, MASTER_VARIABLE
from spartan_ng.errors import ConnectionFailed
from spartan_ng.launchers.children import run_script
from spartan_ng.launchers.orders import Order, Wishes
from spartan_ng.wire.access import Access, private_folder
from spartan_ng.wire.keys import Keys, bundle, keygen

_STOP_S = 10.0
"""How long processes get to stop by themselves."""
_LOOK_S = 0.2

Watch = Callable[[], str | None]
"""What has become of a worker that has ended, if one has."""
Start = Callable[[Order], AbstractContextManager[Watch]]
"""Starts workers, which are gone when the block ends."""


class LaunchedProgram(Struct, frozen=True):
    """What is to run, and what for."""

    script: Sequence[str]
    """Its path, and its arguments."""
    wishes: Wishes
    timeout_s: float
    """For the workers to join."""


def run_on_cluster(program: LaunchedProgram, host: str, workers: int, start: Start) -> int:
    """The exit code of a script that runs on a cluster which lives as long as it does.

    `start` starts so many workers, which reach this machine at `host`; the script begins when all have
    joined. Raises ConnectionFailed where one ends before, or does not join in time.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    folder = str(Path(program.script[0]).resolve().parent)
    wishes = replace(program.wishes, path=(folder, os.getcwd()))
    with (
        _master(host, program.timeout_s) as (address, keys),
        start(Order(address, bundle(keys, "worker"), wishes)) as watch,
    ):
        try:
            _wait_for(workers, address, keys, watch, program.timeout_s)
            there = {MASTER_VARIABLE: address, KEYS_VARIABLE: str(keys)}
            return run_script(there, [sys.executable, *program.script])
        finally:
            _dismiss(address, keys)


@contextmanager
def _master(host: str, timeout_s: float) -> Iterator[tuple[str, Path]]:
    """A master with keys that nobody has had before: its address, and its folder of them."""
    folder = private_folder()
    lifeline = os.pipe()
    try:
        keygen(folder)
        at = f"[{host}]" if ":" in host else host
        nanny, address = start_master(f"tcp://{at}:*", lifeline[0], timeout_s, folder)
        try:
            yield address, folder
        finally:
            nanny.leave()
            nanny.process.terminate()
            _end(nanny.process)
    finally:
        for end in lifeline:
            os.close(end)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(workers: int, address: str, keys: Path, watch: Watch, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    link = MasterLink(address, Access(Keys.load(keys, "client")), timeout_s)
    link.open()
    try:
        while not link.wait_for_workers(workers, _LOOK_S):
            ended = watch()
            if ended is not None:
                raise ConnectionFailed(f"{ended} before it had joined the master at {address}")
            if time.monotonic() > deadline:
                raise ConnectionFailed(
                    f"{len(link.members.members)} of {workers} workers have joined the master at {address} "
                    f"within {timeout_s:g} s; --address names another address of this machine"
                )
    finally:
        link.close()


def _dismiss(address: str, keys: Path) -> None:
    """Tell all workers farewell, so that nobody starts them again, and then the master."""
    with suppress(ConnectionFailed):
        link = MasterLink(address, Access(Keys.load(keys, "admin")), _STOP_S, "admin")
        link.open()
        link.shut_down()


def attendant(python: str) -> list[str]:
    """The command that is a worker by the order which it reads."""
    return [python, "-m", "spartan_ng.cli", "attend"]


def through_pipes(commands: Mapping[str, Sequence[str]]) -> Start:
    """Starts workers by commands, named for messages, that pass what they read to attendants elsewhere.

    The attendants end when their command's input closes: also when this process is killed.
    """

    @contextmanager
    def start(order: Order) -> Iterator[Watch]:
        processes: dict[str, subprocess.Popen[bytes]] = {}
        try:
            for name, command in commands.items():
                processes[name] = subprocess.Popen(
                    command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True
                )
            for process in processes.values():
                assert process.stdin is not None, "it was asked for"
                with suppress(BrokenPipeError):  # `watch` tells who has ended
                    process.stdin.write(order.line())
            yield lambda: _ended(processes)
        finally:
            for process in processes.values():
                assert process.stdin is not None, "it was asked for"
                process.stdin.close()
            for process in processes.values():
                _end(process)

    return start


def _ended(processes: Mapping[str, subprocess.Popen[bytes]]) -> str | None:
    for name, process in processes.items():
        if process.poll() is not None:
            return f"{name} ended with code {process.returncode}"
    return None


def _end(process: Process) -> None:
    """Wait for a process to end, but not for ever."""
    for press in (process.terminate, process.kill):
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            press()
    process.wait()
