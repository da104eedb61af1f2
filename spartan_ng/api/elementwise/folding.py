"""What universal functions of two operands do besides being called: folds, scans, outer products, places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, reductions, segments
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import (
    as_handle,
    numbers_here,
)
from spartan_ng.api.core.dispatch import by_numpy
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS, PYTHONS
from spartan_ng.api.core.late import Late
from spartan_ng.api.elementwise.asked import (
    asking_others,
)

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_PLACES: frozenset[type] = NUMBERS | {list, slice, type(None), type(Ellipsis)}
"""What stands in an index beside arrays."""


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
        small = x is not None and y is not None and door.is_small(x.nbytes * y.size)
        if small and not keywords:
            return self._now((x.reshape(x.shape + (1,) * y.ndim), y))
        return self._outer(A, B, **keywords)

    @asking_others
    def _outer(self: Any, A: Any, B: Any, **keywords: Any) -> Any:
        """`outer` of what is no pair of small arrays."""
        a, b = as_handle(A), as_handle(B)
        return self(a.reshape(a.shape + (1,) * b.ndim), b, **keywords)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> Any:
        """Apply in place at `indices`, repeated indices one after the other."""
        if type(a) is Late.ndarray and self._at_once(a, indices, b):
            return None
        return self._at(a, indices, b)  # somebody else's `__array_ufunc__` may give something

    def _at_once(self, a: ndarray, indices: Any, b: Any) -> bool:
        """Have NumPy do what `at` does with a small array of numbers; False where there is more to ask."""
        given = (*indices,) if type(indices) is tuple else (indices,)
        n = len(given)
        known = few_values(given if b is None else (*given, b), _PLACES)
        if known is None or self.nout != 1 or self.nin != (1 if b is None else 2):
            return False
        if list in map(type, known) and not all(
            PYTHONS.issuperset(map(type, k)) for k in known if type(k) is list
        ):
            return False
        target = a._open()
        if target is None or not door.is_small(target.nbytes) or target.dtype.kind not in "biufc":
            return False  # objects raise half-way
        try:
            self.np.at(target, tuple(known[:n]) if type(indices) is tuple else known[0], *known[n:])
        except ValueError:  # ours name the shapes; read-only memory is copied
            return False
        return True

    @asking_others
    def _at(self, a: Any, indices: Any, b: Any = None, /) -> Any:
        """`at` of what is no small array of numbers, or of other arguments."""
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
