"""Cut a tile of a stage's domain into cache-sized blocks, and the blocks into tasks for threads.

Tiles are for the network, blocks are for the cache. The blocks, and the order in which their states are
combined, depend on the stage and its tile alone, never on the number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, product
from math import prod

from msgspec import Struct

from spartan_ng.arrays import WHOLE, Box, box_size
from spartan_ng.costs.choices import ABREAST
from spartan_ng.costs.tuned import FEW_LINES, STATES_BYTES
from spartan_ng.kernels.sequences import Run, blocks, cut_at_multiples
from spartan_ng.kernels.widths import NUMBER_BYTES, footprint, widths_of
from spartan_ng.memory import BLOCK_BYTES, threads
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.random import drawn_blocks, is_walk
from spartan_ng.plan.stages import Fused
from spartan_ng.sinks import Sink

CACHE_BYTES = 1 << 19
"""What one block may take of the cache: half a core's second level. Registers count in full, as do operands
that are read twice, but once for both; an operand that streams past counts a quarter, and its copies, where
NumPy counts or sorts them, in full."""
_SPARSE_BLOCKS = 32
"""Runs of rows that a sparse tile is cut into: rows differ in their non-zeros, so that there are several for
each thread; each costs SciPy's objects."""
_BLOCK_STATES_BYTES = 1 << 23
"""What the states of a sparse operand's blocks may take together, unless there are few of them."""
_CALLS_SHARE = 16
"""How much more a block may take where rows are calls from Python, as all are in the interpreter: each takes
the lock that threads with small blocks hand to and fro for longer than they work. A product wants many
rows, too, and its states are as long as one."""
_MATRICES_SHARE = 2
"""The same where NumPy decomposes matrices: LAPACK takes several copies of what it works on."""
_PIECES = 8
"""Blocks that such a tile is cut into, at least, while they do not get smaller than the cache."""
_PRODUCT_SIDE = 64
"""Such a body's blocks get no narrower while they can get shorter: one row times a matrix costs BLAS as much
as reading the matrix."""
_SHORT = 16
"""Blocks are not cut across lines of so few elements that are folded: states would be as large as these."""
_LINE = 256
"""Elements of a matrix's row that a block of such a product has at least."""
TASKS = 32
"""Tasks that a reduced result is cut into: many enough to share between threads."""
_MOST_ELEMENTS = 1 << 24
"""Elements of the domain in a task: what takes long is done in steps that can be counted; but not in more"""
_MOST_STEPS = 1 << 13
"""than so many."""
HEAVY_TASKS = 4
"""The same for a product: each task has a state of the size of the result."""


class Patch(Struct, frozen=True):
    """One part of a stage's result and the runs of blocks that make it, in order.

    `box` is the patch's box in the domain (reduced dimensions: the tile's), each run a task.
    """

    box: Box
    runs: tuple[Run, ...]


class Sweep(Struct, frozen=True):
    """One way through a tile for several results: each run has its own part of dimension `split`, and
    all of the others."""

    split: int
    runs: tuple[Run, ...]


Cut = list[Patch] | Sweep


_ALL_DENSE: Mapping[int, float] = {}


def block_sizes(
    stage: Fused,
    tile: Box,
    held: frozenset[int] | None = None,
    sparse: Mapping[int, float] = _ALL_DENSE,
    calls: bool = False,
) -> tuple[int, ...]:
    """The extents of a block along each domain dimension: whole units along those that are folded in order.

    `held` names the registers that stay in the cache between steps (None: every row, and what is read
    twice); the other rows take no memory. `sparse` has the slots of CSR operands, as from `stored_widths`,
    `calls` says that NumPy is called between compiled loops.
    """
    sizes = _within_band(stage, _cached_sizes(stage, tile, held, sparse, calls))
    sizes = _few_for_states(stage, tile, sizes) if sparse and stage.driver < 0 else sizes
    longest = _longest_units(stage)
    return tuple(-(-n // longest.get(d, 1)) * longest.get(d, 1) for d, n in enumerate(sizes))


def _within_band(stage: Fused, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Blocks no longer than what is read at a time; random numbers are drawn in blocks of their own."""
    if stage.band is None or any(row.kind == "random" for row in stage.rows) or _written_chunks(stage):
        return sizes
    along, length = stage.band
    return (*sizes[:along], min(sizes[along], length), *sizes[along + 1 :])


def _few_for_states(stage: Fused, tile: Box, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """So few blocks of sparse operands that the states which each makes are small together."""
    out = list(sizes)
    for write in (w for w in stage.writes if w.reducer is not None):
        most = max(_BLOCK_STATES_BYTES // max(write.state_bytes, 1), 2 * threads())
        for d, (lo, hi) in enumerate(tile):
            if d not in write.labels:
                out[d] = max(out[d], -(-(hi - lo) // most))
    return tuple(out)


def _longest_units(stage: Fused) -> dict[int, int]:
    """For each dimension that is folded in order the length of its units, of which all others are parts."""
    longest: dict[int, int] = {}
    for f in (f for write in stage.writes for f in write.units if f.dim != WHOLE):
        longest[f.dim] = max(longest.get(f.dim, 1), f.length)
    return longest


def _cached_sizes(
    stage: Fused, tile: Box, held: frozenset[int] | None, sparse: Mapping[int, float], calls: bool
) -> tuple[int, ...]:
    """The extents of a block that the cache holds."""
    sizes = [max(hi - lo, 1) for lo, hi in tile]
    if stage.heavy:
        return tuple(-(-n // s) for n, s in zip(sizes, stage.steps or (1,) * len(sizes), strict=True))
    if stage.driver >= 0 and stage.driver_labels[0] not in (WHOLE, *stage.whole):
        return sparse_blocks(stage, sizes)
    for row in stage.rows:
        if row.kind == "random":
            return drawn_blocks(row.params[0], row.shape)[: len(sizes)]  # the rest is whole
    chunks = _written_chunks(stage)
    if chunks is not None:
        return tuple(min(n, chunks.get(d, n)) for d, n in enumerate(sizes))
    free = [d for d in range(len(sizes)) if d not in stage.whole]
    last = _contiguous_dimension(stage)
    # No cut makes those without dimensions less.
    widths = [(width, dims) for width, dims in widths_of(stage, held, sparse) if dims]
    product = any(row.kind == "contract" and (len(row.shape) > 1 or held is None) for row in stage.every_row)
    most = float(CACHE_BYTES)
    if product and _reads_past(stage, sizes, last) and footprint(widths, sizes) > most:
        assert last is not None, "its lines lie along one"
        longest = CACHE_BYTES // (NUMBER_BYTES * FEW_LINES * len(stage.every_row))
        piece = -(-sizes[last] // min(_PIECES, sizes[last] // _LINE))
        sizes[last] = max(min(piece, longest), _LINE)
        return tuple(sizes)
    if product or calls or held is None:
        pieces = TASKS if stage.calls_users else _PIECES  # so that others can help with them
        share = _MATRICES_SHARE if any(row.kind == "matrices" for row in stage.rows) else _CALLS_SHARE
        most = max(most, min(footprint(widths, sizes) / pieces, most * share, stage.block_bytes))
    if stage.block_bytes > BLOCK_BYTES:  # each block has a state that is larger than the cache
        most = max(most, min(footprint(widths, sizes), stage.block_bytes))
    if _walks_strips(stage):
        most = max(most, min(footprint(widths, sizes) / TASKS, stage.block_bytes))
    least = _PRODUCT_SIDE if product else 1
    folded = _folded(stage)
    lines = _lines_abreast(stage, sizes, last) if held is not None and not product else None
    while footprint(widths, sizes) > most:
        choices = [d for d in free if sizes[d] > 1]
        if not choices:
            break
        if prod(sizes[d] for d in folded) <= _SHORT:
            choices = [d for d in choices if d not in folded] or choices
        wide = [d for d in choices if sizes[d] > (ABREAST if d == lines else least)] or choices
        # Along memory last: short pieces of lines are what loops and BLAS are slow with.
        others = [d for d in wide if d != last] or wide
        largest = max(others, key=lambda d: (sizes[d], -d))
        sizes[largest] = -(-sizes[largest] // 2)
    if held is not None and not product:
        _shorten_chains(stage, sizes, int(most) // 2, free)
    if lines is not None:
        sizes[lines] = -(-sizes[lines] // ABREAST) * ABREAST
    return tuple(sizes)


def _lines_abreast(stage: Fused, sizes: Sequence[int], last: int | None) -> int | None:
    """The dimension along which a compiled loop that does nothing but fold takes lines side by side: fewer
    lines than that go one by one, and each reads and writes what they have in common."""
    if last is None or any(w.reducer is None for w in stage.writes):
        return None
    around = [d for d, n in enumerate(sizes) if d != last and d not in stage.whole and n > ABREAST]
    return around[-1] if around else None


def _folded(stage: Fused) -> frozenset[int]:
    """The dimensions along which folds, whose states have an element for each line, go."""
    folds = [w for w in stage.writes if w.reducer is not None and w.reducer.kind == "fold"]
    return frozenset(d for w in folds for d in range(len(stage.domain)) if d not in w.labels)


def _reads_past(stage: Fused, sizes: Sequence[int], last: int | None) -> bool:
    """Whether a product has so few lines that its matrix, whose own lines lie along `last`, goes past but
    once: no cut keeps it in the cache, and one across its lines makes them short. A matrix that the stage
    makes itself is another matter."""
    if last is None or last in stage.whole or sizes[last] < _LINE:
        return False
    if any(last in row.labels and WHOLE in row.labels for row in stage.rows):
        return False
    return prod(n for d, n in enumerate(sizes) if d != last) <= FEW_LINES


def _shorten_chains(stage: Fused, sizes: list[int], longest: int, free: list[int]) -> None:
    """Let no element of a block's result be a fold of more than one that streams past would be of: compiled
    loops add one partial sum after the other within a block, and operands may have few bytes for very many
    elements, which are broadcast."""
    for write in stage.writes:
        if write.reducer is None:
            continue
        reduced = [d for d in free if d not in write.labels]
        while reduced and prod(sizes[d] for d in reduced) > longest:
            most = max(reduced, key=lambda d: sizes[d])
            sizes[most] = -(-sizes[most] // 2)


def _written_chunks(stage: Fused) -> dict[int, int] | None:
    """Along each dimension the length of the chunks that a sink writes, which blocks are to be; None
    without."""
    for row in stage.rows:
        if isinstance(row.fn, UserFunction) and isinstance(row.fn.function, Sink):
            chunks = row.fn.function.chunks
            return None if chunks is None else dict(zip(row.labels, chunks, strict=True))
    return None


def _walks_strips(stage: Fused) -> bool:
    """Whether all results come from a fold that walks its block in pieces for the cache: `deviations`."""
    folds = [w.reducer.fn if w.reducer is not None else None for w in stage.writes]
    return not stage.rows and "squared deviations" in folds and set(folds) <= {"squared deviations", "add"}


def sparse_blocks(stage: Fused, sizes: list[int]) -> tuple[int, ...]:
    """Runs of the driver's stored rows: enough to share, and as few as keep the states of them small."""
    rows, _ = stage.driver_labels
    pieces = _SPARSE_BLOCKS if stage.is_sampled else 1  # of a compressed tile: see `kernels.packed`
    for write in stage.writes:
        if write.reducer is not None and rows not in write.labels:
            pieces = min(pieces, max(STATES_BYTES // max(write.state_bytes, 1), 4))
    sizes[rows] = -(-sizes[rows] // pieces)
    return tuple(sizes)


def _contiguous_dimension(stage: Fused) -> int | None:
    """The dimension that the operands of most axes have contiguous in memory, or what is stored of more; None
    where they disagree. Those of fewer are small, however they lie."""
    every = [[a.label for a in r.axes if a.size > 1] for r in stage.reads]
    plain = [w.labels for w in stage.writes if w.reducer is None and WHOLE not in w.labels]
    stored = [[d for d in labels if stage.domain[d] > 1] for labels in plain]
    most = max(map(len, stored), default=0)
    wide = stored if most > max(map(len, every), default=0) else [e for e in every if e and e[-1] != WHOLE]
    most = max(map(len, wide), default=0)
    last = {labels[-1] for labels in wide if len(labels) == most}
    return last.pop() if len(last) == 1 else None


def patches(tile: Box, sizes: tuple[int, ...], reduced: Sequence[int], tasks: int = TASKS) -> list[Patch]:
    """The patches of a tile, their blocks grouped into about `tasks` tasks.

    Blocks start at multiples of their size in the global index space, so that tiles cut blocks at
    their borders only.
    """
    spans = [cut_at_multiples(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)]
    kept = [d for d in range(len(tile)) if d not in reduced]
    out = []
    npatches = prod(len(spans[d]) for d in kept)
    for fixed in product(*(spans[d] for d in kept)):
        box = list(tile)
        for d, span in zip(kept, fixed, strict=True):
            box[d] = span
        inner = [spans[d] if d in reduced else [box[d]] for d in range(len(tile))]
        every = blocks(inner)
        count = max(1, tasks // npatches, _steps_of(box))
        out.append(Patch(tuple(box), _runs(every, count)))
    return out


def _steps_of(box: Sequence[tuple[int, int]]) -> int:
    """Into how many tasks a box is cut if it has too many elements for one."""
    return min(box_size(box) // _MOST_ELEMENTS, _MOST_STEPS)


def is_one_block(span: tuple[int, int], size: int) -> bool:
    """Whether no multiple of `size` cuts `[lo, hi)`: a tile no larger than a block may still lie in two."""
    lo, hi = span
    return (lo // size + 1) * size >= hi


def walks(stage: Fused) -> bool:
    """Whether random numbers are drawn in a stage that are walked to: its blocks go in C order."""
    return any(row.kind == "random" and is_walk(row.params[0]) for row in stage.rows)


def sweep(
    tile: Box, sizes: tuple[int, ...], band: tuple[int, int] | None = None, in_order: bool = False
) -> Sweep:
    """A tile's blocks in runs that differ in one dimension only, for results reduced over different ones;
    along the first that is cut, where all blocks are to go `in_order`."""
    spans = [cut_at_multiples(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)]
    if not spans:
        return Sweep(-1, (((),),))
    if in_order or band is None:
        most = max(range(len(spans)), key=lambda d: (len(spans[d]), -d))
        split = next((d for d, own in enumerate(spans) if len(own) > 1), 0) if in_order else most
        own = spans[split]
        count = min(max(TASKS, _steps_of(tile)), len(own))
        parts = [own[i * len(own) // count : (i + 1) * len(own) // count] for i in range(count)]
    else:
        split, length = band
        parts = [list(part) for _, part in groupby(spans[split], lambda step: step[0] // length)]
    runs = tuple(blocks([part if d == split else s for d, s in enumerate(spans)]) for part in parts)
    return Sweep(split, runs)


def cut_tile(stage: Fused, tile: Box, sizes: tuple[int, ...], together: bool) -> Cut:
    """A tile cut as its stage's results want it; `together`: a plain result's blocks need no patches."""
    if len(stage.writes) > 1 or walks(stage):
        return sweep(tile, sizes, stage.band, in_order=walks(stage))
    if stage.band is not None:
        return _banded(stage, tile, sizes, together)
    (write,) = stage.writes
    if write.reducer is not None:
        reduced = [d for d in range(len(stage.domain)) if d not in write.labels]
        return patches(tile, sizes, reduced, HEAVY_TASKS if stage.heavy else TASKS)
    if not together:
        return patches(tile, sizes, [])
    spans = [cut_at_multiples(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True)]
    return [Patch(tile, _runs(tuple(product(*spans)), TASKS))]


def _banded(stage: Fused, tile: Box, sizes: tuple[int, ...], together: bool) -> list[Patch]:
    """As `cut_tile`, for a pass over sources: a run of blocks needs what is read at one time.

    States are combined in the order of their blocks, so only those of a plain result may be put in another.
    """
    assert stage.band is not None, "checked by the caller"
    along, length = stage.band
    (write,) = stage.writes

    def runs(every: Sequence[Box]) -> tuple[tuple[Box, ...], ...]:
        return tuple(tuple(own) for _, own in groupby(every, lambda block: block[along][0] // length))

    if write.reducer is not None:
        reduced = [d for d in range(len(stage.domain)) if d not in write.labels]
        found = patches(tile, sizes, reduced, 1)
        return [Patch(patch.box, runs([b for run in patch.runs for b in run])) for patch in found]
    every = list(product(*(cut_at_multiples(lo, hi, b) for (lo, hi), b in zip(tile, sizes, strict=True))))
    every.sort(key=lambda block: block[along][0])
    if together:
        return [Patch(tile, runs(every))]
    return [Patch(box_around(run), (run,)) for run in runs(every)]


def box_around(blocks: Sequence[Box]) -> Box:
    """The box around some blocks."""
    return tuple((min(lo for lo, _ in dim), max(hi for _, hi in dim)) for dim in zip(*blocks, strict=True))


def _runs(every: Run, count: int) -> tuple[Run, ...]:
    count = min(count, len(every))
    return tuple(every[i * len(every) // count : (i + 1) * len(every) // count] for i in range(count))
