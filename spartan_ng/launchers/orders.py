"""What workers far away are told by who has them started: one line, through whatever carries bytes to them.

ssh, srun and MPI start a process on another machine and give it a channel. The keys of a cluster go through
that, and so stand on no command line, in no environment and in no folder that machines share; the worker's
own folder of them is removed when it ends. Where the channel stays open it is the worker's lifeline, too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from spartan_ng.errors import ConnectionFailed
from spartan_ng.launchers.children import mind_worker
from spartan_ng.system import machine
from spartan_ng.wire.access import private_folder
from spartan_ng.wire.keys import write_bundle

_MOST_BYTES = 1 << 20
"""Of a line."""


class Wishes(msgspec.Struct, frozen=True):
    """What the user wants each worker to have."""

    threads: int | None = None
    """None: the cores of its machine, shared out."""
    share: int = 1
    """Among so many workers."""
    memory: int | None = None
    """Bytes for tiles; None for no limit."""
    path: tuple[str, ...] = ()
    """Folders that functions' modules may be imported from, where the machine has them."""


class Order(msgspec.Struct, frozen=True):
    """What a worker is to be."""

    master: str
    """Its address."""
    keys: dict[str, str]
    """The files of a worker's folder of keys."""
    wishes: Wishes

    def line(self) -> bytes:
        """What `take` understands."""
        return msgspec.json.encode(self) + b"\n"


def take(line: bytes) -> Order:
    """The order in a line; ConnectionFailed where there is none."""
    try:
        return msgspec.json.decode(line, type=Order)
    except msgspec.DecodeError as error:
        raise ConnectionFailed(f"whoever started this worker tells it no order: {error}") from error


def read_line(descriptor: int) -> bytes:
    """The bytes of a pipe up to the end of the first line, and none after it."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _MOST_BYTES:
        byte = os.read(descriptor, 1)
        if not byte:
            break
        line += byte
    return bytes(line)


def attend(order: Order, lifeline: int | None = None) -> int:
    """Be the worker of an order until the master says farewell, or the lifeline closes; its exit code."""
    wishes = order.wishes
    threads = wishes.threads or max(1, machine.cores() // wishes.share)
    options = ["--master", order.master, "--threads", str(threads)]
    if wishes.memory is not None:
        options += ["--memory", str(wishes.memory)]
    paths = [*wishes.path, *filter(None, [os.environ.get("PYTHONPATH")])]
    with _folder_of(order) as folder:
        return mind_worker(
            [*options, "--keys", str(folder)], {"PYTHONPATH": os.pathsep.join(paths)}, lifeline
        )


@contextmanager
def _folder_of(order: Order) -> Iterator[Path]:
    folder = private_folder()
    try:
        write_bundle(folder, "worker", order.keys)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
