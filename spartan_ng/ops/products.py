"""The fold of products: one whose blocks do not forget that a zero or an overflow came first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spartan_ng.ops.by_ufunc import Fold, State, each_unit

_ZERO, _INFINITE, _NAN, _NEGATIVE = (np.uint8(1 << i) for i in range(4))
"""What a product remembers of its factors: one is zero, infinite, NaN, an odd number of them negative."""


@dataclass(frozen=True, slots=True)
class ProductFold(Fold):
    """Products, which stay what they are behind a zero or an overflow, as where factors come one by one.

    Of floats and complex numbers the state is (product, what its factors are): the infinity of a later block
    that has only overflowed makes no NaN of an earlier zero, nor does the zero of one that has underflowed of
    an earlier infinity. Factors are looked at where a block's product is zero, infinite or NaN.
    """

    def state_dtypes(self, dtype: np.dtype[Any], out: np.dtype[Any]) -> tuple[np.dtype[Any], ...]:
        """The product, and of inexact numbers what its factors are."""
        return (out, np.dtype(np.uint8)) if out.kind in "fc" else (out,)

    def block(self, x: Any, axes: tuple[int, ...], out: np.dtype[Any], where: Any, offset: int) -> State:
        """The state of one block."""
        (value,) = Fold.block(self, x, axes, out, where, offset)
        if out.kind not in "fc":
            return (value,)
        if _within_range(value):
            return value, _negative(value)
        return value, self._factors(self._kept(x, out, where), axes)

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
        (value,) = Fold.units(self, x, axes, out, where, shape, lengths)
        if out.kind not in "fc":
            return (value,)
        if _within_range(value):
            return value, _negative(value)
        kept = self._kept(x, out, where)
        return value, *each_unit(lambda part: (self._factors(part, axes),), kept, axes, lengths)

    def combine(self, a: State, b: State) -> State:
        """The product, unless the earlier factors have decided it."""
        if len(a) == 1:
            return Fold.combine(self, a, b)
        (x, before), (y, after) = a, b
        if not _within_range(y):
            overflowed = (x == 0) & ~np.isfinite(y) & (after & (_INFINITE | _NAN) == 0)
            underflowed = np.isinf(x) & ((y == 0) | np.isnan(y)) & (after & (_ZERO | _NAN) == 0)
            sign = np.where(after & _NEGATIVE, y.dtype.type(-1), y.dtype.type(1))
            y = np.where(overflowed | underflowed, sign, y)
        return self.ufunc(x, y), (before | after) & ~_NEGATIVE | (before ^ after) & _NEGATIVE

    def _kept(self, x: Any, out: np.dtype[Any], where: Any) -> Any:
        """The factors themselves, in the product's dtype."""
        x = x.astype(out, copy=False)
        return x if where is None else np.where(where, x, out.type(self.identity))

    @staticmethod
    def _factors(x: Any, axes: tuple[int, ...]) -> Any:
        """What factors are, along `axes`."""
        marks = (x == 0, _ZERO), (np.isinf(x), _INFINITE), (np.isnan(x), _NAN)
        found = np.bitwise_xor.reduce(_negative(x), axis=axes)
        for mark, bit in marks:
            found = found | np.any(mark, axis=axes) * bit
        return found


def _within_range(x: Any) -> bool:
    """Whether no product is zero, infinite or NaN."""
    return bool(np.all(np.isfinite(x) & (x != 0)))


def _negative(x: Any) -> Any:
    """The mark of negative numbers; complex ones have none."""
    return (np.zeros(np.shape(x), bool) if x.dtype.kind == "c" else np.signbit(x)) * _NEGATIVE
