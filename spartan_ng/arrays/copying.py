"""Copies of NumPy arrays at the memory's speed: large ones are made by several threads, a part each.

One core alone writes half of what the memory takes, less where pages are fresh.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np

from spartan_ng.config import config

_PART_BYTES = 1 << 21
"""The least that a thread of its own is started for: a page of the largest size."""
_MOST_THREADS = 8
"""More do not copy faster: a few saturate the memory."""


def private_copy(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same order of axes in memory."""
    cores = config.threads or len(os.sched_getaffinity(0))
    parts = min(cores, _MOST_THREADS, value.nbytes // _PART_BYTES)
    if parts < 2 or value.ndim == 0 or value.dtype.hasobject:
        return value.copy(order="K")
    out = np.empty_like(value, subok=False)
    outermost = max(range(value.ndim), key=lambda axis: (value.shape[axis] > 1, abs(out.strides[axis])))
    bounds = np.linspace(0, value.shape[outermost], parts + 1).astype(int).tolist()

    def copy_part(span: tuple[int, int]) -> None:
        key = (*[slice(None)] * outermost, slice(*span))
        np.copyto(out[key], value[key])

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(parts) as threads:
        list(threads.map(copy_part, pairwise(bounds)))
    return out
