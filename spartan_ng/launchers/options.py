"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from spartan_ng.config import KEYS_VARIABLE, MASTER_VARIABLE
from spartan_ng.sinks.places import check_file, check_new_folder
from spartan_ng.system.ownership import user_id

if TYPE_CHECKING:
    from spartan_ng.wire.access import Access

PAGE_PORT = 8787
"""Where a master serves its page if nothing else is said."""
_PORT = click.IntRange(0, 65535)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class ByteCount(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes, as `8G` or `500M`."""

    name = "bytes"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number; a usage error for what is none."""
        if isinstance(value, int):
            return value
        text = str(value).strip().upper().removesuffix("B").removesuffix("I")
        unit = text[-1:] if text[-1:] in _UNITS and not text[-1:].isdigit() else ""
        try:
            number = float(text.removesuffix(unit)) * _UNITS[unit]
        except ValueError:
            self.fail(f"{value!r} is not a number of bytes, such as 500M or 8G", param, ctx)
        if not number >= 1:
            self.fail(f"{value!r} is not a positive number of bytes", param, ctx)
        return int(number)


class OutputFile(click.Path):
    """A file that is to be written, checked before work begins.

    Parameters
    ----------
    check : raises OSError where it cannot be written, and ValueError for a name that says something else
    """

    def __init__(self, check: Callable[[str], None] = check_file) -> None:
        super().__init__(dir_okay=False)
        self.check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; a usage error where it does not pass."""
        path = os.path.expanduser(os.fspath(value))  # also where a shell has left it, as in --save=~/x
        try:
            self.check(path)
        except OSError as error:
            self.fail(f"{path}: {error.strerror}", param, ctx)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return path


class OutputFolder(OutputFile):
    """A folder that files are to be written into; it is made where there is none."""

    def __init__(self) -> None:
        super().__init__(check_new_folder)


class PageAddress(click.ParamType):  # type: ignore[type-arg]
    """Where a page is served, `[HOST:]PORT`."""

    name = "page"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Host and port; a usage error for what is no port."""
        if isinstance(value, tuple):
            return value
        host, _, port = str(value).rpartition(":")
        if not port.isdecimal():
            self.fail(f"{value!r} is no port, as {PAGE_PORT} or 127.0.0.1:{PAGE_PORT}", param, ctx)
        return host.strip("[]") or "127.0.0.1", _PORT.convert(int(port), param, ctx)


def of_each_worker(command: Callable[..., None]) -> Callable[..., None]:
    """`--threads` and `--memory`."""
    threads = click.option(
        "--threads",
        type=click.IntRange(1),
        help="Threads of each worker; by default the cores are shared out.",
    )
    memory = click.option("--memory", type=ByteCount(), help="Budget of each worker for tiles, as 8G.")
    return threads(memory(command))


with_keys = click.option(
    "--keys",
    type=click.Path(file_okay=False),
    envvar=KEYS_VARIABLE,
    help="Directory that `spartan-ng keygen` wrote; required for any tcp:// address.",
)
insecurely = click.option(
    "--insecure", is_flag=True, help="Serve over TCP without keys: whoever reaches a port may run code here."
)
of_master = click.option(
    "--master", "address", envvar=MASTER_VARIABLE, help="The master's address; by default this user's own."
)


def access_of(keys: str | None, role: str, insecure: bool) -> Access:
    """What a process with these options has to prove who it is."""
    from spartan_ng.wire.access import Access
    from spartan_ng.wire.keys import Keys

    return Access(Keys.load(os.path.expanduser(keys), role) if keys else None, insecure)


def warn_of(access: Access, address: str) -> None:
    """Say at each start that there is no protection, where there is none."""
    if access.is_open and not address.startswith("ipc://"):
        click.echo(
            f"Warning: no keys protect {address}: whoever reaches it may run code as user {user_id()}, "
            "and read all data (--insecure)",
            err=True,
        )
