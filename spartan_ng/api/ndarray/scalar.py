"""Numbers that have yet to be computed."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, ClassVar

from spartan_ng.api.core.cell import order_letter
from spartan_ng.api.core.conversion import numpys
from spartan_ng.api.core.deriving import Deriving
from spartan_ng.api.core.late import Late, register_numbers
from spartan_ng.api.core.numbers import as_number
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.ndarray.array import ndarray


class Number(ndarray, own=True):
    """An array without axes for a number that has yet to be computed, which NumPy returns as a scalar.

    It answers otherwise than NumPy's arrays without axes what NumPy's numbers do.
    """

    __slots__ = ()

    _kind: ClassVar[type]
    """NumPy's class."""

    def __new__(cls, *given: Any) -> Any:
        """What Python's own library makes of the class of what it was given: a number of that dtype."""
        return as_number(cls._kind(*given))

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

    def __trunc__(self) -> Any:
        return math.trunc(numpys(self))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """NumPy's scalar type, so that `isinstance(x.sum(), np.float64)` holds; `type` tells the truth."""
        return self._cell.dtype.type if self._cell.frozen else ndarray

    def __getattr__(self, name: str) -> Any:
        """What NumPy's numbers have and arrays have not, as `is_integer`."""
        if name.startswith("_") or not self._cell.frozen:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._force()[()], name)


@cache
def _number_of(kind: type) -> type:
    """The class of numbers that are of a class of NumPy's, and called so: others make numbers by it."""
    named = {"__slots__": (), "__module__": __name__, "_kind": kind}
    made: type = Deriving(kind.__name__, (Number,), named, own=True)
    Late.numbers.add(made)
    return made


register_numbers(_number_of)
