"""Numbers of a stream that memory has no room for: drawn where they are worked on, one behind the other, or
put in another order in a file without a name."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core.conversion import shape_tuple
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.ordering.sorting import searchsorted
from spartan_ng.costs.tuned import DRAW_NS
from spartan_ng.errors import OutOfResources
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import work_ahead
from spartan_ng.graph.node import Node
from spartan_ng.memory import available_bytes, copied_bytes
from spartan_ng.ops.narrow import is_narrow
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.ops.walks import Passage, Stream, frozen, state_of, walk_of
from spartan_ng.progress import progress
from spartan_ng.scratch import on_disk

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

PIECE = 1 << 18
"""Numbers that are drawn at a time, at most."""
_SWAPS = 1 << 14
"""Elements that change places one by one have numbers of Python's, ten times as large."""
_WHAT = "random numbers"
_FEW_BYTES = 1 << 16
"""Memory has room for so many without being asked."""
_MOST_BYTES = 8
"""Of a number."""
_OF_ROWS = {
    "multinomial": "binomial",
    "multivariate_hypergeometric": "hypergeometric",
    "dirichlet": "standard_gamma",
}
"""What draws a row at a time, as long as one of its arguments, and what each number of it is made of."""
_ROWS = {"random_sample": "random", "randint": "integers", "tomaxint": "integers", **_OF_ROWS}
"""What legacy generators call it."""
_WALKERS = {np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64}


def numbers_ahead(size: Any) -> None:
    """Tell that NumPy is about to draw so many numbers."""
    count = size if type(size) is int else prod(shape_tuple(size))
    work_ahead(count * DRAW_NS / 1e9)


def may_be_long(size: Any) -> bool:
    """Whether so many numbers may be more than memory has room for."""
    count = size if type(size) is int else prod(shape_tuple(size))
    return count * _MOST_BYTES > _FEW_BYTES and count * _MOST_BYTES > copied_bytes()


def long_stream(
    generator: Any, method: str, size: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Node, Passage] | None:
    """As many independent numbers, or rows, as a method of one of NumPy's generators gives for a size, drawn
    where and when they are worked on; None where memory has room for these, or nobody can walk to them.

    Returns
    -------
    the node, and the walk at whose end the generator is to go on
    """
    shape = shape_tuple(size)
    row = _ROWS.get(method, method)
    bits = type(generator._bit_generator)
    known = next((kind.__name__ for kind in bits.__mro__ if kind in _WALKERS), None)
    if known is None or row not in DISTRIBUTIONS or not may_be_long(shape):
        return None
    sizes = [np.ndim(v) for v in (*args, *named.values())]
    if method in _OF_ROWS and sum(sizes) != 1:
        return None
    inner = shape[len(shape) - max(sizes, default=0) :] if any(sizes) and method not in _OF_ROWS else ()
    one = np.asarray(getattr(generator, method)(*args, size=(0, *inner), **named))  # its errors
    unit = prod(one.shape[1:])
    if method in _OF_ROWS:
        shape = (*shape, unit)
    elif one.shape[1:] != inner:
        return None
    if prod(shape) * one.dtype.itemsize <= copied_bytes() or one.dtype.hasobject:
        return None
    if len(inner) >= len(shape) or unit > PIECE:
        return None
    if is_narrow(method, named) and (inner or "endpoint" in named):
        return None
    state, given = frozen(state_of(generator)), frozen((args, named))
    is_legacy = isinstance(generator, np.random.RandomState)
    key = Stream(known, is_legacy, state, method, given, inner, unit).key
    return build.random(row, ("walk", key), (), shape, one.dtype), walk_of(key)


def check_one_go(name: str, shape: tuple[int, ...]) -> None:
    """OutOfResources where NumPy, which draws these in one go, will find no memory for them."""
    least, there = prod(shape), available_bytes()
    if least > there:
        raise OutOfResources(
            f"{name}: {least:,} numbers are drawn in one go here, which takes more than the memory of "
            f"{there:,} bytes: draw fewer at a time, or such that each is a number that depends on no array"
        )


def places_by(weights: Any, uniform: Callable[[Any], ndarray], shape: tuple[int, ...]) -> ndarray:
    """Places of weights that add up to 1, as NumPy's generators choose them, any of them several times."""
    ends = np.asarray(weights, np.float64).cumsum()
    ends /= ends[-1]
    return searchsorted(wrap(ends), uniform(shape), "right")


def through(walk: Passage, count: int) -> Any:
    """The generator's state behind so many numbers of a walk, with a bar for those that nobody has drawn."""
    with progress(_WHAT, "number") as bar:
        return walk.end(count, bar)


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
