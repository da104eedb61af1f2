"""Margins around arrays: every mode of `np.pad`, along one axis after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import creation, joining, manipulation, reductions
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import gathered, numpy_function
from spartan_ng.api.core.handle import copied
from spartan_ng.api.elementwise import logic, ufuncs
from spartan_ng.api.numeric import progressions
from spartan_ng.api.places.rearranging import apply_along_axis, flip
from spartan_ng.api.places.taking import take
from spartan_ng.api.statistics import quantiles, statistics

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": reductions.max,
    "mean": statistics.mean,
    "median": quantiles.median,
    "minimum": reductions.min,
}
_KEYWORDS = {
    **dict.fromkeys(_STATISTICS, "stat_length"),
    **dict.fromkeys(("reflect", "symmetric"), "reflect_type"),
    **dict.fromkeys(("edge", "empty", "wrap"), ""),
    "constant": "constant_values",
    "linear_ramp": "end_values",
}
"""The keyword that each mode knows."""


@numpy_function(np.pad, eager=True, asks=frozenset(_KEYWORDS.values()) - {""})
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> ndarray:
    """An array with a margin.

    Parameters
    ----------
    pad_width : elements before and after, for all axes, for each, or for those that a dict names
    mode : a name, or a function that fills the margins of one line in place
    """
    a = as_handle(array)
    dtype, widths = a.dtype, _widths(pad_width, a.ndim)
    if callable(mode):
        return _filled(a, widths, mode, keywords)  # type: ignore[no-any-return]
    if mode not in _KEYWORDS:
        raise ValueError(f"mode '{mode}' is not supported")
    unknown = set(keywords) - {_KEYWORDS[mode]}
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    option = keywords.get(_KEYWORDS[mode])
    if mode == "constant":
        option = _elements(0 if option is None else option, a)
    for axis, (lo, hi) in enumerate(widths.tolist()):
        if not (lo or hi):
            continue
        if a.shape[axis] == 0 and mode not in ("constant", "empty"):
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty' (of {a.shape})"
            )
        a = _along(a, axis, lo, hi, mode, option)
    if a.dtype != dtype:  # joined arrays have the machine's order of bytes
        return a.astype(dtype)
    return a if widths.any() else copied(a)


def _widths(given: Any, ndim: int) -> Any:
    """(before, after) for each axis."""
    if isinstance(given, dict):
        pairs = np.zeros((ndim, 2), np.int64)
        for axis, width in given.items():
            pairs[axis] = width
    else:
        pairs = np.asarray(given)
    if pairs.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    pairs = np.broadcast_to(pairs, (ndim, 2))
    if (pairs < 0).any():
        raise ValueError("index can't contain negative values")
    return pairs


def _pair(option: Any, axis: int, ndim: int) -> Any:
    """What an option says of both ends of an axis."""
    return np.broadcast_to(np.asarray(option), (ndim, 2))[axis]


def _elements(option: Any, a: Any) -> Any:
    """The constants for both ends of each axis as elements; NumPy's error where they cannot be.

    NumPy sets more than two of them as Python's numbers, and others as its own.
    """
    given, found = np.asarray(option), np.zeros((a.ndim, 2), a.dtype)
    pairs = np.broadcast_to(given, found.shape)
    for axis, pair in enumerate(pairs.tolist() if given.size > 2 or given.shape == (2, 1) else pairs):
        found[axis, 0], found[axis, 1] = pair
    return found


def _along(a: Any, axis: int, lo: int, hi: int, mode: str, option: Any) -> Any:
    """The array with margins of `lo` and `hi` elements along one axis."""
    if mode in ("edge", "wrap", "reflect", "symmetric"):
        if option not in (None, "even", "odd"):
            raise ValueError(f"reflect_type must be 'even' or 'odd', not {option!r}")
        if option == "odd" and not (mode == "reflect" and a.shape[axis] == 1):
            return _odd(a, axis, lo, hi, mode)
        around = _margins(a, axis, lo, hi, mode)
        if around is None:
            return take(a, _mirrored(a.shape[axis], lo, hi, mode), axis)
        return _joined(around[0], a, around[1], axis)
    if mode in ("constant", "empty"):
        ends = [as_handle(v).astype(a.dtype) for v in _pair(0 if option is None else option, axis, a.ndim)]
    elif mode == "linear_ramp":
        return _ramp(a, axis, lo, hi, _pair(0 if option is None else option, axis, a.ndim))
    else:
        ends = _statistics(a, axis, mode, option)
    parts = [(end, n) for end, n in zip(ends, (lo, hi), strict=True)]
    margins = [manipulation.broadcast_to(e, _shaped(a, axis, n)) for e, n in parts]
    return _joined(margins[0], a, margins[1], axis)


def _shaped(a: Any, axis: int, n: int) -> tuple[int, ...]:
    return (*a.shape[:axis], n, *a.shape[axis + 1 :])


def _joined(before: Any, a: Any, after: Any, axis: int) -> Any:
    return joining.concatenate([p for p in (before, a, after) if p.shape[axis]] or [a], axis)


def _part(a: Any, axis: int, start: int, stop: int) -> Any:
    return a[(slice(None),) * axis + (slice(start, stop),)]


def _margins(a: Any, axis: int, lo: int, hi: int, mode: str) -> tuple[Any, Any] | None:
    """The margins as parts of the array, which are joined sooner than all elements are looked up; None where
    they are longer than it is."""
    n = a.shape[axis]
    if mode == "edge" or n == 1:
        ends = ((_part(a, axis, 0, 1), lo), (_part(a, axis, n - 1, n), hi))
        before, after = (manipulation.broadcast_to(end, _shaped(a, axis, width)) for end, width in ends)
        return before, after
    skipped = int(mode == "reflect")
    if max(lo, hi) > n - skipped:
        return None
    if mode == "wrap":
        return _part(a, axis, n - lo, n), _part(a, axis, 0, hi)
    before, after = _part(a, axis, skipped, skipped + lo), _part(a, axis, n - skipped - hi, n - skipped)
    return flip(before, axis), flip(after, axis)


def _mirrored(n: int, lo: int, hi: int, mode: str) -> ndarray:
    """Which of `n` elements stands at each place of an axis with margins."""
    place = creation.arange(-lo, n + hi)
    if mode == "edge" or n == 1:
        return ufuncs.clip3(place, 0, n - 1)  # type: ignore[no-any-return]
    if mode == "wrap":
        return place % n
    period = 2 * n if mode == "symmetric" else 2 * n - 2
    place = place % period
    return logic.where(place < n, place, period - (mode == "symmetric") - place)  # type: ignore[no-any-return]


def _odd(a: Any, axis: int, lo: int, hi: int, mode: str) -> Any:
    """Mirrored through the ends: every turn adds twice the way from one end to the other."""
    n = a.shape[axis]
    place = creation.arange(-lo, n + hi)
    period = 2 * n if mode == "symmetric" else 2 * n - 2
    turns, mirrored = place // period, place % period >= n
    line = (-1,) + (1,) * (a.ndim - axis - 1)
    turns, mirrored = turns.reshape(line).astype(a.dtype), mirrored.reshape(line)
    first, last = _part(a, axis, 0, 1), _part(a, axis, n - 1, n)
    found = take(a, _mirrored(n, lo, hi, mode), axis)
    return (logic.where(mirrored, 2 * last - found, found) + turns * (2 * (last - first))).astype(a.dtype)


def _statistics(a: Any, axis: int, mode: str, option: Any) -> list[Any]:
    """A statistic of the elements next to each end."""
    n, found = a.shape[axis], []
    for which, given in enumerate((None, None) if option is None else _pair(option, axis, a.ndim).tolist()):
        length = n if given is None else min(int(given), n)
        if length < 0:
            raise ValueError("index can't contain negative values")
        if length == 0 and mode in ("maximum", "minimum"):
            raise ValueError("stat_length of 0 yields no value for padding")
        part = _part(a, axis, 0, length) if which == 0 else _part(a, axis, n - length, n)
        value = _STATISTICS[mode](part, axis, keepdims=True)
        whole = a.dtype.kind in "iu" and value.dtype.kind == "f"  # extremes are integers, not to be rounded
        found.append((ufuncs.rint(value) if whole else value).astype(a.dtype))
    return found


def _ramp(a: Any, axis: int, lo: int, hi: int, ends: Any) -> Any:
    """From given values to the ends in even steps."""
    n = a.shape[axis]
    first, last = (_part(a, axis, k, k + 1).squeeze(axis) for k in (0, n - 1))
    before = progressions.linspace(ends[0], first, lo, False, dtype=a.dtype, axis=axis)
    after = progressions.linspace(ends[1], last, hi, False, dtype=a.dtype, axis=axis)
    return _joined(before, a, flip(after, axis), axis)


def _filled(a: Any, widths: Any, function: Any, keywords: dict[str, Any]) -> Any:
    """Margins that a function writes, a line at a time."""
    if a.ndim < 2:
        return gathered(np.pad, a, widths, function, **keywords)
    wide = pad(a, widths)
    for axis in range(a.ndim):
        wide = apply_along_axis(_on_line, axis, wide, function, tuple(widths[axis].tolist()), axis, keywords)
    return wide


def _on_line(line: Any, function: Any, width: tuple[int, int], axis: int, keywords: dict[str, Any]) -> Any:
    """One line, after the function has filled its margins."""
    line = np.array(forced(line))
    function(line, width, axis, keywords)
    return line


__all__ = [
    "pad",
]
