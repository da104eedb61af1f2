"""A cluster of processes on this machine, for as long as a `with` block.

The processes serve at sockets in a folder that only this user can enter, and ask the kernel whose process it
is that connects, so that nobody else on the machine can use them. They hold the reading end of a pipe whose
other end only we have, and stop when it closes: however this process ends, they end with it.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.nanny import Nanny, Process
from spartan_ng.config import config
from spartan_ng.errors import ConnectionFailed, OptionError
from spartan_ng.system.zygote import Argument, fork
from spartan_ng.wire.access import private_folder

_QUICK_S = 1.0
"""A master that has served so long has not ended by a fault of its start; all wait for the next."""
_LEAVE_S = 25.0
"""How long a worker gets that programs take their tiles from."""
_STOP_S = 5.0
"""How long processes get to stop by themselves."""


class LocalCluster:
    """A master and `n` workers as children of this process.

    Parameters
    ----------
    n : number of workers
    threads : threads of each worker
    memory : memory budget of each worker in bytes, None for no limit
    timeout_s : how long to wait for all of them; None for as long as the option says
    restart : start the master, and workers, again whose processes end

    As a context manager it starts the cluster and gives a connected `ClusterBackend`.
    """

    def __init__(
        self,
        n: int,
        threads: int = 1,
        memory: int | None = None,
        timeout_s: float | None = None,
        restart: bool = True,
    ) -> None:
        if n < 1:
            raise OptionError(f"a cluster needs at least one worker, not {n}")
        self.n = n
        self.address = ""
        self.master: Process | None = None
        self.workers: list[Process] = []
        self._joined: list[Process] = []
        self._threads = threads
        self._memory = memory
        self.timeout_s = config.timeout_s if timeout_s is None else timeout_s
        self._heartbeat_s = config.heartbeat_s
        self._restart = restart
        self._nannies: list[Nanny] = []
        self._masters_nanny: Nanny | None = None
        self._lifeline: tuple[int, int] | None = None
        self._folder: Path | None = None
        self._backend: ClusterBackend | None = None

    def start(self) -> str:
        """Start the processes; the master's address. ConnectionFailed if they do not come up."""
        self._folder = private_folder()
        self._lifeline = os.pipe()
        try:
            self.address = self._start_master()
            for _ in range(self.n):
                self.add_worker()
        except BaseException:
            self.stop()
            raise
        return self.address

    def connect(self) -> ClusterBackend:
        """A new client of the running cluster, once all workers are there."""
        backend = ClusterBackend.connect(self.address, timeout_s=self.timeout_s, workers=0)
        try:
            self._wait_for_workers(backend)
        except BaseException:
            backend.close()
            raise
        return backend

    def _wait_for_workers(self, backend: ClusterBackend) -> None:
        """Wait until all workers that live have joined; one that gives up while it starts is an error."""
        deadline = time.monotonic() + self.timeout_s
        new = [w for w in self.workers if w not in self._joined]
        while True:
            living = [w for w in self.workers if w.poll() is None]
            ended = next((w for w in new if (w.poll() or 0) > 0), None)
            if ended is None and backend.wait_for_workers(len(living), 0.1):
                self._joined = living
                return
            if ended is not None:
                raise ConnectionFailed(
                    f"a local worker ended with code {ended.returncode} before it had joined"
                )
            if time.monotonic() > deadline:
                raise ConnectionFailed(f"{len(living)} local workers do not join within {self.timeout_s:g} s")

    def add_worker(self, threads: int | None = None, memory: int | None = None) -> Process:
        """Start one more worker, with threads and memory of its own where they are given."""
        options: list[Argument] = [
            "--master",
            self.address,
            "--threads",
            str(threads or self._threads),
        ]
        memory = memory or self._memory
        if memory is not None:
            options += ["--memory", str(memory)]
        if not self._restart:
            self.workers.append(self._spawn("worker", options))
        else:

            def start(farewell: int) -> Process:
                return self._spawn("worker", [*options, "--nannied", farewell])

            nanny = Nanny(start, self._replace)
            self._nannies.append(nanny)
            self.workers.append(nanny.process)
        return self.workers[-1]

    def scale(self, n: int) -> None:
        """Start workers, or end the last ones with their tiles, until there are `n`."""
        while len(self.workers) < n:
            self.add_worker()
        while len(self.workers) > n:
            if self._nannies:
                self._nannies.pop().leave()
            process = self.workers.pop()
            # It hands its tiles on before it ends, which takes some time.
            process.terminate()
            try:
                process.wait(_LEAVE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.n = n

    def _replace(self, before: Process, now: Process) -> None:
        self.workers[self.workers.index(before)] = now

    def stop(self) -> None:
        """Stop all processes, and wait for them; the master first, so that it mourns no worker."""
        for nanny in (self._masters_nanny, *self._nannies):
            if nanny is not None:
                nanny.leave()
        self._masters_nanny, self._nannies = None, []
        if self._backend is not None:
            self._backend.close()
            self._backend = None
        if self.master is not None and self.master.poll() is None:
            self.master.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.master.wait(_STOP_S)
        if self._lifeline is not None:
            for end in self._lifeline:
                os.close(end)
            self._lifeline = None
        processes = [p for p in (self.master, *self.workers) if p is not None]
        deadline = time.monotonic() + _STOP_S
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.master = None
        self.workers, self._joined = [], []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> ClusterBackend:
        self.start()
        try:
            self._backend = self.connect()
        except BaseException:
            self.stop()
            raise
        return self._backend

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def open(self) -> Self:
        """Start without a client; for tests that come and go."""
        self.start()
        return self

    def _start_master(self) -> str:
        def replaced(before: Process, now: Process) -> None:
            self.master = now

        at, keys = self._place()
        nanny, address = start_master(at, self._reading, self.timeout_s, keys, self._restart, replaced)
        self._masters_nanny, self.master = nanny, nanny.process
        return address

    def _place(self) -> tuple[str, Path | None]:
        """Where the master serves, and the folder of its keys."""
        return f"ipc://{self._folder}/master", None

    def _spawn(self, role: str, options: Sequence[Argument]) -> Process:
        heartbeat = ["--heartbeat", str(self._heartbeat_s)]
        return fork([role, "--lifeline", self._reading, *heartbeat, *options])

    @property
    def _reading(self) -> int:
        assert self._lifeline is not None, "start makes the lifeline"
        return self._lifeline[0]


def start_master(
    address: str,
    lifeline: int,
    timeout_s: float,
    keys: str | os.PathLike[str] | None = None,
    restart: bool = True,
    replaced: Callable[[Process, Process], None] = lambda before, now: None,
) -> tuple[Nanny, str]:
    """A master that ends when the other end of the pipe `lifeline` closes, and where it serves.

    With `restart`, its nanny starts it again there when it ends. Raises ConnectionFailed where it does not
    begin to serve in time.
    """
    options = ["--address", address, *(() if keys is None else ("--keys", os.fspath(keys)))]
    options += ["--heartbeat", str(config.heartbeat_s)]
    reading, writing = os.pipe()
    news = iter([writing])

    def start(farewell: int) -> Process:
        told = next(news, -1)
        told = told if told >= 0 else os.open(os.devnull, os.O_WRONLY)
        try:
            heard: list[Argument] = ["--lifeline", lifeline, "--announce", told, "--nannied", farewell]
            return fork(["master", *options, *heard])
        finally:
            os.close(told)

    with open(reading, "rb") as file:
        nanny = Nanny(start, replaced, _QUICK_S)
        if not restart:
            nanny.leave()
        in_time = bool(select.select([file], [], [], timeout_s)[0])
        announced = file.readline().decode().strip() if in_time else ""
    if not announced:
        nanny.leave()
        nanny.process.kill()
        nanny.wait()
        why = "ended before it served" if in_time else f"does not start within {timeout_s:g} s"
        raise ConnectionFailed(f"the master {why}")
    # The next one serves where this one does: whoever is connected finds it.
    options[1] = announced
    return nanny, announced
