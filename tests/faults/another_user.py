"""Another user, who sends what nobody should: `python -m ... ADDRESS COUNT SEED MARK`, by root."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - sockets load it late, and he may not be able to read it
import os
import random
import sys
from pathlib import Path

from tests.faults.payloads import any_message, the_fifteen
from tests.faults.stranger import noise, say, shout

NOBODY = 65534


def main(address: str, count: int, seed: int, mark: Path) -> None:
    """Be somebody else, and send `count` messages."""
    known = [*the_fifteen(mark).values(), *any_message(mark)]  # packing them loads modules, too
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    draw = random.Random(seed)
    sent = 0
    while sent < count:
        if draw.random() < 0.2:
            sent += shout(address, noise(draw))
        else:
            sent += say(address, "no key", None, None, draw, known)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
