"""Sets of small numbers as the bits of integers."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1 << 14)
def bits(mask: int) -> tuple[int, ...]:
    """The positions of the bits of a mask; those of one partition's plans meet the same again and again."""
    found = []
    while mask:
        bit = mask & -mask
        mask ^= bit
        found.append(bit.bit_length() - 1)
    return tuple(found)
