"""Fourier transforms of lines that memory has no room for: in four steps, by lines of about their root.

A line of `p * q` elements, as `p` rows of `q`, is transformed down its columns, times a root of unity for
each element, and transformed along its rows; read down its columns it is the line's transform. Each step
works on some columns or rows at a time, and what lies between them goes to disk.

Bailey, "FFTs in external or hierarchical memory" (Journal of Supercomputing 4, 1990), section 3.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import creation, joining, manipulation, room
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import is_limited
from spartan_ng.memory import block_bytes
from spartan_ng.ops.transforms import transform_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_OTHER = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
"""The factor of the transform in the other direction."""
_SMOOTH = (2, 3, 5, 7)
"""The only factors of lengths that are recommended."""


def line_fits(a: Handle, length: int) -> bool:
    """Whether a worker has room for the transform of a line; what the program has in its own memory is
    transformed as it is, whatever that takes."""
    return not is_limited() or room.work_fits([a], transform_bytes(length))


def transform(name: str, a: ndarray, length: int, axis: int, norm: Any) -> ndarray:
    """`numpy.fft`'s function of that name on the lines along an axis, which have as many elements as it says,
    or as half a spectrum of so many has.

    Raises
    ------
    MemoryBudgetError : the length has a factor for which there is no room either
    """
    match name:
        case "hfft":
            return transform("irfft", ufuncs.conjugate(a), length, axis, _OTHER[norm])
        case "ihfft":
            return ufuncs.conjugate(transform("rfft", a, length, axis, _OTHER[norm]))  # type: ignore[no-any-return]
    lines = manipulation.moveaxis(a, axis, -1)
    if name == "irfft":  # the other half mirrors it; what is imaginary of its ends comes to nothing
        mirrored = ufuncs.conjugate(lines[..., 1 : (length + 1) // 2][..., ::-1])
        lines = joining.concatenate([lines, mirrored], -1)
    found = _in_steps(lines, "ifft" if name in ("ifft", "irfft") else "fft", norm)
    if name == "irfft":
        found = found.real
    return manipulation.moveaxis(found, -1, axis)


def _in_steps(lines: ndarray, name: str, norm: Any) -> ndarray:
    """The complex transform of lines that are an array's last axis."""
    n = lines.shape[-1]
    p, q = _factors(n)
    rows = lines.reshape((*lines.shape[:-1], p, q))
    down = _lines(name, rows, -2, norm)
    number: Any = np.result_type(np.finfo(down.dtype).dtype, float).type  # each place is exact in it
    turn = number(8 if name == "ifft" else -8) * np.arctan(number(1)) / number(n)
    places = (
        ufuncs.multiply(creation.arange(p, dtype=number)[:, None], creation.arange(q, dtype=number)) * turn
    )
    roots = (ufuncs.cos(places) + 1j * ufuncs.sin(places)).astype(down.dtype)
    found = _lines(name, down * roots, -1, norm)
    return found.swapaxes(-1, -2).reshape(lines.shape)


def _lines(name: str, a: ndarray, axis: int, norm: Any) -> ndarray:
    dtype = getattr(np.fft, name)(np.zeros(1, a.dtype), n=2).dtype
    keywords = (("norm", norm),) if norm is not None else ()
    node = build.along_axis(f"fft.{name}", [a._node()], a.ndim + axis, dtype=dtype, keywords=keywords)
    return wrap_node(node)


def _factors(n: int) -> tuple[int, int]:
    """Two factors of a length: the second the largest of which a thread's block may have a line, if there is
    room for lines of the first, too."""
    budget = room.budget()
    within = block_bytes(budget)
    found = sorted({d for k in range(1, isqrt(n) + 1) if n % k == 0 for d in (k, n // k)})
    q = max((d for d in found if transform_bytes(d) <= within), default=1)
    if transform_bytes(n // q) > budget:  # a longer row for shorter columns
        q = min((d for d in found if d * d >= n), default=n)
    if max(transform_bytes(q), transform_bytes(n // q)) > budget:
        better = _smooth(n)
        raise MemoryBudgetError(
            f"fft: a line of {n:,} elements takes about {transform_bytes(n):,} bytes, with a budget of "
            f"{budget:,}, and its length is no product of two that have room: transform {better:,} elements "
            f"(n={better} fills it up with zeros), or raise config.memory_bytes (of workers, --memory)"
        )
    return n // q, q


def _smooth(n: int) -> int:
    """The least length from `n` on that has small factors only."""
    while True:
        left = n
        for factor in _SMOOTH:
            while left % factor == 0:
                left //= factor
        if left == 1:
            return n
        n += 1
