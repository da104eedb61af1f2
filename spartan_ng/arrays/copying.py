"""Copies of NumPy arrays: of large ones at the memory's speed, by several threads; and of runs of elements.

One core alone writes half of what the memory takes, less where pages are fresh.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from mmap import mmap
from typing import Any

import numpy as np

from spartan_ng.config import config
from spartan_ng.system import machine

_PART_BYTES = 1 << 24
"""The least that a thread of its own is started for. Memory of less than two such parts is used again when it
is free: its pages are there, and one thread has copied it before another has begun."""
_MOST_THREADS = 8
"""More do not copy faster: a few saturate the memory."""
LINE_BYTES = 64
"""A line of the cache: vectors that lie across two take longer."""


def address(array: Any) -> int:
    """Where the array's first element lies in this process's memory."""
    return int(array.__array_interface__["data"][0])


def whole_lines(nbytes: int) -> np.ndarray[Any, Any]:
    """So many bytes, from the beginning of a line of the cache on."""
    memory = np.empty(nbytes + LINE_BYTES, np.uint8)
    first = -address(memory) % LINE_BYTES
    return memory[first : first + nbytes]


def owner(array: np.ndarray[Any, Any]) -> Any:
    """Whose memory an array looks at; None where it is its own.

    An array that somebody keeps for another (`kept`) is looked through: it is nobody's memory."""
    base: Any = array.base
    while base is not None and (isinstance(base, np.ndarray) or hasattr(base, "kept")):
        base = base.base if isinstance(base, np.ndarray) else base.kept
    return base


def is_mapped(array: np.ndarray[Any, Any]) -> bool:
    """Whether an array's memory is a file's, which the kernel reads when it is used, and lets go."""
    base = owner(array)
    return isinstance(base, mmap) or getattr(base, "of_file", False)


def watch_of(array: np.ndarray[Any, Any]) -> Any:
    """Who says whether the file that an array is mapped from is what it was; None of other arrays."""
    return getattr(getattr(owner(array), "mapping", None), "watch", None)


def private_copy(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy with the same order of axes in memory."""
    parts = min(value.nbytes // _PART_BYTES, _MOST_THREADS)
    if parts > 1:  # the system is asked for what is large
        parts = min(parts, config.threads or machine.cores())
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


def aligned(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, or a copy where its elements lie across the processor's words, as they do in the middle of a
    message: NumPy copies such an operand in each product, and kernels are compiled for no such."""
    return value if value.flags.aligned else private_copy(value)


def run_of(value: np.ndarray[Any, Any], first: int, length: int) -> np.ndarray[Any, Any]:
    """At most `length` elements in C order from position `first` on: a view, or a copy of these alone."""
    if value.flags.c_contiguous or value.ndim == 1:
        return value.reshape(-1)[first : first + length]
    out = np.empty(max(min(length, value.size - first), 0), value.dtype)
    copy_run(value, first, out)
    return out


def copy_run(value: np.ndarray[Any, Any], first: int, out: np.ndarray[Any, Any]) -> None:
    """Copy a run of elements in C order, from position `first` on, to the contiguous 1-d array `out`.

    However the array lies in memory, there is no other copy of it.
    """
    if value.flags.c_contiguous or value.ndim <= 1:
        np.copyto(out, value.reshape(-1)[first : first + len(out)])
        return
    row = prod(value.shape[1:])
    start = 0
    while start < len(out):
        at, inside = divmod(first + start, row)
        rows = (len(out) - start) // row
        if inside or not rows:
            stop = min(start + row - inside, len(out))
            copy_run(value[at], inside, out[start:stop])
        else:
            stop = start + rows * row
            np.copyto(out[start:stop].reshape(rows, *value.shape[1:]), value[at : at + rows])
        start = stop
