"""Where the elements of an array lie: boxes of indices, cuts over workers, references to tiles."""

from spartan_ng.arrays.extent import Box, box_of, box_shape, box_size, intersect, is_empty
from spartan_ng.arrays.ref import ArrayRef
from spartan_ng.arrays.tiling import LEAST_GRAINED, Tiling, cut, grain, power_below, step_of

__all__ = [
    "LEAST_GRAINED",
    "ArrayRef",
    "Box",
    "Tiling",
    "box_of",
    "box_shape",
    "box_size",
    "cut",
    "grain",
    "intersect",
    "is_empty",
    "power_below",
    "step_of",
]
