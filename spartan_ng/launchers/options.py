"""Options that several commands have."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from spartan_ng.config import KEYS_VARIABLE, MASTER_VARIABLE
from spartan_ng.system.users import user_id

if TYPE_CHECKING:
    from spartan_ng.wire.access import Access

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Bytes(click.ParamType):  # type: ignore[type-arg]
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


def of_each_worker(command: Callable[..., None]) -> Callable[..., None]:
    """`--threads` and `--memory`."""
    threads = click.option(
        "--threads",
        type=click.IntRange(1),
        help="Threads of each worker; by default the cores are shared out.",
    )
    memory = click.option("--memory", type=Bytes(), help="Budget of each worker for tiles, as 8G.")
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
