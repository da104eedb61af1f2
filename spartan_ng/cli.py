"""The command `spartan-ng`: start masters and workers, run scripts on them, make keys, run apps."""

from __future__ import annotations

import difflib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from spartan_ng.config import (
    ENGINES,
    LOG_JSON_VARIABLE,
    LOG_LEVEL_VARIABLE,
    MASTER_VARIABLE,
    TRACE_VARIABLE,
    config,
)
from spartan_ng.errors import ConnectionFailed, SpartanError
from spartan_ng.launchers.asking import ASKING
from spartan_ng.launchers.children import mind_worker, run_script
from spartan_ng.launchers.command import COMMANDS
from spartan_ng.launchers.options import (
    PAGE_PORT,
    ByteCount,
    OutputFile,
    PageAddress,
    access_of,
    insecurely,
    of_each_worker,
    warn_of,
    with_keys,
)
from spartan_ng.launchers.serving import failing, serve
from spartan_ng.logs import LEVELS, set_up
from spartan_ng.system import machine
from spartan_ng.system.processes import run_instead
from spartan_ng.system.zygote import begin_as_fork
from spartan_ng_command import interpreting

if TYPE_CHECKING:
    from spartan_ng.master.server import MasterServer


_STANDBY_S = 0.25
"""Between two looks at an address that another master has."""


class _Group(click.Group):
    """Shows the library's own errors as one line, without a traceback, and its commands to who names none."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, which takes a call without words for a mistake."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's; a name that there is not is answered with those like it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            alike = difflib.get_close_matches(args[0], self.list_commands(ctx))
            if alike and "Did you mean" not in error.message:
                text = f"{error.message} Did you mean {' or '.join(alike)}?"
                raise click.UsageError(text, ctx) from error
            raise

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except SpartanError as error:
            raise click.ClickException(str(error)) from error


_log_level = click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    envvar=LOG_LEVEL_VARIABLE,
    default="warning",
    show_default=True,
    help="Log to stderr from this level on; a master says a line a job at info.",
)
_log_json = click.option(
    "--log-json", is_flag=True, envvar=LOG_JSON_VARIABLE, help="Log one JSON object a line."
)
_heartbeat = click.option(
    "--heartbeat",
    type=click.FloatRange(0.1),
    default=config.heartbeat_s,
    show_default=True,
    callback=lambda _, __, seconds: setattr(config, "heartbeat_s", seconds),
    expose_value=False,
    help="Who says nothing for so many seconds is taken to be lost.",
)
_lifeline = click.option("--lifeline", type=int, hidden=True, help="Stop when this pipe closes.")
_nannied = click.option(
    "--nannied",
    type=int,
    hidden=True,
    help="Somebody starts this process again when it ends, unless it has said farewell to this descriptor.",
)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spartan-ng")
def main() -> None:
    """NumPy programs on one machine or many.

    \b
    On this machine, with four worker processes:
        spartan-ng run -n 4 script.py
        spartan-ng run --on dask -n 4 script.py

    \b
    On several machines, for as long as a script runs:
        spartan-ng ssh node1 node2 script.py
        spartan-ng slurm -N 4 script.py
        mpirun -n 5 spartan-ng mpi script.py

    \b
    On several machines, for whoever comes:
        spartan-ng keygen ~/keys                      (once; workers and clients get a part of it)
        spartan-ng master --address tcp://10.0.0.1:7077 --keys ~/keys
        spartan-ng worker --master tcp://10.0.0.1:7077 --keys ~/keys      (on each machine)

    \b
    and in the program:
        import spartan_ng as np
        np.connect("tcp://10.0.0.1:7077", keys="~/keys")

    Options of np.config are set from outside by variables of the environment, as
    SPARTAN_NG_MEMORY_BYTES=2000000000.
    """


@main.command()
@click.option(
    "--address",
    help="Where to serve; port * is any free one. By default a socket of this user's own, or with keys "
    "tcp://127.0.0.1:7077.",
)
@with_keys
@insecurely
@click.option(
    "--page",
    type=PageAddress(),
    is_flag=False,
    flag_value=f"127.0.0.1:{PAGE_PORT}",
    metavar="[HOST:]PORT",
    help=f"Serve a page for browsers, by default at 127.0.0.1:{PAGE_PORT}; its link is printed.",
)
@click.option("--standby", is_flag=True, help="Wait until no master serves there any more, and follow it.")
@_log_level
@_log_json
@_heartbeat
@_lifeline
@_nannied
@click.option("--announce", type=int, hidden=True, help="Write the address to this descriptor.")
def master(
    address: str | None,
    keys: str | None,
    insecure: bool,
    page: tuple[str, int] | None,
    log_level: str,
    log_json: bool,
    standby: bool,
    lifeline: int | None,
    nannied: int | None,
    announce: int | None,
) -> None:
    """Start a master: workers register with it, clients send it their plans.

    Without keys it serves the processes of its own user only. Where another master was at its address, it
    goes on in its place: workers have kept their tiles, and clients wait for it.

    \b
    Examples:
        spartan-ng master
        spartan-ng master --address tcp://10.0.0.1:7077 --keys ~/keys --page
    """
    from spartan_ng.master.server import MasterServer
    from spartan_ng.system.heap import limit_heaps

    set_up(log_level, log_json)
    limit_heaps()
    access = access_of(keys, "server", insecure)
    server = _when_free(lambda: MasterServer(address, access)) if standby else MasterServer(address, access)
    warn_of(access, server.address)
    if announce is not None:
        with open(announce, "w", encoding="ascii") as file:
            file.write(server.address + "\n")
    else:
        click.echo(f"master at {server.address}")
    if page is not None:
        click.echo(f"page at {server.open_page(*page)}")
    serve(server, lifeline, nannied)


def _when_free(start: Callable[[], MasterServer]) -> MasterServer:
    """A master, as soon as its address is free, or this host's."""
    said = ""
    while True:
        try:
            return start()
        except ConnectionFailed as error:
            if str(error) != said:
                said = str(error)
                click.echo(f"standing by: {said}")
            time.sleep(_STANDBY_S)


@main.command()
@click.option(
    "--master",
    "address",
    envvar=MASTER_VARIABLE,
    help="The master's address, tcp://host:port; by default that of this user's own.",
)
@click.option("--threads", type=click.IntRange(1), help="Threads for computing; all cores by default.")
@click.option("--memory", type=ByteCount(), help="Budget for tiles, as 8G; what exceeds it spills to disk.")
@click.option("--bind", help="Where to serve tiles; by default the interface that reaches the master.")
@with_keys
@insecurely
@_log_level
@_log_json
@_heartbeat
@_lifeline
@_nannied
def worker(
    address: str | None,
    threads: int | None,
    memory: int | None,
    bind: str | None,
    keys: str | None,
    insecure: bool,
    log_level: str,
    log_json: bool,
    lifeline: int | None,
    nannied: int | None,
) -> None:
    """Start a worker, which holds tiles in its memory and computes on all cores.

    It is started again when its process ends without having been told to. Where no master answers it goes on
    trying, and says so. On SIGTERM it leaves: programs take their tiles from it first, for up to 20 s.

    \b
    Examples:
        spartan-ng worker
        spartan-ng worker --master tcp://10.0.0.1:7077 --keys ~/keys --memory 24G
    """
    if lifeline is None and nannied is None:
        sys.exit(mind_worker(sys.argv[2:]))
    set_up(log_level, log_json)
    if nannied is not None:
        os.set_inheritable(nannied, False)
    from spartan_ng.system.heap import limit_heaps
    from spartan_ng.wire.access import own_address
    from spartan_ng.worker.prints import Prints
    from spartan_ng.worker.scheduling.blas import limit_blas
    from spartan_ng.worker.server import WorkerServer

    cores, memory = machine.cores(), memory or config.memory_bytes
    limit_heaps(threads or cores, memory)
    limit_blas(threads or cores)  # several workers share a host's cores
    if memory is not None:
        config.memory_bytes = memory  # of which what is read and kept of files takes parts
    with failing(nannied):
        address = address or own_address()
        access = access_of(keys, "worker", insecure)
        server = WorkerServer(address, threads or cores, memory, access, bind)
    warn_of(access, address)
    server.leaves_stuck = nannied is not None
    server.take_streams(Prints.install(server.tell_printed))
    serve(server, lifeline, nannied)


@main.command(hidden=True)
@click.argument("descriptor", type=int)
def zygote(descriptor: int) -> None:
    """Start processes of this command for the program at the other end of a socket."""
    _be_zygote(socket.socket(fileno=descriptor))


def _be_zygote(connection: socket.socket) -> None:
    import spartan_ng
    from spartan_ng.system.zygote import serve_forks
    from spartan_ng.worker import server  # noqa: F401 - what forks need

    def run(arguments: list[str]) -> None:
        spartan_ng.random.seed()  # NumPy's state, too: forks must not draw the same
        main(arguments)

    serve_forks(connection, run)


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-n",
    "--workers",
    type=click.IntRange(1),
    help="Run on a local cluster of so many worker processes.  [default: in the script's own process]",
)
@of_each_worker
@click.option(
    "--on",
    "engine",
    type=click.Choice(ENGINES),
    help="Run on a new dask or Ray with so many workers instead.",
)
@click.option(
    "--trace",
    type=OutputFile(),
    help="Write what SCRIPT and the workers do to this file, in Chrome's trace format (for Perfetto).",
)
@click.option("--log-level", type=click.Choice(LEVELS), help="Of the master and the workers; takes -n.")
@click.option("--log-json", is_flag=True, help="They log one JSON object a line; takes -n.")
@click.option("--as-numpy", is_flag=True, help="In SCRIPT (only there), `import numpy` imports this package.")
@click.argument("script", type=click.Path(exists=True, dir_okay=False))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    workers: int | None,
    threads: int | None,
    memory: int | None,
    engine: str | None,
    trace: str | None,
    log_level: str | None,
    log_json: bool,
    as_numpy: bool,
    script: str,
    arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT: on all cores of its process, or, with -n, on a local cluster that lives as long as it does.

    \b
    Examples:
        spartan-ng run --as-numpy numpy_script.py
        spartan-ng run -n 4 script.py
        spartan-ng run --trace run.json -n 4 script.py
        spartan-ng run --on dask -n 4 script.py
        spartan-ng run -n 2 --threads 1 --memory 2G script.py --epochs 10
    """
    command = interpreting(script, arguments, as_numpy)
    asked = {} if trace is None else {TRACE_VARIABLE: os.path.abspath(trace)}
    if workers is None:
        if threads is not None or memory is not None or engine is not None or log_level or log_json:
            raise click.UsageError(
                "--threads, --memory, --on, --log-level and --log-json are of a master and its workers: ask "
                "for some with -n"
            )
        run_instead(command, {**os.environ, **asked})
    threads = threads or max(1, machine.cores() // workers)
    if log_level is not None:
        os.environ[LOG_LEVEL_VARIABLE] = log_level
    if log_json:
        os.environ[LOG_JSON_VARIABLE] = "1"
    if engine is None:
        begin_as_fork(_be_zygote)  # imports what servers need, while this process does what connections need
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    if engine is not None:
        if memory is not None:
            raise click.UsageError(f"--memory: {engine} has limits of its own")
        from spartan_ng.backends.engines import local

        with local(engine, workers, threads) as environment:
            code = run_script({**environment, **asked}, command)
    else:
        from spartan_ng.backends.local import LocalCluster

        cluster = LocalCluster(workers, threads, memory)
        try:
            cluster.start()
            cluster.connect().close()  # all workers are there before the script starts
            code = run_script({MASTER_VARIABLE: cluster.address, **asked}, command)
        finally:
            cluster.stop()
    sys.exit(code)


class _Apps(_Group):
    """The apps of the table, the demo, and the files of the apps' examples."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from spartan_ng.apps.table import APPS

        return sorted([*APPS, "demo", "samples"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from spartan_ng.apps import demo, samples
        from spartan_ng.apps.command import command_of
        from spartan_ng.apps.table import APPS

        others = {"demo": demo.command, "samples": samples.command}
        if cmd_name in others:
            return others[cmd_name]
        row = APPS.get(cmd_name.replace("_", "-"))
        return None if row is None else command_of(row)


@main.group(cls=_Apps)
def app() -> None:
    """Run one of the library's algorithms on data in a file.

    \b
    Example:
        spartan-ng app samples      (the files that this and all other examples read)
        spartan-ng app kmeans --data points.npy --clusters 10 --picture clusters.png --save clusters.npz
        spartan-ng app kmeans --load clusters.npz --predict points.npy
    """


for one in (*COMMANDS, *ASKING):
    main.add_command(one)


if __name__ == "__main__":
    main()
