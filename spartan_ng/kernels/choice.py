"""`where` without branches: of two numbers' bits, those of one or the other.

NumPy's own loop asks for each element which to take. Where nobody foresees the answers that is several times
slower than a pass over what lies in the cache, and it makes an array for each block. Here three passes fill a
buffer: what the two differ in, nothing where the second is wanted, and the second put back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_KINDS = frozenset("biufmM")
"""Kinds of dtypes whose values are their bits."""
_SIZES = frozenset({1, 2, 4, 8})


def has_bits(dtype: np.dtype[Any]) -> bool:
    """Whether values of the dtype can be chosen by their bits."""
    return dtype.kind in _KINDS and dtype.itemsize in _SIZES


def choose(condition: Any, x: Any, y: Any, out: Any) -> Any:
    """`np.where(condition, x, y)` in `out`, or, if that is None, in an array of its own.

    `out` has the dtype of the result, and that has bits. As with NumPy's functions, it may be (part of) an
    operand.
    """
    if out is None:
        return np.where(condition, x, y)
    condition, x, y = np.asarray(condition), np.asarray(x), np.asarray(y)
    if np.may_share_memory(out, y):  # the passes read it after they have written
        condition, x, y = np.logical_not(condition), y, x
    needed_late = np.may_share_memory(out, y) or np.may_share_memory(out, condition)
    if needed_late or condition.dtype != np.bool_ or not (x.dtype == y.dtype == out.dtype):
        np.copyto(out, np.where(condition, x, y))
        return out
    bits = f"u{out.dtype.itemsize}"
    mine, others, found = x.view(bits), y.view(bits), out.view(bits)
    np.bitwise_xor(mine, others, out=found)
    np.multiply(found, condition, out=found)
    np.bitwise_xor(found, others, out=found)
    return out
