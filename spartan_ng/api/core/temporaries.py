"""Learn how temporaries are told, whose memory an operator (`plain/temporaries.h`) or the caller takes.

Of operators' temporaries their one reference tells, and who calls. Where variables do not count on the
interpreter's stack (from 3.14 on), the first says nothing.
"""

from __future__ import annotations

import sys
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
    )
    return {*counts} == {1} and named + 1 > 1


class _Asked:
    def __init__(self, counts: list[int]) -> None:
        self.counts = counts

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.counts.append(sys.getrefcount(self))
        return np.zeros(0)

    def compute(self) -> None:
        self.counts.append(sys.getrefcount(self))


def _references_asked() -> tuple[int, int]:
    """What `__array__`, asked by NumPy, and a method count on what only the stack holds; zeros where names
    count the same."""
    counts: list[int] = []
    named = _Asked(counts)
    np.asarray(named)
    named.compute()
    np.asarray(_Asked(counts))
    _Asked(counts).compute()
    array, method, unnamed_array, unnamed_method = counts
    return unnamed_array * (unnamed_array < array), unnamed_method * (unnamed_method < method)


OF_ASKED, OF_METHOD = _references_asked()
