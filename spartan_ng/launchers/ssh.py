"""Workers on machines that the system's ssh reaches: its configuration and keys let us in."""

from __future__ import annotations

import shlex
import subprocess
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from spartan_ng.errors import ConnectionFailed
from spartan_ng.launchers.clusters import LaunchedProgram, attendant, run_on_cluster, through_pipes
from spartan_ng.wire.hosts import interface_towards

_QUIETLY = ("-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15")
"""No terminal, no questions; a machine that has gone silent is noticed."""


def run(
    program: LaunchedProgram, hosts: Sequence[str], options: Sequence[str], python: str, address: str | None
) -> int:
    """The script's exit code, run on a worker for each of `hosts`; one that is named twice has two.

    `options` are ssh's, as `Port=2222`; `python` is the interpreter on the hosts; `address` is where they
    reach this machine, by default that of the interface which leads to the first. Raises ConnectionFailed.
    """
    asked = [word for option in options for word in ("-o", option)]
    here = address or _interface_towards(hosts[0], asked)
    times = Counter(hosts)
    # The remote shell makes place for the worker, so that it ends with the connection.
    remote = "exec " + shlex.join(attendant(python))
    commands = {
        f"worker {number} at {host}": ["ssh", *_QUIETLY, *asked, "--", host, remote]
        for host, count in times.items()
        for number in range(count)
    }
    wishes = replace(program.wishes, share=max(times.values()))
    return run_on_cluster(
        LaunchedProgram(program.script, wishes, program.timeout_s), here, len(hosts), through_pipes(commands)
    )


def _interface_towards(host: str, asked: Sequence[str]) -> str:
    """Which address of this machine a host sees that ssh knows by a name of its own."""
    try:
        told = subprocess.run(
            ["ssh", *asked, "-G", "--", host], capture_output=True, text=True, check=True
        ).stdout
        # ssh's configuration may give the host another name or address.
        name = next(line.partition(" ")[2] for line in told.splitlines() if line.startswith("hostname "))
        return interface_towards(name)
    except subprocess.CalledProcessError as error:
        raise ConnectionFailed(f"ssh knows no {host}: {error.stderr.strip()}") from error
    except OSError as error:
        raise ConnectionFailed(
            f"{host} is no name that is known here ({error}); where only ssh knows the way (a jump host), "
            "--address says under which address of this machine workers reach it"
        ) from error
