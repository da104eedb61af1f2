"""Numbers that have yet to be computed."""

from __future__ import annotations

from typing import Any

from spartan_ng.api.core.cell import order_letter
from spartan_ng.api.core.handle import wrap
from spartan_ng.api.core.late import register_number
from spartan_ng.api.ndarray.array import ndarray


class Number(ndarray, own=True):
    """An array without axes for a number that has yet to be computed, which NumPy returns as a scalar.

    It answers otherwise than NumPy's arrays without axes what NumPy's numbers do.
    """

    __slots__ = ()

    def copy(self, order: str = "C") -> ndarray:
        """The number itself: nobody can write to it."""
        order_letter(order)
        return self

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:
        """The number, or its bytes as one of another dtype."""
        if dtype is None and type is None:
            return self
        return super().view(dtype, type) if type is not None else wrap(self._force()[()].view(dtype))

    def __matmul__(self, other: Any) -> ndarray:
        return NotImplemented

    __rmatmul__ = __matmul__

    @property
    def partition(self) -> Any:
        """There is none, and AttributeError says so."""
        raise AttributeError(f"'numpy.{self.dtype.type.__name__}' object has no attribute 'partition'")

    @property
    def argpartition(self) -> Any:
        """There is none, and AttributeError says so."""
        raise AttributeError(f"'numpy.{self.dtype.type.__name__}' object has no attribute 'argpartition'")

    def __hash__(self) -> int:
        if self._cell.frozen:
            return hash(self._force()[()])
        raise TypeError(f"unhashable type: {type(self).__name__!r}")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """NumPy's scalar type, so that `isinstance(x.sum(), np.float64)` holds; `type` tells the truth."""
        return self._cell.dtype.type if self._cell.frozen else ndarray

    def __getattr__(self, name: str) -> Any:
        """What NumPy's numbers have and arrays have not, as `is_integer`."""
        if name.startswith("_") or not self._cell.frozen:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._force()[()], name)


register_number(Number)
