"""The fold of products: one whose blocks neither forget what came first nor leave the range by themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from spartan_ng.ops.by_ufunc import Fold, State, each_unit

_EXPONENT = np.dtype(np.int64)
_FEW = 16
"""Factors that are multiplied before they are taken apart, where these products are within range. (chosen)"""


class ProductFold(Fold, frozen=True):
    """Products, which are within range where they are as factors come one by one, and zero or infinite where
    the first ones have made them so.

    Of floats and complex numbers the state is (v, m, e): v is what NumPy has where the state's factors are
    the array's first ones, and m * 2**e their product without bounds, by which what lies before is
    multiplied: that of later factors alone may leave the range where NumPy's never does. Factors are taken
    apart only where a block's product is out of range, or was on the way.
    """

    def state_dtypes(self, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The product, and of inexact numbers also that without bounds."""
        return (out, out, _EXPONENT) if out.kind in "fc" else (out,)

    def block(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, offset: int) -> State:
        """The state of one block."""
        if out.kind not in "fc":
            return Fold.block(self, x, axes, out, where, offset)
        if offset and len(axes) == x.ndim:
            return self._behind(x, axes, out, where)
        value, is_within = _within(lambda: Fold.block(self, x, axes, out, where, offset))
        kept = None if is_within else self._kept(x, out, where)
        if is_within or np.all((value == 0) & np.any(kept == 0, axis=axes)):  # zero by a factor that is
            return value, value, np.zeros(np.shape(value), _EXPONENT)
        return value, *_unbounded(kept, axes)

    def _behind(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any) -> State:
        """The state of all of a block that others lie before: nobody asks what NumPy has of these factors,
        and products of factors far from each other do not wait for one another."""
        m, e = _unbounded(self._kept(x, out, where), axes)
        with np.errstate(all="ignore"):
            value = _together(m, e)
        return (value, value, np.zeros_like(e)) if _within_range(value) else (value, m, e)

    def units(
        self,
        x: Any,
        axes: tuple[int, ...],
        out: np.dtype[Any],
        where: Any,
        shape: tuple[int, ...],
        lengths: tuple[int, ...],
    ) -> State:
        """As in `Fold`."""
        if out.kind not in "fc":
            return Fold.units(self, x, axes, out, where, shape, lengths)
        value, is_within = _within(lambda: Fold.units(self, x, axes, out, where, shape, lengths))
        if is_within:
            return value, value, np.zeros(np.shape(value), _EXPONENT)
        kept = self._kept(x, out, where)
        return value, *each_unit(lambda part: _unbounded(part, axes), kept, axes, lengths)

    def combine(self, a: State, b: State) -> State:
        """What `a` comes to with `b`'s factors behind it."""
        if len(a) == 1:
            return Fold.combine(self, a, b)
        (v, m, e), (_, factor, exponent) = a, b
        with np.errstate(over="ignore", under="ignore"):
            product = m * factor
        if np.any(e) or np.any(exponent) or not _within_range(product):
            (m, grown), (factor, more) = _apart(m), _apart(factor)
            exponent = exponent + more
            product, e = m * factor, e + grown + exponent
        with np.errstate(all="ignore"):  # `finalize` reports what has left the range
            if not np.any(exponent):
                return v * factor, product, e
            v, own = _apart(v)
            return _together(v * factor, own + exponent), product, e

    def finalize(self, state: State) -> Any:
        """The product, as NumPy has it."""
        value = state[0]
        if len(state) > 1 and not _within_range(value):
            left = np.isfinite(state[1]) & ((value != 0) | (state[1] != 0))
            bounds = np.finfo(value.dtype)
            gone = left & ((np.abs(value) < bounds.tiny) | ~np.isfinite(value))
            beyond = np.where(np.abs(value) < bounds.tiny, bounds.tiny, bounds.max)[gone]
            np.multiply(beyond * beyond, np.asarray(state[1])[gone])  # as NumPy reports it, on its way
        return value

    def _kept(self, x: Any, out: np.dtype[Any], where: Any) -> Any:
        """The factors themselves, in the product's dtype."""
        x = x.astype(out, copy=False)
        return x if where is None else np.where(where, x, out.type(self.identity))


def _within(make: Callable[[], State]) -> tuple[Any, bool]:
    """The product that `make` gives, without a report of what leaves the range, and whether nothing has: what
    was too small on the way has lost digits, and may have come back."""
    small: list[int] = []

    def note(kind: str, flags: int) -> None:
        small.append(flags)

    with np.errstate(over="ignore", invalid="ignore", under="call", call=note):
        (value,) = make()
    return value, not small and _within_range(value)


def _unbounded(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """The product of `x` along `axes` as m and e of m * 2**e."""
    for axis in sorted(axes, reverse=True):
        few, is_within = _within(partial(_in_parts, x, axis))
        x = few if is_within else x
    zero = x == 0
    if np.any(zero):
        ones = 1 if x.dtype.kind == "c" else np.copysign(x.dtype.type(1), x)
        m, e = _unbounded(np.where(zero, ones, x), axes)
        with np.errstate(invalid="ignore"):
            return np.where(np.any(zero, axis=axes), m * m.dtype.type(0), m), e
    x = np.moveaxis(x, axes, range(-len(axes), 0))
    kept = x.shape[: x.ndim - len(axes)]
    m, e = _apart(x.reshape(*kept, -1))
    exponent = e.sum(axis=-1)
    many = _factors_within_range(m.dtype)
    while (n := m.shape[-1]) > 1:
        m, e = _apart(np.multiply.reduceat(m, range(0, n, many), axis=-1))
        exponent += e.sum(axis=-1)
    return (m[..., 0] if m.shape[-1] else np.ones(kept, m.dtype)), exponent


def _in_parts(x: Any, axis: int) -> State:
    """The products of few factors each along an axis, that lie far from each other: so NumPy's loops go over
    many products at a time, and not over few factors."""
    n = x.shape[axis] // _FEW
    if not n:
        return (np.multiply.reduce(x, axis=axis, keepdims=True),)
    front, rest = np.split(x, [n * _FEW], axis)
    front = front.reshape(*x.shape[:axis], _FEW, n, *x.shape[axis + 1 :])
    return (np.concatenate([np.multiply.reduce(front, axis=axis), rest], axis),)


@cache
def _factors_within_range(dtype: np.dtype[Any]) -> int:
    """How many numbers of 0.5 to 1, or complex ones of as much to twice it, have a product within half the
    range."""
    return max(2, -int(np.finfo(dtype).minexp) // 2)


def _apart(x: Any) -> tuple[Any, Any]:
    """Mantissas and exponents; what is zero, infinite or NaN has the exponent 0."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        _, e = _apart(np.maximum(np.abs(x.real), np.abs(x.imag)))
        return _together(x, -e), e
    m, e = np.frexp(x)
    return m, np.where(np.isfinite(x), e, 0).astype(_EXPONENT)


def _together(m: Any, e: Any) -> Any:
    """The numbers m * 2**e."""
    e = np.clip(e, -100_000, 100_000)
    if m.dtype.kind != "c":
        return np.ldexp(m, e)
    parts = np.stack([np.ldexp(m.real, e), np.ldexp(m.imag, e)], axis=-1)
    return parts.view(m.dtype)[..., 0]


def _within_range(x: Any) -> bool:
    """Whether no product is zero or too small for all digits, infinite or NaN."""
    bounds = np.finfo(x.dtype)
    size = np.abs(x)
    return bool(np.all((size >= bounds.tiny) & (size <= bounds.max)))
