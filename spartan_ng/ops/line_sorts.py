"""What sorting a line costs: how finely its sorted parts are sampled, and what the merge moves.

The samples bracket the element of a rank, the brackets are read. Few samples leave wide brackets: with both
neighbours of a cut looking for it, a few times `sqrt(n)` samples of a part of n elements move the fewest
bytes. They are never more than a worker can sort for many parts.
"""

from __future__ import annotations

from math import isqrt

_MOST = 1024
"""Samples of one part."""
_HELD = 3
"""What is there of a part when it is sorted in memory: the part, sorted, and merged."""
_RUNS = 16
"""Runs that there is memory for: two threads have some each, and their indices."""
_SHORTEST = 1 << 12
"""Elements of the shortest run."""
SHORT_END = 12
"""From so many places at an end on, elements are searched for, and not just read."""
_PICKED = 5
"""Elements of a part that are read to find one rank, for each four-fold of the line, as measured on random
parts: samples narrow what is looked through by a share each time."""
_BRACKET = 3
"""Steps between samples that a bracket spans in each part, as measured on random parts."""


def sample_step(n: int) -> int:
    """Of a sorted part of n elements, each how many-th is a sample."""
    return max(isqrt(n) // 6, n // _MOST, 1)


def run_length(n: int, element_bytes: int, memory_bytes: int) -> int:
    """Elements in a run, where a part of n elements and what is sorted of it do not fit; else 0."""
    if _HELD * n * element_bytes <= memory_bytes:
        return 0
    return max(memory_bytes // (_RUNS * element_bytes), _SHORTEST)


def run_step(n: int) -> int:
    """Of a sorted run of n elements, each how many-th is a sample.

    All workers have those of all runs, so they are few; what lies between two is sampled again.
    """
    return max(2 * isqrt(n), 1)


def merge_bytes(n: int, key_bytes: int, element_bytes: int, parts: int) -> int:
    """Bytes that merging the sorted parts of n elements moves: samples and brackets of their keys, and then
    every element, of `element_bytes`, from wherever it is to wherever it belongs. Where each element of a
    short part is a sample, nothing is left to bracket."""
    if parts == 1 or n == 0:
        return 0
    short, longer = divmod(n, parts)
    sizes = [short + 1] * longer + [short] * (parts - longer)
    samples = (parts - 1) * sum(-(-size // sample_step(size)) for size in sizes)
    size, step = sizes[0], sample_step(sizes[0])
    brackets = 2 * (parts - 1) * (parts - 1) * min(_BRACKET * step, size) if step > 1 else 0
    return (samples + brackets) * key_bytes + n * element_bytes * (parts - 1) // parts


def pick_bytes(n: int, element_bytes: int, spans: tuple[tuple[int, int], ...]) -> int:
    """Bytes that are read of a sorted part of n elements in all to find those of ranks in `spans`."""
    ends = [min(hi, n - lo) for lo, hi in spans]
    return element_bytes * sum(
        e if e <= SHORT_END else _PICKED * n.bit_length() // 2 + hi - lo
        for e, (lo, hi) in zip(ends, spans, strict=True)
    )
