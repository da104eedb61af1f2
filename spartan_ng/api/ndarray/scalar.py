"""Numbers on the driver that functions of arrays give, with NumPy's scalar for all arithmetic.

They can be asked what a number that has yet to be computed can be asked. An element that is picked from an
array is NumPy's number itself: loops pick millions. Loops over small arrays make many of these, too, so one
costs an object and a reference: its cell is made when somebody asks for it, and an operator with another
number never leaves NumPy's scalars.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.cell import Cell, order_letter
from spartan_ng.api.core.chains import Views
from spartan_ng.api.core.handle import scalar, wrap
from spartan_ng.api.core.kinds import NUMBERS, NUMERIC
from spartan_ng.api.core.late import register_scalar
from spartan_ng.api.ndarray.array import compute, ndarray

_new = object.__new__


def _binary(function: Callable[[Any, Any], Any], of_arrays: Any, turned: Any) -> Any:
    """An operator: on two numbers by Python's `function`, else as for arrays.

    An array to the right is quickest as the first operand of the operator `turned` around.
    """

    def method(self: Scalar, other: Any) -> Any:
        kind = type(other)
        if kind is Scalar:
            other = other._number
        elif kind not in NUMBERS:
            return turned(other, self) if kind is ndarray else of_arrays(self, other)
        made = _new(Scalar)
        made._number = function(self._number, other)
        return made

    return method


def _reflected(function: Callable[[Any, Any], Any], of_arrays: Any, turned: Any) -> Any:
    """An operator whose left operand is not a `Scalar`; Python asks it before the left operand's own."""

    def method(self: Scalar, other: Any) -> Any:
        kind = type(other)
        if kind not in NUMBERS:
            return turned(other, self) if kind is ndarray else of_arrays(self, other)
        made = _new(Scalar)
        made._number = function(other, self._number)
        return made

    return method


def _comparison(function: Callable[[Any, Any], Any], of_arrays: Any, turned: Any) -> Any:
    """A comparison: of numbers, one of the two truths that there are."""

    def method(self: Scalar, other: Any) -> Any:
        kind = type(other)
        if kind is Scalar:
            other = other._number
        elif kind not in NUMBERS:
            return turned(other, self) if kind is ndarray else of_arrays(self, other)
        return _TRUE if function(self._number, other) else _FALSE

    return method


def _unary(function: Callable[[Any], Any]) -> Any:
    def method(self: Scalar) -> Any:
        made = _new(Scalar)
        made._number = function(self._number)
        return made

    return method


class Constant(ndarray, own=True):
    """What NumPy's numbers answer otherwise than its arrays without axes."""

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


class Scalar(Constant, own=True):
    """An array without axes that stands for a number NumPy returns as a scalar; it cannot be written to."""

    __slots__ = ("_made", "_number")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """NumPy's scalar type, so that `isinstance(x[0], np.integer)` holds; `type` tells the truth."""
        return type(self._number)

    def __new__(cls, value: Any = 0.0) -> Any:
        """A number that Python has, as `type(x)(value)` asks for: of floating point, where NumPy has none."""
        number: Any = np.asarray(value)[()]
        return scalar(number if type(number) in NUMERIC else np.float64(value))

    _number: Any
    _made: Cell
    _views: Views = ()

    @property
    def _cell(self) -> Cell:  # type: ignore[override]
        """The cell, made when it is asked for."""
        try:
            return self._made
        except AttributeError:
            self._made = Cell(self._number, frozen=True)
            return self._made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return super().__array__(dtype, copy) if copy is False else np.asarray(self._number, dtype)

    # What some of NumPy's numbers have, and arrays have not. (`__getattr__` would slow every attribute.)
    as_integer_ratio = property(operator.attrgetter("_number.as_integer_ratio"))
    bit_count = property(operator.attrgetter("_number.bit_count"))
    denominator = property(operator.attrgetter("_number.denominator"))
    hex = property(operator.attrgetter("_number.hex"))
    is_integer = property(operator.attrgetter("_number.is_integer"))

    numerator = property(operator.attrgetter("_number.numerator"))

    def __trunc__(self) -> int:
        return math.trunc(self._number)  # type: ignore[no-any-return]

    def __floor__(self) -> int:
        return math.floor(self._number)  # type: ignore[no-any-return]

    def __ceil__(self) -> int:
        return math.ceil(self._number)  # type: ignore[no-any-return]

    def _peek(self) -> Any:
        return self._number

    def _force(self) -> Any:
        return self._number

    @property
    def ndim(self) -> int:
        """None."""
        return 0

    def __reduce__(self) -> Any:
        return (_again, (compute(self)[0],))

    def __float__(self) -> float:
        return float(self._number)

    def __int__(self) -> int:
        return int(self._number)

    def __index__(self) -> int:
        return operator.index(self._number)

    def __bool__(self) -> bool:
        return bool(self._number)

    def __hash__(self) -> int:
        return hash(self._number)

    __add__ = __iadd__ = _binary(operator.add, ndarray.__add__, ndarray.__radd__)
    __radd__ = _reflected(operator.add, ndarray.__radd__, ndarray.__add__)
    __sub__ = __isub__ = _binary(operator.sub, ndarray.__sub__, ndarray.__rsub__)
    __rsub__ = _reflected(operator.sub, ndarray.__rsub__, ndarray.__sub__)
    __mul__ = __imul__ = _binary(operator.mul, ndarray.__mul__, ndarray.__rmul__)
    __rmul__ = _reflected(operator.mul, ndarray.__rmul__, ndarray.__mul__)
    __truediv__ = __itruediv__ = _binary(operator.truediv, ndarray.__truediv__, ndarray.__rtruediv__)
    __rtruediv__ = _reflected(operator.truediv, ndarray.__rtruediv__, ndarray.__truediv__)
    __floordiv__ = __ifloordiv__ = _binary(operator.floordiv, ndarray.__floordiv__, ndarray.__rfloordiv__)
    __rfloordiv__ = _reflected(operator.floordiv, ndarray.__rfloordiv__, ndarray.__floordiv__)
    __mod__ = __imod__ = _binary(operator.mod, ndarray.__mod__, ndarray.__rmod__)
    __rmod__ = _reflected(operator.mod, ndarray.__rmod__, ndarray.__mod__)
    __pow__ = __ipow__ = _binary(operator.pow, ndarray.__pow__, ndarray.__rpow__)
    __rpow__ = _reflected(operator.pow, ndarray.__rpow__, ndarray.__pow__)
    __and__ = __iand__ = _binary(operator.and_, ndarray.__and__, ndarray.__rand__)
    __rand__ = _reflected(operator.and_, ndarray.__rand__, ndarray.__and__)
    __or__ = __ior__ = _binary(operator.or_, ndarray.__or__, ndarray.__ror__)
    __ror__ = _reflected(operator.or_, ndarray.__ror__, ndarray.__or__)
    __xor__ = __ixor__ = _binary(operator.xor, ndarray.__xor__, ndarray.__rxor__)
    __rxor__ = _reflected(operator.xor, ndarray.__rxor__, ndarray.__xor__)
    __lshift__ = __ilshift__ = _binary(operator.lshift, ndarray.__lshift__, ndarray.__rlshift__)
    __rlshift__ = _reflected(operator.lshift, ndarray.__rlshift__, ndarray.__lshift__)
    __rshift__ = __irshift__ = _binary(operator.rshift, ndarray.__rshift__, ndarray.__rrshift__)
    __rrshift__ = _reflected(operator.rshift, ndarray.__rrshift__, ndarray.__rshift__)
    __lt__ = _comparison(operator.lt, ndarray.__lt__, ndarray.__gt__)
    __le__ = _comparison(operator.le, ndarray.__le__, ndarray.__ge__)
    __gt__ = _comparison(operator.gt, ndarray.__gt__, ndarray.__lt__)
    __ge__ = _comparison(operator.ge, ndarray.__ge__, ndarray.__le__)
    __eq__ = _comparison(operator.eq, ndarray.__eq__, ndarray.__eq__)
    __ne__ = _comparison(operator.ne, ndarray.__ne__, ndarray.__ne__)
    __neg__ = _unary(operator.neg)
    __abs__ = _unary(abs)
    __invert__ = _unary(operator.invert)


def _hash(self: ndarray) -> int:
    """The hash of what stands for a scalar."""
    if self._cell.frozen:
        return hash(self._force()[()])
    raise TypeError(f"unhashable type: {type(self).__name__!r}")


class Number(Constant, own=True):
    """An array without axes for a number that has yet to be computed, which NumPy returns as a scalar."""

    __slots__ = ()
    __hash__ = _hash

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """NumPy's scalar type, so that `isinstance(x.sum(), np.float64)` holds; `type` tells the truth."""
        return self._cell.dtype.type if self._cell.frozen else ndarray

    def __getattr__(self, name: str) -> Any:
        """What NumPy's numbers have and arrays have not, as `is_integer`."""
        if name.startswith("_") or not self._cell.frozen:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._force()[()], name)


def _again(number: Any) -> Scalar:
    """An unpickled number."""
    made = _new(Scalar)
    made._number = number
    return made


_TRUE, _FALSE = _again(np.True_), _again(np.False_)

register_scalar(Scalar, Number)
