"""Sums of rows by their labels, one row after the other; see `compiled.group_sums`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled

NUMBER = np.float64


@compiled
def kernel(t: Any) -> None:
    """Each row is added to the line of its label."""
    n, width, count = t[0, 3], t[0, 4], t[0, 5]
    labels = array_at(t[0, 0], (n,), np.int64)
    rows = array_at(t[0, 1], (n, width), NUMBER)
    out = array_at(t[0, 2], (count, width), NUMBER)
    out[:] = 0.0
    for i in range(n):
        k = labels[i]
        if 0 <= k < count:
            o, r = out[k], rows[i]
            for c in range(width):
                o[c] += r[c]
