"""What harms a cluster, in numbers that no test waits for: `python -m tests.faults COMMAND --help`."""

from __future__ import annotations

import click

from tests.faults.connects import connects
from tests.faults.cuts import cuts
from tests.faults.frames import frames
from tests.faults.kills import kills
from tests.faults.netns import netns
from tests.faults.soak import soak


@click.group()
def main() -> None:
    """Harm a cluster, and look what becomes of it."""


for _command in (connects, cuts, frames, kills, netns, soak):
    main.add_command(_command)

if __name__ == "__main__":
    main()
