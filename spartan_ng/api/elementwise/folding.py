"""What universal functions of two operands do besides being called: folds, scans, outer products, places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, reductions, segments
from spartan_ng.api.core.conversion import (
    as_handle,
    numbers_here,
)
from spartan_ng.api.core.dispatch import by_numpy
from spartan_ng.api.core.few import few_values
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.elementwise.asked import (
    asking_others,
)
from spartan_ng.config import config

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


class Folding:
    """The methods of a universal function."""

    np: Any
    nin: int
    nout: int
    __name__: str

    @asking_others
    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = np._NoValue,
        where: Any = True,
    ) -> ndarray:
        """Fold along `axis`."""
        self._binary("reduce")
        return reductions.reduce(self.__name__, array, axis, dtype, out, keepdims, initial, where)

    @asking_others
    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
        """The cumulative fold along `axis`."""
        self._binary("accumulate")
        return cumulative.accumulate(self.__name__, array, axis, dtype, out)

    def outer(self: Any, A: Any, B: Any, **keywords: Any) -> Any:
        """The function of every pair of elements."""
        if self.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        x, y = numbers_here(A), numbers_here(B)
        small = x is not None and y is not None and x.nbytes * y.size <= config.small_bytes
        if small and not keywords:
            return self._now((x.reshape(x.shape + (1,) * y.ndim), y))
        return self._outer(A, B, **keywords)

    @asking_others
    def _outer(self: Any, A: Any, B: Any, **keywords: Any) -> Any:
        """`outer` of what is no pair of small arrays."""
        a, b = as_handle(A), as_handle(B)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **keywords)

    @asking_others
    def at(self, a: Any, indices: Any, b: Any = None, /) -> Any:
        """Apply in place at `indices`, repeated indices one after the other."""
        if self.nout != 1:
            raise ValueError("Only single output ufuncs supported at this time")
        if isinstance(a, np.ndarray):
            return by_numpy(self.np.at, a, indices, *(() if b is None else (b,)))
        if not isinstance(a, Handle) or a._cell.frozen:
            raise TypeError(f"{self.__name__}.at: the first operand must be an array")
        if self.nin == 2 and b is None:
            raise ValueError("second operand needed for ufunc")
        if self.nin == 1 and b is not None:
            raise ValueError("second operand provided when ufunc is unary")
        target, known = a._open(), few_values((indices,) if b is None else (indices, b))
        small = target is not None and target.nbytes <= config.small_bytes
        if small and known is not None and target.dtype.kind in "biufc":  # objects raise half-way
            try:
                return self.np.at(target, *known)
            except ValueError:  # ours name the shapes; read-only memory is copied
                pass
        if b is None:
            segments.repeat_at(self, a, indices)  # type: ignore[arg-type]
        else:
            segments.accumulate_at(self.__name__, a, indices, b)  # type: ignore[arg-type]
        return None

    @asking_others
    def reduceat(
        self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None
    ) -> ndarray:
        """Folds of the slices that `indices` begin."""
        self._binary("reduceat")
        return segments.reduceat(self.__name__, array, indices, axis, dtype, out)

    def resolve_dtypes(self, *args: Any, **keywords: Any) -> Any:
        """The dtypes of operands and results, as NumPy has them."""
        return self.np.resolve_dtypes(*args, **keywords)

    def _binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{method} only supported for binary functions")
