"""Numbers of a stream that memory has no room for: drawn some at a time, one behind the other, into a file
without a name, or put in another order there."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import shape_tuple
from spartan_ng.costs.tuned import DRAW_NS
from spartan_ng.graph.evaluation import work_ahead
from spartan_ng.memory import copied_bytes
from spartan_ng.scratch import on_disk

PIECE = 1 << 18
"""Numbers that are drawn at a time, at most."""
_SWAPS = 1 << 14
"""Elements that change places one by one have numbers of Python's, ten times as large."""
_WHAT = "random numbers"
_FEW_BYTES = 1 << 16
"""Memory has room for so many without being asked."""
_LEAST_BYTES = 4
"""Numbers of fewer bytes are cut out of larger ones, of which the end of a piece would lose some."""


def numbers_ahead(size: Any) -> None:
    """Tell that NumPy is about to draw so many numbers."""
    count = size if type(size) is int else prod(shape_tuple(size))
    work_ahead(count * DRAW_NS / 1e9)


def may_be_long(size: Any) -> bool:
    """Whether so many numbers may be more than memory has room for."""
    count = size if type(size) is int else prod(shape_tuple(size))
    return count * _LEAST_BYTES > _FEW_BYTES and count * _LEAST_BYTES > copied_bytes()


def long_stream(draw: Callable[[int], Any], size: Any) -> np.ndarray[Any, Any] | None:
    """As many independent numbers as `draw(size)` would give at once; None where memory has room for these.

    Parameters
    ----------
    draw : gives so many numbers, and goes on in the stream from call to call
    """
    shape = shape_tuple(size)
    if not may_be_long(shape):
        return None
    kind = np.asarray(draw(0)).dtype
    nbytes = prod(shape) * kind.itemsize
    if nbytes <= copied_bytes() or kind.itemsize < _LEAST_BYTES or kind.hasobject:
        return None
    out = on_disk((prod(shape),), kind, _WHAT)
    piece = min(PIECE, copied_bytes() // kind.itemsize + 1)
    for k in range(0, len(out), piece):
        part = out[k : k + piece]
        part[...] = draw(len(part))
    return out.reshape(shape)


def long_order(shuffle: Callable[[Any], None], n: int, columns: int = 0) -> np.ndarray[Any, Any] | None:
    """The numbers up to `n` as `shuffle` orders them in place, as rows of so many columns each if that is
    not 0; None where memory has room for these."""
    if is_copied(n * max(columns, 1) * np.dtype(np.intp).itemsize):
        return None
    out = _range(n, columns)
    shuffle(out)
    return out


def long_orders(permuted: Callable[..., Any], shape: tuple[int, ...], axis: int) -> np.ndarray[Any, Any]:
    """The places along an axis, each of its lines as `permuted` orders it, in a file."""
    out = on_disk(shape, np.dtype(np.intp), _WHAT)
    places = np.arange(shape[axis]).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    np.copyto(out, places)
    permuted(out, axis=axis, out=out)
    return out


_TAILS = {True: 50, False: 20}
"""NumPy puts a range in order from its end on, as far as is asked for, where that is more than one part in so
many of it (with a shuffle of what is chosen, or without), and"""
_TAIL_OF = 10_000
"""the range is longer than that; fewer numbers are drawn one by one."""


def long_choice(
    integers: Callable[[Any], Any], n: int, count: int, shuffle: bool
) -> np.ndarray[Any, Any] | None:
    """So many different numbers up to `n`, as NumPy's generators choose them, in a file; None where it needs
    no range for them, or memory has room for that.

    Parameters
    ----------
    integers : draws a number for each of an array of numbers, from 0 up to that and with it
    """
    if is_copied(n * np.dtype(np.intp).itemsize) or n <= _TAIL_OF or not n // _TAILS[shuffle] < count <= n:
        return None
    out = _range(n)
    places: Any = out.data
    last = max(n - count, 1)
    for end in range(n, last, -_SWAPS):
        ends = np.arange(end - 1, max(end - _SWAPS, last) - 1, -1)
        for i, j in zip(ends.tolist(), integers(ends).tolist(), strict=True):
            places[i], places[j] = places[j], places[i]
    return out[n - count :]


def _range(n: int, columns: int = 0) -> np.ndarray[Any, Any]:
    """The numbers up to `n` in a file, as rows of so many columns each if that is not 0."""
    out = on_disk((n, columns) if columns else (n,), np.dtype(np.intp), _WHAT)
    for k in range(0, n, PIECE):
        part = out[k : k + PIECE]
        part.T[...] = np.arange(k, k + len(part))
    return out


def is_copied(nbytes: int) -> bool:
    """Whether memory has room for a copy of what takes so many bytes."""
    return nbytes <= _FEW_BYTES or nbytes <= copied_bytes()
