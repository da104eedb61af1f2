"""A script that says where it ran and what it found there, and a folder of its own for all who take part."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.conftest import alive
from tests.waiting import until

COMMAND = [sys.executable, "-m", "spartan_ng.cli"]
SCRIPT = """
import os, sys
import spartan_ng as np
from spartan_ng import session
import beside

secret = open(os.environ["SPARTAN_NG_KEYS"] + "/worker.key_secret").read().split('"')[-2]
backend = session.current().backend
made = np.from_function(beside.process, (12,), int)
where = {int(p) for p in np.asarray(np.concatenate([made, made]))}
members = backend.status().members.members
print("workers", backend.workers, "arguments", sys.argv[1:])
print("elsewhere", where <= {int(m.label.split()[1]) for m in members}, os.getpid() not in where)
print("reached", *{m.address.rpartition(":")[0] for m in members})
print("threads", *{m.threads for m in members})
workers = [m.label.split()[1] for m in members]
nannies = [open(f"/proc/{p}/stat").read().rpartition(")")[2].split()[1] for p in workers]
told = b"".join(
    open(f"/proc/{p}/{kind}", "rb").read() for p in workers + nannies for kind in ("cmdline", "environ")
)
print("secret", secret.encode() in told)
print("processes", os.getppid(), *workers, *nannies, flush=True)
{last}
"""
BESIDE = """
import os, numpy

def process(box):
    return numpy.full([hi - lo for lo, hi in box], os.getpid())
"""


@dataclass
class Place:
    """Where a script is, and where sockets and keys are while it runs."""

    folder: Path
    sockets: Path
    environment: dict[str, str]

    def script(self, last: str = "sys.exit(7)") -> str:
        """The script's path; `last` is its last line."""
        (self.folder / "beside.py").write_text(BESIDE)
        script = self.folder / "script.py"
        script.write_text(SCRIPT.replace("{last}", last))
        return str(script)

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command, in this environment."""
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, check=False)

    def check(self, said: str, workers: int) -> None:
        """The script's answers, and that nothing is left of its cluster."""
        assert f"workers {workers} arguments ['--epochs', '10', '-n', '3']" in said
        assert "elsewhere True True" in said
        assert "reached tcp://127.0.0.1\n" in said
        assert "secret False" in said
        self.is_over(said)

    def is_over(self, said: str, left: int = 0) -> None:
        """Wait until no process is left, and so many folders of keys."""
        found = re.search(r"^processes (.*)$", said, re.MULTILINE)
        assert found is not None, said
        processes = [int(process) for process in found[1].split()]
        until(lambda: not any(map(alive, processes)))
        until(lambda: len(os.listdir(self.sockets)) == left)


ARGUMENTS = ("--epochs", "10", "-n", "3")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder whose sockets have short names, as the kernel wants them."""
    sockets = Path(tempfile.mkdtemp(prefix="s-", dir="/tmp"))
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith("SLURM_")},
        "XDG_RUNTIME_DIR": str(sockets),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    yield Place(tmp_path, sockets, environment)
    shutil.rmtree(sockets)
