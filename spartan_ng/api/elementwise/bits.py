"""Bits packed into bytes, and bytes taken apart: eight elements of one axis against one.

NumPy does both as fast as memory is read. On workers, and where there is no room, they are steps of a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, joining, manipulation, reductions
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_SHIFTS = {"big": np.arange(7, -1, -1, dtype=np.uint8), "little": np.arange(8, dtype=np.uint8)}


def _last(a: Any, axis: Any, bitorder: str) -> tuple[ndarray, int]:
    """An array with the axis in question as its last, and where that came from."""
    if not isinstance(bitorder, str):
        raise TypeError(f"bitorder must be a str, not {type(bitorder).__name__}")
    if bitorder not in _SHIFTS:
        raise ValueError("'order' must be either 'little' or 'big'")
    a = as_handle(a)
    if axis is None:
        return a.reshape(-1 if a.size else 0), -1
    a = a if a.ndim else a.reshape(1)
    where = build.axis_index(axis, a.ndim)
    return manipulation.moveaxis(a, where, -1), where


@numpy_function(np.packbits, eager=True)
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> ndarray:
    """Eight elements as the bits of one byte; what is missing of the last eight is zero."""
    if door.fits_here(as_handle(a).nbytes):
        return by_numpy(np.packbits, a, axis, bitorder)  # type: ignore[no-any-return]
    bits, where = _last(a, axis, bitorder)
    if bits.dtype.kind not in "biu":
        raise TypeError(f"Expected an input array of integer or boolean data type, not {bits.dtype}")
    bits = (bits != 0).astype(np.uint8)
    missing = -bits.shape[-1] % 8
    if missing:
        margin = constants.zeros((*bits.shape[:-1], missing), np.uint8)
        bits = joining.concatenate([bits, margin], -1)
    octets = bits.reshape((*bits.shape[:-1], bits.shape[-1] // 8, 8)) << _SHIFTS[bitorder]
    return manipulation.moveaxis(reductions.sum(octets, -1, np.uint8), -1, where).copy()


@numpy_function(np.unpackbits, eager=True)
def unpackbits(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> ndarray:
    """The bits of each byte as elements; `count` of them, or all but so many where it is negative."""
    if door.fits_here(8 * as_handle(a).nbytes):
        return by_numpy(np.unpackbits, a, axis, count, bitorder)  # type: ignore[no-any-return]
    octets, where = _last(a, axis, bitorder)
    if octets.dtype != np.uint8:
        raise TypeError(f"Expected an input array of unsigned byte data type, not {octets.dtype}")
    bits = (octets[..., None] >> _SHIFTS[bitorder]) & 1
    n = 8 * octets.shape[-1]
    bits = bits.reshape((*octets.shape[:-1], n))
    if count is not None:
        if count < -n:
            raise ValueError(f"-ve count too large: {count} of {n} bits")
        wanted = count if count >= 0 else n + count
        if wanted > n:
            margin = constants.zeros((*bits.shape[:-1], wanted - n), np.uint8)
            bits = joining.concatenate([bits, margin], -1)
        bits = bits[..., :wanted]
    return manipulation.moveaxis(bits, -1, where).copy()


__all__ = ["packbits", "unpackbits"]
