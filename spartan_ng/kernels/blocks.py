"""Cut a tile of a stage's domain into cache-sized blocks, and the blocks into tasks for threads.

Tiles are for the network, blocks are for the cache. The blocks, and the order in which their states are
combined, depend on the stage and its tile alone, never on the number of threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod

from spartan_ng.arrays import Box
from spartan_ng.ops.random import logical_block
from spartan_ng.plan.plan import WHOLE, Fused

CACHE_BYTES = 1 << 19
"""What one block may take of the cache: half a core's second level. Registers count in full, as do operands
that are read twice; an operand that streams past counts a quarter."""
_PRODUCT_SHARE = 4
"""How much more a block of a body with matrix products may take: BLAS cuts it again, and wants many rows."""
TASKS = 32
"""Tasks that a reduced result is cut into: many enough to share between threads."""
HEAVY_TASKS = 4
"""The same for a product: each task has a state of the size of the result."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One part of a stage's result and the runs of blocks that make it, in order.

    `box` is the cell's box in the domain (reduced dimensions: the tile's), each run a task.
    """

    box: Box
    runs: tuple[tuple[Box, ...], ...]


@dataclass(frozen=True, slots=True)
class Sweep:
    """One way through a tile for several results: each run has its own part of dimension `split`, and
    all of the others."""

    split: int
    runs: tuple[tuple[Box, ...], ...]


Cut = list[Cell] | Sweep


def block_sizes(stage: Fused, tile: Box, held: frozenset[int] | None = None) -> tuple[int, ...]:
    """The extents of a block along each domain dimension.

    `held` names the registers that stay in the cache between steps (None: every row, and what is read
    twice); the other rows take no memory.
    """
    sizes = [max(hi - lo, 1) for lo, hi in tile]
    if stage.heavy:
        return tuple(-(-n // s) for n, s in zip(sizes, stage.steps or (1,) * len(sizes), strict=True))
    for row in stage.rows:
        if row.kind == "random":
            return _random_blocks(row.shape, tile, str(row.params[0][0]))
    free = [d for d in range(len(sizes)) if d not in stage.whole]
    last = _contiguous_dimension(stage)
    widths = _widths(stage, held)
    product = any(row.kind == "contract" and len(row.shape) > 1 for row in stage.rows)
    most = _PRODUCT_SHARE * CACHE_BYTES if product else CACHE_BYTES
    while _footprint(widths, sizes) > most:
        choices = [d for d in free if sizes[d] > 1]
        if not choices:
            break
        others = [d for d in choices if d != last] or choices
        largest = max(others, key=lambda d: (sizes[d], -d))
        sizes[largest] = -(-sizes[largest] // 2)
    return tuple(sizes)


def _random_blocks(shape: tuple[int, ...], tile: Box, key: str) -> tuple[int, ...]:
    """Whole logical blocks, so that none is drawn twice; runs of a stream have no such blocks."""
    if key == "blocks":
        return logical_block(shape)
    row = prod(shape[1:])
    return (max(1, (1 << 16) // max(row, 1)), *shape[1:])


def _contiguous_dimension(stage: Fused) -> int | None:
    """The dimension that all operands have contiguous in memory; None where they disagree."""
    last = {
        axes[-1].label
        for r in stage.reads
        if (axes := [a for a in r.axes if a.size > 1]) and axes[-1].label != WHOLE
    }
    return last.pop() if len(last) == 1 else None


def _widths(stage: Fused, held: frozenset[int] | None) -> list[tuple[int, tuple[int, ...]]]:
    """For each operand and register: bytes an element with its whole axes, and its dimensions."""
    out = []
    readers = Counter(r.slot for r in stage.reads)
    for i, r in enumerate(stage.reads):
        labels = [(a.label, a.size) for a in r.axes]
        width = 8 if readers[r.slot] > 1 or (held is not None and i in held) else 2
        out.append(
            (width * prod(n for d, n in labels if d == WHOLE), tuple(d for d, _ in labels if d != WHOLE))
        )
    for i, row in enumerate(stage.rows, len(stage.reads)):
        if held is not None and i not in held:
            continue
        pairs = list(zip(row.labels, row.shape, strict=True))
        whole = prod(n for d, n in pairs if d == WHOLE)
        out.append((row.dtype.itemsize * whole, tuple(d for d, _ in pairs if d != WHOLE)))
    return out


def _footprint(widths: Sequence[tuple[int, tuple[int, ...]]], sizes: Sequence[int]) -> int:
    total = 0
    for width, dims in widths[:64]:
        for d in dims:
            width *= sizes[d]
        total += width
    return total


def cells(tile: Box, sizes: tuple[int, ...], reduced: Sequence[int], tasks: int = TASKS) -> list[Cell]:
    """The cells of a tile, their blocks grouped into about `tasks` tasks.

    Blocks start at multiples of their size in the global index space, so that tiles cut blocks at
    their borders only.
    """
    spans = [_steps(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)]
    kept = [d for d in range(len(tile)) if d not in reduced]
    out = []
    ncells = prod(len(spans[d]) for d in kept)
    for fixed in product(*(spans[d] for d in kept)):
        box = list(tile)
        for d, span in zip(kept, fixed, strict=True):
            box[d] = span
        inner = [spans[d] if d in reduced else [box[d]] for d in range(len(tile))]
        blocks = list(product(*inner))
        out.append(Cell(tuple(box), _runs(blocks, max(1, tasks // ncells))))
    return out


def _steps(lo: int, hi: int, size: int) -> list[tuple[int, int]]:
    """`[lo, hi)` cut at the multiples of `size`."""
    bounds = [lo, *range((lo // size + 1) * size, hi, size), hi] if hi > lo else []
    return list(pairwise(bounds))


def sweep(tile: Box, sizes: tuple[int, ...]) -> Sweep:
    """A tile's blocks in runs that differ in one dimension only, for results reduced over different ones."""
    spans = [_steps(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)]
    if not spans:
        return Sweep(-1, (((),),))
    split = max(range(len(spans)), key=lambda d: (len(spans[d]), -d))
    steps = spans[split]
    count = min(TASKS, len(steps))
    runs = []
    for i in range(count):
        own = steps[i * len(steps) // count : (i + 1) * len(steps) // count]
        runs.append(tuple(product(*(own if d == split else s for d, s in enumerate(spans)))))
    return Sweep(split, tuple(runs))


def cut(stage: Fused, tile: Box, sizes: tuple[int, ...], together: bool) -> Cut:
    """A tile cut as its stage's results want it; `together`: a plain result's blocks need no cells."""
    if len(stage.writes) > 1:
        return sweep(tile, sizes)
    (write,) = stage.writes
    if write.reducer is not None:
        reduced = [d for d in range(len(stage.domain)) if d not in write.labels]
        return cells(tile, sizes, reduced, HEAVY_TASKS if stage.heavy else TASKS)
    every = cells(tile, sizes, [])
    if not together:
        return every
    return [Cell(tile, _runs([b for cell in every for run in cell.runs for b in run], TASKS))]


def _runs(blocks: list[Box], count: int) -> tuple[tuple[Box, ...], ...]:
    count = min(count, len(blocks))
    return tuple(
        tuple(blocks[i * len(blocks) // count : (i + 1) * len(blocks) // count]) for i in range(count)
    )
