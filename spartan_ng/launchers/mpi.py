"""Workers as the processes that mpirun has started: rank 0 is master and program, the others are workers.

MPI only makes them known to each other; then it has been finalized, and what is sent goes as on any cluster.
Processes of MPICH's kind (also Intel's and MVAPICH) have a pipe to their manager, over which MPI libraries
themselves find each other: its words are few (PMI-1, "PMI: A Scalable Parallel Process-Management Interface
for Extreme-Scale Systems", Balaji et al. 2010), so that no MPI library is needed. Others take mpi4py.
"""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from spartan_ng.errors import ConnectionFailed
from spartan_ng.launchers.clusters import LaunchedProgram, Watch, run_on_cluster
from spartan_ng.launchers.orders import Order, attend, take
from spartan_ng.wire.access import is_loopback
from spartan_ng.wire.hosts import interface_towards

_CHUNK = 512
"""Characters of a value; managers take 1,024."""
_MANAGERS = ("PMI_", "PMIX_", "OMPI_", "MPI_LOCAL")
"""How variables begin that make a process one of mpirun's."""


class Meeting(Protocol):
    """Where the processes of one mpirun find each other."""

    rank: int
    size: int

    def gather(self, text: str) -> list[str]:
        """What all ranks have said, by rank; on rank 0 alone it is complete."""
        ...

    def share(self, text: str) -> str:
        """What rank 0 says, on all ranks; then the meeting is over."""
        ...


def run(program: LaunchedProgram, address: str | None) -> int:
    """The script's exit code on rank 0, a worker's on others. Raises ConnectionFailed."""
    meeting = _meeting()
    if meeting.size < 2:
        raise ConnectionFailed("mpirun has started one process; the program is one, and each worker one more")
    hosts = meeting.gather(socket.gethostname())
    if meeting.rank:
        return attend(take(meeting.share("").encode()))
    for name in [n for n in os.environ if n.startswith(_MANAGERS)]:
        del os.environ[name]  # neither the script nor the master is one of mpirun's processes
    # Rank 0 is no worker, and takes no share.
    shared = max(hosts.count(host) for host in hosts[1:])

    @contextmanager
    def start(order: Order) -> Iterator[Watch]:
        meeting.share(order.line().decode())
        yield lambda: None  # mpirun ends all when one ends badly

    wishes = type(program.wishes)(program.wishes.threads, shared, program.wishes.memory)
    here = address or _interface_towards(hosts[1:])
    return run_on_cluster(
        LaunchedProgram(program.script, wishes, program.timeout_s), here, meeting.size - 1, start
    )


def _interface_towards(hosts: list[str]) -> str:
    if set(hosts) == {socket.gethostname()}:
        return "127.0.0.1"
    seen = (interface_towards(host) for host in hosts)
    return next((here for here in seen if not is_loopback(f"tcp://{here}")), "127.0.0.1")


def _meeting() -> Meeting:
    if "PMI_FD" in os.environ:
        return ManagedMeeting(int(os.environ["PMI_FD"]))
    try:
        return LibraryMeeting()
    except (ImportError, RuntimeError) as error:  # no package, or no library that it could load
        raise ConnectionFailed(
            "no mpirun of MPICH's kind has started this process; another needs mpi4py: "
            f"pip install 'spartan-ng[mpi]' ({error})"
        ) from error


class ManagedMeeting:
    """By the process manager's pipe."""

    def __init__(self, descriptor: int) -> None:
        self.rank = int(os.environ["PMI_RANK"])
        self.size = int(os.environ["PMI_SIZE"])
        self._pipe = socket.socket(fileno=descriptor)
        self._answers = self._pipe.makefile("r", encoding="ascii")
        self._ask("init pmi_version=1 pmi_subversion=1")
        self._space = self._ask("get_my_kvsname")["kvsname"]

    def gather(self, text: str) -> list[str]:
        """See `Meeting`."""
        self._put(f"said-{self.rank}", text)
        self._ask("barrier_in")
        return [self._get(f"said-{rank}") for rank in range(self.size)] if self.rank == 0 else [text]

    def share(self, text: str) -> str:
        """See `Meeting`."""
        if self.rank == 0:
            self._put("shared", text)
        self._ask("barrier_in")
        told = text if self.rank == 0 else self._get("shared")
        self._ask("finalize")
        self._pipe.close()
        return told

    def _put(self, key: str, text: str) -> None:
        value = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")  # values have no spaces
        chunks = [value[i : i + _CHUNK] for i in range(0, len(value), _CHUNK)]
        for i, chunk in enumerate([str(len(chunks)), *chunks]):
            self._ask(f"put kvsname={self._space} key=spartan-{key}-{i} value={chunk}")

    def _get(self, key: str) -> str:
        def chunk(i: int) -> str:
            return self._ask(f"get kvsname={self._space} key=spartan-{key}-{i}")["value"]

        value = "".join(chunk(i + 1) for i in range(int(chunk(0))))
        return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode()

    def _ask(self, question: str) -> dict[str, str]:
        """The manager's answer, by its fields' names."""
        self._pipe.sendall(f"cmd={question}\n".encode())
        answer = self._answers.readline()
        fields = dict(word.partition("=")[::2] for word in answer.split())
        if not answer or fields.get("rc", "0") != "0":
            raise ConnectionFailed(
                f"mpirun does not answer {question.split(maxsplit=1)[0]}: {answer.strip() or 'gone'}"
            )
        return fields


class LibraryMeeting:
    """By an MPI library, that is finalized afterwards."""

    def __init__(self) -> None:
        import mpi4py

        # mpi4py would initialize MPI when it is imported, and finalize it at the end of the process.
        mpi4py.rc.initialize = False
        from mpi4py import MPI

        MPI.Init()
        self._mpi = MPI
        self._world = MPI.COMM_WORLD
        self.rank = int(self._world.Get_rank())
        self.size = int(self._world.Get_size())

    def gather(self, text: str) -> list[str]:
        """See `Meeting`."""
        return list(self._world.gather(text) or [text])

    def share(self, text: str) -> str:
        """See `Meeting`."""
        told = str(self._world.bcast(text))
        self._mpi.Finalize()
        return told
