"""How often somebody may do something: token buckets, by clocks that are asked from outside."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

from msgspec import Struct

_REMEMBERED = 1024
"""Those who are forgotten first have come least lately."""


class Rate(Struct):
    """So many at once, and so many a second for ever."""

    most: int
    a_second: float


class Tries:
    """One bucket, full at the beginning."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: Rate, now: float) -> None:
        self._rate, self._left, self._at = rate, float(rate.most), now

    def take(self, now: float) -> bool:
        """Use one, if there is one."""
        left = min(float(self._rate.most), self._left + (now - self._at) * self._rate.a_second)
        self._at = now
        self._left = left - 1.0 if left >= 1.0 else left
        return left >= 1.0

    def give_back(self) -> None:
        """One was of use."""
        self._left += 1.0


class TriesOfEach:
    """A bucket for each of those who come, by their names."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._of: OrderedDict[Hashable, Tries] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of)

    def take(self, who: Hashable, now: float) -> bool:
        """Use one of somebody's, if there is one."""
        tries = self._of.get(who)
        if tries is None:
            tries = self._of[who] = Tries(self._rate, now)
            if len(self._of) > _REMEMBERED:
                self._of.popitem(last=False)
        else:
            self._of.move_to_end(who)
        return tries.take(now)

    def give_back(self, who: Hashable) -> None:
        """One of somebody's was of use."""
        tries = self._of.get(who)
        if tries is not None:
            tries.give_back()
