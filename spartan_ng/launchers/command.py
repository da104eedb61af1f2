"""The commands `spartan-ng ssh`, `slurm` and `mpi`, and the one that they have others run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from spartan_ng.launchers.options import of_each_worker

if TYPE_CHECKING:
    from spartan_ng.launchers.clusters import LaunchedProgram

_SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}
_timeout = click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds for the workers to join."
)
_address = click.option("--address", help="Where the workers reach this machine; by default it is found out.")
_words = click.argument("words", metavar="SCRIPT [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)


def _program(
    words: tuple[str, ...], threads: int | None, memory: int | None, timeout_s: float
) -> LaunchedProgram:
    """A script with its arguments; a usage error where there is no such file."""
    from spartan_ng.launchers.clusters import LaunchedProgram
    from spartan_ng.launchers.orders import Wishes

    if not words or not os.path.isfile(words[0]):
        raise click.UsageError(f"there is no script {words[0]}" if words else "which script?")
    return LaunchedProgram(words, Wishes(threads, memory=memory), timeout_s)


@click.command(context_settings=_SETTINGS)
@of_each_worker
@_address
@_timeout
@click.option("-o", "--option", "options", multiple=True, help="An option of ssh's, as Port=2222.")
@click.option("--python", default=sys.executable, help="The interpreter on the hosts; by default as here.")
@click.argument("words", metavar="HOST... SCRIPT [ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def ssh(
    threads: int | None,
    memory: int | None,
    address: str | None,
    timeout: float,
    options: tuple[str, ...],
    python: str,
    words: tuple[str, ...],
) -> None:
    """Run SCRIPT here, on workers that ssh starts on each HOST; a host that is named twice gets two.

    The first word that is a file is the script. The master serves here, with keys for this script alone.

    \b
    Examples:
        spartan-ng ssh node1 node2 script.py
        spartan-ng ssh -o Port=2222 --python /opt/venv/bin/python me@node1 script.py --epochs 10
    """
    from spartan_ng.launchers import ssh as launcher

    at = next((i for i, word in enumerate(words) if os.path.isfile(word)), len(words))
    if not at:
        raise click.UsageError("on which hosts?")
    program = _program(words[at:] or words[-1:], threads, memory, timeout)
    sys.exit(launcher.run(program, words[:at], options, python, address))


@click.command(context_settings=_SETTINGS)
@click.option(
    "-N", "--nodes", type=click.IntRange(1), help="On so many nodes; in a job, by default on all of its."
)
@click.option(
    "-n", "--each", type=click.IntRange(1), default=1, show_default=True, help="Workers on each node."
)
@of_each_worker
@_address
@_timeout
@click.option("-o", "--option", "options", multiple=True, help="An option of sbatch's, as partition=long.")
@click.option("--wait", is_flag=True, help="Return when the job has ended, and fail if it did.")
@_words
def slurm(
    nodes: int | None,
    each: int,
    threads: int | None,
    memory: int | None,
    address: str | None,
    timeout: float,
    options: tuple[str, ...],
    wait: bool,
    words: tuple[str, ...],
) -> None:
    """Run SCRIPT on workers on SLURM's nodes: as a new job, or, in a job, on its nodes.

    SCRIPT itself runs on the first node of a new job, and where it is called in one.

    \b
    Examples:
        spartan-ng slurm -N 4 script.py
        spartan-ng slurm -N 4 -o partition=long -o time=2:00:00 script.py --epochs 10
        salloc -N 4 spartan-ng slurm script.py
    """
    from spartan_ng.launchers import slurm as launcher

    program = _program(words, threads, memory, timeout)
    if launcher.is_inside():
        sys.exit(launcher.run(program, nodes, each, address))
    again = [sys.executable, "-m", "spartan_ng.cli", "slurm", "--each", str(each), "--timeout", str(timeout)]
    for name, value in (("--threads", threads), ("--memory", memory), ("--address", address)):
        again += [] if value is None else [name, str(value)]
    name = os.path.basename(words[0])
    job, code = launcher.submit(nodes or 1, each, options, wait, [*again, *words], name)
    click.echo(f"job {job}")
    sys.exit(code)


@click.command(context_settings=_SETTINGS)
@of_each_worker
@_address
@_timeout
@_words
def mpi(
    threads: int | None, memory: int | None, address: str | None, timeout: float, words: tuple[str, ...]
) -> None:
    """Run SCRIPT on the processes that mpirun starts: the first is the program, the others are workers.

    mpirun of MPICH's kind needs no more; another needs mpi4py, which the extra [mpi] brings.

    \b
    Examples:
        mpirun -n 5 spartan-ng mpi script.py
    """
    from spartan_ng.launchers import mpi as launcher

    sys.exit(launcher.run(_program(words, threads, memory, timeout), address))


@click.command(hidden=True)
def attend() -> None:
    """Be the worker that the first line of the input asks for, until it ends.

    \b
    Example:
        spartan-ng attend < order
    """
    from spartan_ng.launchers import orders

    sys.exit(orders.attend(orders.take(orders.read_line(0)), lifeline=0))


COMMANDS = (ssh, slurm, mpi, attend)
