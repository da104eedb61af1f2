"""Workers as a step of a SLURM job: outside of one, the same command goes to the queue."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence

from msgspec.structs import replace

from spartan_ng.errors import ConnectionFailed
from spartan_ng.launchers.clusters import LaunchedProgram, attendant, run_on_cluster, through_pipes
from spartan_ng.wire.access import is_loopback
from spartan_ng.wire.hosts import interface_towards


def is_inside() -> bool:
    """Whether this process has an allocation."""
    return "SLURM_JOB_ID" in os.environ


def submit(
    nodes: int, each: int, options: Sequence[str], wait: bool, command: Sequence[str], name: str
) -> tuple[str, int]:
    """Queue a job of so many nodes with `each` workers that runs `command`: its number, and an exit code.

    `options` are sbatch's, as `partition=long`. With `wait`, it returns when the job has ended, with its exit
    code. Raises ConnectionFailed where SLURM refuses the job.
    """
    asked = [f"--nodes={nodes}", f"--ntasks-per-node={each}", f"--job-name={name}"]
    asked += [f"--{option}" for option in options] + (["--wait"] if wait else [])
    done = _called(["sbatch", "--parsable", *asked], f"#!/bin/sh\nexec {shlex.join(command)}\n")
    job = done.stdout.partition(";")[0].strip()
    if not job:
        raise ConnectionFailed(f"sbatch: {done.stderr.strip()}")
    return job, done.returncode


def run(program: LaunchedProgram, nodes: int | None, each: int, address: str | None) -> int:
    """The script's exit code, run on `each` workers a node of this process's allocation.

    The program itself runs where this process does: on the first node, in a batch job.
    """
    count = nodes or int(os.environ["SLURM_JOB_NUM_NODES"])
    # The smallest node decides: a step asks for the same of all.
    cpus = max(1, min(_cpus(os.environ["SLURM_JOB_CPUS_PER_NODE"])) // each)
    command = [
        "srun",
        f"--nodes={count}",
        f"--ntasks={count * each}",
        f"--ntasks-per-node={each}",
        f"--cpus-per-task={cpus}",
        "--overlap",  # steps of the script's own have room beside it
        "--kill-on-bad-exit=0",  # a worker that is lost costs time only
        "--quiet",
        *attendant(sys.executable),
    ]
    wishes = replace(program.wishes, threads=program.wishes.threads or cpus)
    return run_on_cluster(
        LaunchedProgram(program.script, wishes, program.timeout_s),
        address or _interface_towards_nodes(),
        count * each,
        through_pipes({"srun": command}),
    )


def _cpus(text: str) -> list[int]:
    """The processors of nodes, as SLURM writes them: `16(x3),8`."""
    return [int(number) for number in re.findall(r"(\d+)(?:\(x\d+\))?", text)]


def _interface_towards_nodes() -> str:
    """Which address of this machine the allocation's nodes see."""
    told = _called(["scontrol", "show", "node", "--oneliner", os.environ["SLURM_JOB_NODELIST"]]).stdout
    seen = [interface_towards(name) for name in re.findall(r"\bNodeAddr=(\S+)", told)]
    return next((here for here in seen if not is_loopback(f"tcp://{here}")), "127.0.0.1")


def _called(command: Sequence[str], told: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, input=told, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ConnectionFailed(f"SLURM is not here: {error}") from error
