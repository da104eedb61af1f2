"""Where the elements of an array lie: boxes of indices, cuts over workers, references to tiles."""

from spartan_ng.arrays.extent import (
    Box,
    box_of,
    box_shape,
    box_size,
    box_slices,
    cover,
    intersect,
    is_empty,
    slices_within,
)
from spartan_ng.arrays.ref import ArrayRef, Key
from spartan_ng.arrays.tiling import WHOLE, Tiling, part_span

__all__ = [
    "WHOLE",
    "ArrayRef",
    "Box",
    "Key",
    "Tiling",
    "box_of",
    "box_shape",
    "box_size",
    "box_slices",
    "cover",
    "intersect",
    "is_empty",
    "part_span",
    "slices_within",
]
