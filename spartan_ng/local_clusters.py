"""A cluster of this machine's that a program or a notebook starts, changes and ends: `spartan_ng.cluster`."""

from __future__ import annotations

import operator
from types import TracebackType
from typing import Any, Self

from spartan_ng import session
from spartan_ng.backends import forked
from spartan_ng.backends.adapting import Adapting, Bounds
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.errors import OptionError
from spartan_ng.system import machine


class Cluster:
    """Worker processes on this machine that programs run on, until it is closed; a context manager, too.

    Parameters
    ----------
    n : number of workers
    threads : threads of each worker; by default the cores are shared out
    memory : memory budget of each worker in bytes, None for no limit

    Arrays live on: what only the workers have comes to this process when they go.
    """

    def __init__(self, n: int, threads: int | None = None, memory: int | None = None) -> None:
        self._adapting: Adapting | None = None
        n = _counted(n)
        cores = machine.cores()
        self._processes = LocalCluster(n, threads or max(1, cores // max(n, 1)), memory)
        self._processes.start()
        try:
            self._backend: ClusterBackend | None = self._processes.connect()
        except BaseException:
            self._processes.stop()
            raise
        session.move_to(self._backend)
        forked.sever_in_forks(self)

    def sever(self) -> None:
        """In a fork it is closed: its workers are the parent's."""
        self._backend = self._adapting = None

    @property
    def address(self) -> str:
        """The master's address, for `connect` of other programs of this user."""
        return self._processes.address

    @property
    def workers(self) -> int:
        """How many workers there are; none when it is closed."""
        return self._processes.n if self._backend is not None else 0

    def scale(self, n: int) -> None:
        """Have `n` workers. Where some go, arrays that lie on workers come to this process before. It does
        not adapt any more."""
        backend = self._open()
        n = _counted(n)
        if n < 1:
            raise OptionError(f"a cluster needs at least one worker, not {n}")
        self._stop_adapting()
        if n < self._processes.n:
            backend.bring_home()
        self._processes.scale(n)
        backend.wait_for_workers(n, self._processes.timeout_s)

    def adapt(self, least: int, most: int, busy_s: float = 2.0, idle_s: float = 60.0) -> None:
        """Change the number of workers by itself from now on: twice as many where jobs have run for `busy_s`
        without a pause, up to `most`, which the next job uses; `least` where none has run for `idle_s`.

        Raises
        ------
        OptionError : the bounds are none
        """
        backend = self._open()
        if not 1 <= least <= most:
            raise OptionError(f"adapt: from {least} to {most} workers is no range")
        self._stop_adapting()
        self._adapting = Adapting(Bounds(least, most, busy_s, idle_s), self._processes, backend)

    def _stop_adapting(self) -> None:
        if self._adapting is not None:
            self._adapting.stop()
            self._adapting = None

    def close(self) -> None:
        """End the workers; programs run in this process again, with all arrays. May be called again."""
        if self._backend is None:
            return
        self._stop_adapting()
        backend, self._backend = self._backend, None
        try:
            backend.bring_home()
        finally:
            if session.current().backend is backend:
                session.embed()
            backend.close()
            self._processes.stop()

    def _open(self) -> ClusterBackend:
        if self._backend is None:
            raise OptionError("the cluster is closed")
        return self._backend

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._backend is None:
            return "<Cluster: closed>"
        return f"<Cluster: {self.workers} workers on this machine, master at {self.address}>"


def _counted(n: Any) -> int:
    """A number of workers, which is a whole one."""
    try:
        return int(operator.index(n))
    except TypeError:
        raise OptionError(f"a cluster has a whole number of workers, not {n!r}") from None
