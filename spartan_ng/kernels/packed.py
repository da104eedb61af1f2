"""How a pass over a compressed tile goes, and how its rows are cut for that.

Three ways, by what the body does with the tile: over the words alone (functions of single elements, folds of
the rows: the work does not grow with the rows, and one block does it), by look-ups of each row's tuples
(products, sums of rows: blocks to share between threads), or over the elements, a block of which is made in
the cache.

"On Optimizing Operator Fusion Plans", section 5.2: operators that are called for distinct values only.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from math import prod

from msgspec.structs import replace

from spartan_ng.arrays import WHOLE, Box
from spartan_ng.compressed import CompressedMatrix
from spartan_ng.kernels.blocks import Cut, block_sizes, cut_tile
from spartan_ng.kernels.contract import is_matrix_product
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused

WORDS, LOOKUPS, ELEMENTS = "words", "look-ups", "elements"
_PIECE, _FEW = 1 << 18, 8
_LARGE_PIECE, _MOST = 1 << 22, 64
"""Look-ups or plain elements of a block, about a tenth of a millisecond's work for up to 8 blocks, and two
milliseconds' for up to 64: each block makes the tuples' products once more."""


def packed_cut(
    stage: Fused, tile: Box, matrix: CompressedMatrix, packed: AbstractSet[int]
) -> tuple[tuple[int, ...], Cut]:
    """The extents of a block and the cut of a tile whose operands `packed` are compressed; the blocks follow
    `matrix`, the first of them."""
    rows, _ = stage.driver_labels
    sizes = [max(hi - lo, 1) for lo, hi in tile]
    way = way_of(stage, packed)
    if way == ELEMENTS:
        others = tuple(d for d in range(len(sizes)) if d != rows)
        sizes = list(block_sizes(replace(stage, driver=-1, whole=others), tile, calls=True))
    else:
        looked_up = len(matrix.coding.groups) * _columns(stage) if way == LOOKUPS else 0
        work = sizes[rows] * (looked_up + len(matrix.plain_columns))
        sizes[rows] = -(-sizes[rows] // max(min(work // _PIECE, _FEW), min(work // _LARGE_PIECE, _MOST), 1))
    return tuple(sizes), cut_tile(stage, tile, tuple(sizes), together=False)


def way_of(stage: Fused, packed: AbstractSet[int]) -> str:
    """The way of a stage whose reads `packed` are compressed."""
    first = len(stage.reads)
    rows_label = stage.driver_labels[0]
    known = {*packed, *(i for i, row in enumerate(stage.rows, first) if row.format == "compressed")}
    labels = [r.labels for r in stage.reads] + [row.labels for row in stage.rows]
    shapes = [r.shape for r in stage.reads] + [row.shape for row in stage.rows]
    for i, (names, shape) in enumerate(zip(labels, shapes, strict=True)):
        long = [d for d, n in zip(names, shape, strict=True) if d != WHOLE and n > 1]
        if i not in known and rows_label in long and len(long) > 1:
            return ELEMENTS
    found = {_use(row, known, labels, rows_label) for row in stage.rows}
    for write in stage.writes:
        if write.reducer is not None:
            found.add(_use(write.reducer, known, labels, rows_label))
        elif write.register in known:
            return ELEMENTS
    return next(way for way in (ELEMENTS, LOOKUPS, WORDS) if way in found)


def _use(row: Row, known: AbstractSet[int], labels: list[tuple[int, ...]], rows: int) -> str:
    """What a row or reducer does with its compressed operands."""
    packed = [a for a in row.args if a in known]
    if not packed:
        scalar = all(d == WHOLE or d != rows for a in row.args for d in labels[a])
        return WORDS if scalar and prod(row.shape) == 1 else LOOKUPS
    if row.kind == "map" and row.format == "compressed":
        return WORDS
    if row.kind == "contract" and len(packed) == 1 and row.dtype.kind in "iuf":
        return LOOKUPS if is_matrix_product(*row.params) else ELEMENTS
    if row.kind == "fold" and len(row.args) == 1 and row.fn in ("add", "maximum", "minimum"):
        (axes,) = row.params
        folded = {labels[packed[0]][a] for a in axes}
        if rows in folded:
            return WORDS
        return LOOKUPS if row.fn == "add" and folded else ELEMENTS
    return ELEMENTS


def _columns(stage: Fused) -> int:
    """Look-ups for each row and group: the dense columns of the widest product."""
    label, (high, wide) = stage.driver_labels[0], (a.size for a in stage.reads[stage.driver].axes)
    products = [row for row in stage.every_row if row.kind == "contract"]
    return max([1, *(prod(row.shape) // max(high if label in row.labels else wide, 1) for row in products)])
