"""Values of a dtype with all that is special in it: limits, infinities, NaN, signed zeros, subnormals."""

from __future__ import annotations

from typing import Any

import numpy as np


def sample(dtype: Any, seed: int, n: int = 3001) -> np.ndarray[Any, Any]:
    """`n` values in an order that the seed gives; each special one of floats three times."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.random(n) > 0.5
    if dtype.kind in "iu":
        integers = np.iinfo(dtype)
        values = random.integers(max(integers.min, -50), 50, n).astype(dtype)
        values[:4] = [integers.max, integers.min, 0, 1]
    else:
        values = (random.standard_normal(n) * 4).astype(dtype)
        if dtype.kind == "f":
            floats = np.finfo(dtype)
            special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5]
            special += [floats.max, -floats.max, floats.tiny, floats.smallest_subnormal]
            special += [-floats.smallest_subnormal]
            values[: 3 * len(special)] = np.repeat(special, 3).astype(dtype)
    return random.permutation(values)
