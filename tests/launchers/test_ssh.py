"""Workers by ssh, through an sshd of the tests' own on loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator

import pytest

from tests.launchers.conftest import ARGUMENTS, COMMAND, Place
from tests.waiting import Gate, until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None or os.geteuid() != 0, reason="no sshd can be started here"
)
CONFIGURATION = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/me.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv {environment}
"""


@pytest.fixture
def ssh(place: Place) -> Iterator[list[str]]:
    """`spartan-ng ssh` with the options that lead to an sshd, which gives the place's environment."""
    assert SSHD is not None, "the mark says so"
    folder = place.folder
    for name in ("host", "me"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    public = (folder / "host.pub").read_text()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public}")
    given = " ".join(f"{k}={place.environment[k]}" for k in ("XDG_RUNTIME_DIR", "PYTHONPATH"))
    (folder / "sshd").write_text(CONFIGURATION.format(port=port, folder=folder, environment=given))
    os.makedirs("/run/sshd", exist_ok=True)
    with subprocess.Popen([SSHD, "-D", "-f", folder / "sshd", "-E", folder / "log"]) as server:
        until(lambda: _answers(port))
        options = [f"Port={port}", f"IdentityFile={folder}/me", f"UserKnownHostsFile={folder}/known"]
        yield [*COMMAND, "ssh", *(word for option in options for word in ("-o", option))]
        server.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_a_script_runs_on_workers_that_ssh_starts_and_that_end_with_it(ssh, place):
    me = f"{getpass.getuser()}@127.0.0.1"
    done = place.call(*ssh, "--threads", "1", "127.0.0.1", me, place.script(), *ARGUMENTS)
    assert done.returncode == 7, done.stderr
    place.check(done.stdout, 2)
    assert not done.stderr


@pytest.mark.slow
def test_workers_end_when_who_started_them_is_killed(ssh, place):
    held = place.folder / "gate"
    last = f"from tests.waiting import Gate; import pathlib; Gate(pathlib.Path({str(held)!r})).enter()"
    command = [*ssh, "127.0.0.1", place.script(last)]
    with (
        Gate(held) as gate,
        subprocess.Popen(command, env=place.environment, stdout=subprocess.PIPE, text=True) as running,
    ):
        until(lambda: gate.arrived)
        running.send_signal(signal.SIGKILL)
        assert running.stdout is not None, "it was asked for"
        said = running.stdout.read()
    place.is_over(said, left=1)  # whoever is killed tidies nothing up: keys of a master that is gone


@pytest.mark.slow
def test_what_cannot_start_is_told(ssh, place):
    done = place.call(*ssh, "--python", "/no/such/python", "127.0.0.1", place.script())
    assert done.returncode == 1
    assert "worker 0 at 127.0.0.1 ended with code 127 before it had joined" in done.stderr
    assert "/no/such/python" in done.stderr
    assert not os.listdir(place.sockets)
