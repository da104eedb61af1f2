"""Workers by SLURM: a controller, and two nodes that are this machine under two names."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from spartan_ng.launchers.slurm import _cpus
from tests.launchers.conftest import ARGUMENTS, COMMAND, Place
from tests.waiting import until

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "salloc", "srun", "scontrol")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
needs_slurm = pytest.mark.skipif(
    os.geteuid() != 0 or any(shutil.which(name, path=PATH) is None for name in DAEMONS),
    reason="SLURM is not installed, or not root's to start",
)
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SchedulerParameters=sched_interval=1
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus}
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus}
PartitionName=main Nodes=one,two Default=YES State=UP
"""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [server.getsockname()[1] for server in servers]


@pytest.fixture(scope="module")
def slurm() -> Iterator[str]:
    """The configuration of a running SLURM with two nodes."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    for name in ("state", "spool-one", "spool-two"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    folder.chmod(0o755)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=socket.gethostname(), ports=_free_ports(3), folder=folder, cpus=os.cpu_count()
        )
    )
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(configuration)}
    files = (f"--{name}-file={folder}/{name}" for name in ("key", "pid", "log", "seed"))
    munged = ["munged", "-F", "--force", f"--socket={folder}/munge.socket", *files]
    commands = [munged, ["slurmctld", "-D"], ["slurmd", "-D", "-N", "one"], ["slurmd", "-D", "-N", "two"]]
    running: list[subprocess.Popen[bytes]] = []

    def begun(ready: Callable[[], object]) -> None:
        until(lambda: ready() or any(process.poll() is not None for process in running))
        assert ready(), (folder / "daemons.log").read_text()

    with open(folder / "daemons.log", "wb") as log:
        try:
            for command in commands:
                running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
                begun((folder / "munge.socket").exists)
            begun(lambda: _idle(environment) == 2)
            yield str(configuration)
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()
            shutil.rmtree(folder)


def _idle(environment: dict[str, str]) -> int:
    nodes = ["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"]
    done = subprocess.run(nodes, capture_output=True, text=True, env=environment, check=False)
    return len(done.stdout.split())


@pytest.mark.slow
@needs_slurm
def test_a_script_is_queued_and_runs_on_a_worker_a_node(slurm, place: Place):
    place.environment["SLURM_CONF"] = slurm
    said = place.folder / "said"
    queue = ("-N", "2", "--wait", "-o", f"output={said}", "-o", "exclusive")
    done = place.call(*COMMAND, "slurm", *queue, place.script(), *ARGUMENTS)
    assert done.returncode == 7, done.stderr + said.read_text()
    assert done.stdout.startswith("job ")
    place.check(said.read_text(), 2)


@pytest.mark.slow
@needs_slurm
def test_a_script_runs_on_the_nodes_of_an_allocation(slurm, place: Place):
    place.environment["SLURM_CONF"] = slurm
    command = [*COMMAND, "slurm", "-N", "1", "-n", "2", place.script(), *ARGUMENTS]
    done = place.call("salloc", "--quiet", "-N", "2", "--exclusive", *command)
    assert done.returncode == 7, done.stderr
    place.check(done.stdout, 2)
    assert f"threads {max(1, (os.cpu_count() or 1) // 2)}\n" in done.stdout


@pytest.mark.slow
@needs_slurm
def test_what_slurm_refuses_is_told(slurm, place: Place):
    place.environment["SLURM_CONF"] = slurm
    done = place.call(*COMMAND, "slurm", "-o", "partition=none", place.script())
    assert done.returncode == 1
    assert "invalid partition" in done.stderr


@pytest.mark.slow
def test_where_there_is_no_slurm_that_is_told(place: Place):
    place.environment["PATH"] = ""
    done = place.call(*COMMAND, "slurm", place.script())
    assert done.returncode == 1
    assert "SLURM is not here" in done.stderr


@pytest.mark.parametrize(("text", "cpus"), [("2", [2]), ("16(x3),8", [16, 8]), ("4,12(x10)", [4, 12])])
def test_processors_of_nodes_are_read(text, cpus):
    assert _cpus(text) == cpus
