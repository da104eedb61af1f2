"""Functions that users might write."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.ops.functions import UserFunction


def _affine(x: Any) -> Any:
    return x * 2 + 1


def _placed(x: Any, extent: Box) -> Any:
    lo, hi = extent[-1]
    return x + np.arange(lo, hi) % 5


AFFINE = UserFunction(_affine, "stages")
"""Of a block of any shape."""
PLACED = UserFunction(_placed, "stages")
"""Of a block and its place."""
SUM = UserFunction(lambda x, y: x + y, "stages")
LEAST = UserFunction(lambda x, y: np.where(x < y, x, y), "stages")
"""Of two arrays, as folds and scans take them."""
