"""How sorted parts find each other's ranks, and what that moves.

Every worker reads evenly spaced samples of all parts; between two samples lies the element of a rank, and
only that bracket is read. The elements move once, to the output tile of their rank.
"""

from __future__ import annotations

_SAMPLES = 1024
"""Samples of each part: brackets are about this fraction of a part."""


def sample_step(n: int) -> int:
    """The distance of samples in a sorted part of n elements."""
    return max(n // _SAMPLES, 1)


def merge_bytes(n: int, parts: int, key_bytes: int, index_bytes: int) -> int:
    """Bytes that merging n sorted elements in equal parts is expected to move, of elements at random places.

    Parameters
    ----------
    n, parts : elements, and parts that they are cut in
    key_bytes, index_bytes : bytes of an element and of its position, 0 where positions are not asked for
    """
    sizes = [(p + 1) * n // parts - p * n // parts for p in range(parts)]
    elements = (key_bytes + index_bytes) * n * (parts - 1) // parts
    samples = (parts - 1) * sum(-(-size // sample_step(size)) for size in sizes)
    cuts = 2 * (parts - 1)
    brackets = cuts * (parts - 1) * 2 * (sample_step(n // parts) - 1)
    return elements + key_bytes * (samples + brackets)
