"""Learn how temporaries are told, whose memory an operator (`plain/temporaries.h`) or the caller takes.

Of operators' temporaries their one reference tells, and who calls. Where variables do not count on the
interpreter's stack (from 3.14 on), the first says nothing.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import numpy as np


def learn(probe: Any) -> bool:
    """Have the interpreter call the operators of a class that learns who calls them (`plain/callers.h`).

    Whether variables count more references than temporaries.
    """
    p, named = probe, probe()
    counts = (
        *(p() + 1, p() - 1, p() * 1, p() / 1, p() // 1, p() % 1, p() ** 1),
        *(1 + p(), 1 - p(), 1 * p(), 1 / p(), 1 // p(), 1 % p(), 1 ** p()),
        *(p() & 1, p() | 1, p() ^ 1, p() << 1, p() >> 1),
        *(1 & p(), 1 | p(), 1 ^ p(), 1 << p(), 1 >> p()),
        *(-p(), +p(), ~p()),
        *(p() < 1, p() <= 1, p() == 1, p() != 1, p() > 1, p() >= 1),
    )
    for start in (0, 0.5, p()):  # which adds up by itself, and goes on by operators
        sum((p(), p()), start)
    for buffer in (memoryview, bytearray):
        with suppress(BufferError):
            buffer(p())
    np.asarray(p()), np.asarray([p()])
    return {*counts} == {1} and named + 1 > 1


class _Asked:
    def references(self) -> int:
        return sys.getrefcount(self)


def _of_method() -> int:
    """What a method counts on what only the stack holds, or 0 where names count the same."""
    named = _Asked()
    unnamed = _Asked().references()
    return unnamed if unnamed < named.references() else 0


OF_METHOD = _of_method()
