"""Python's operators on arrays, each one ufunc; in place they write through the array's views."""

from __future__ import annotations

import array
import operator
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra import products
from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.conversion import values
from spartan_ng.api.core.dispatch import fresh
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS, is_subclass
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.layouts import lying_as
from spartan_ng.api.core.members import equal_to
from spartan_ng.api.core.operands import check_cast, dtypes_first, small_values, stored
from spartan_ng.api.core.quick import plainly
from spartan_ng.api.core.telling import applied, told
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.writing import evaluated_for
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.errors import ShapeError, alone, is_refusal
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_PLAIN = frozenset({int, float, complex, list, tuple, str, bytes})

_array = np.ndarray
_new = object.__new__
_REPEATED = (list, tuple, str, bytes, bytearray, memoryview, array.array, deque)
"""Sequences, which Python repeats."""


def is_operand(other: Any) -> bool:
    """Whether an operator takes this operand, or leaves it to the operand's own operator."""
    if isinstance(other, Handle) or type(other) in _PLAIN:
        return True
    if isinstance(other, np.ndarray):
        return not is_subclass(other)
    foreign = hasattr(other, "__array_ufunc__") or getattr(other, "__array_priority__", 0) > 0
    return not foreign or is_sparse(other)


def _theirs(numpys: Any, a: Any, b: Any) -> Any:
    """What the other operand's `__array_ufunc__` says; without one it has an operator of its own."""
    theirs = b if isinstance(a, Handle) else a
    if isinstance(theirs, np.ndarray) or getattr(theirs, "__array_ufunc__", None) is None:
        return NotImplemented
    return numpys(a, b)


def _theirs_in_place(numpys: Any, a: Any, other: Any) -> Any:
    """The same in place, where refusing is an error; of NumPy's subclasses the elements are taken."""
    if isinstance(other, np.ndarray) and type(other).__array_ufunc__ is np.ndarray.__array_ufunc__:
        return numpys(a, other.view(np.ndarray), out=a)
    if isinstance(other, np.ndarray) or not hasattr(other, "__array_ufunc__"):
        return NotImplemented
    return numpys(a, other, out=a)


def _operator(function: ufuncs.ufunc, reflected: bool = False) -> Callable[[Any, Any], ndarray]:
    """The operator that is a ufunc of two operands.

    This is the path of programs of many tiny operations: a small array on the driver and a number, or two
    such arrays, go to NumPy's ufunc without further questions; everything else is for ours.
    """
    numpys: Callable[..., Any] = function.np
    repeats = function is ufuncs.multiply

    def method(self: Arithmetic, other: Any) -> Any:
        x, y = self._peek() if self._views else self._cell.value, other
        nbytes = sys.maxsize
        if type(x) is _array:
            if type(other) in NUMBERS:
                nbytes = x.nbytes
            elif type(other) is Late.ndarray or isinstance(other, Handle):
                y = other._peek() if other._views else other._cell.value
                if type(y) is _array:
                    nbytes = x.nbytes * y.size  # no result is larger, however they broadcast
                    if not door.is_plain(nbytes) and x.shape == y.shape:
                        nbytes = x.nbytes + y.nbytes
                elif y is not None:
                    nbytes = x.nbytes
        if door.is_plain(nbytes) and door.is_small(nbytes + 1):  # less than that, as in C
            try:
                found = applied(numpys, (y, x) if reflected else (x, y))
            except ValueError as error:
                if not is_refusal(error):
                    raise
                build.broadcast_shapes(function.__name__, *map(np.shape, (y, x) if reflected else (x, y)))
            else:
                if type(found) is not _array:
                    return wrap(found)
                cell = _new(Cell)  # as `wrap` makes it
                cell.value = found
                made = _new(Late.ndarray)
                made._cell = cell
                made._views = ()
                made._state = None
                return made
        if isinstance(other, _REPEATED) and repeats and self._cell.frozen:
            if reflected or self.dtype.kind not in "iu":
                return NotImplemented  # Python repeats the sequence, or says that it cannot
            return other * int(self._force())  # type: ignore[operator]
        if not (isinstance(other, Handle) or is_operand(other)):
            if reflected and function is ufuncs.multiply and isinstance(other, np.ndarray):
                return other * self._force()  # a matrix asks what the other one is
            return _theirs(numpys, other, self) if reflected else _theirs(numpys, self, other)
        if function is ufuncs.multiply and hasattr(other, "getH") and is_sparse(other):
            return NotImplemented  # SciPy's matrices, unlike its arrays, have the product of matrices here
        return function._two(other, self) if reflected else function._two(self, other)

    return plainly(numpys)(method)


def _sign(function: ufuncs.ufunc) -> Callable[[Any], ndarray]:
    """The operator that is a ufunc of one operand."""
    numpys: Callable[..., Any] = function.np

    def method(self: Arithmetic) -> Any:
        x = self._peek() if self._views else self._cell.value
        if type(x) is _array and door.is_small(x.nbytes):
            return wrap(applied(numpys, (x,)))
        return function(self)

    return plainly(numpys)(method)


def _write(numpys: Any, target: Any, other: Any) -> None:
    """Write what a function of NumPy's gives over its first operand."""
    applied(numpys, (target, other), target)


def _write_power(target: Any, other: Any) -> None:
    """The same of powers: NumPy's operator knows squares, roots and reciprocals, its function does not."""
    if target.dtype.hasobject:  # whose code is the user's
        target **= other
    else:
        told(operator.ipow, target, other)


def _assigning(function: ufuncs.ufunc) -> Any:
    """The operator in place; a scalar is not changed, Python rebinds the name to the result instead."""
    numpys: Callable[..., Any] = function.np
    write = _write_power if function is ufuncs.power else partial(_write, numpys)

    def method(self: Arithmetic, other: Any) -> Any:
        target = self._open()
        if target is not None and door.is_small(target.nbytes):
            known = other if type(other) in NUMBERS else other._peek() if isinstance(other, Handle) else None
            if known is not None:
                try:
                    write(target, known)
                    return self
                except ValueError as error:  # read-only memory is copied
                    if "broadcast" in str(error) and not target.dtype.hasobject:
                        raise ShapeError(str(error)) from None
                    if not is_refusal(error):
                        raise
        return _in_place(function, self, other)

    return plainly(numpys)(method)


_equal, _not_equal = _operator(ufuncs.equal), _operator(ufuncs.not_equal)


class Arithmetic(Handle):
    """Arrays with operators."""

    __slots__ = ()

    __add__ = _operator(ufuncs.add)
    __radd__ = _operator(ufuncs.add, reflected=True)
    __sub__ = _operator(ufuncs.subtract)
    __rsub__ = _operator(ufuncs.subtract, reflected=True)
    __mul__ = _operator(ufuncs.multiply)
    __truediv__ = _operator(ufuncs.divide)
    __rtruediv__ = _operator(ufuncs.divide, reflected=True)
    __floordiv__ = _operator(ufuncs.floor_divide)
    __rfloordiv__ = _operator(ufuncs.floor_divide, reflected=True)
    __mod__ = _operator(ufuncs.remainder)
    __rmod__ = _operator(ufuncs.remainder, reflected=True)

    __rmul__ = _operator(ufuncs.multiply, reflected=True)

    @plainly(np.divmod)
    def __divmod__(self, other: Any) -> Any:
        return ufuncs.divmod._called(self, other) if is_operand(other) else _theirs(np.divmod, self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return ufuncs.divmod._called(other, self) if is_operand(other) else _theirs(np.divmod, other, self)

    @plainly(np.power)
    def __pow__(self, other: Any, mod: Any = None) -> ndarray:
        if mod is not None:
            return NotImplemented
        if not is_operand(other):
            return _theirs(np.power, self, other)  # type: ignore[no-any-return]
        return _power(self, other)

    __rpow__ = _operator(ufuncs.power, reflected=True)

    @plainly(np.matmul)
    def __matmul__(self, other: Any) -> Any:
        is_ours = isinstance(other, Handle) or is_operand(other)
        return products.matmul.function(self, other) if is_ours else _theirs(np.matmul, self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return products.matmul.function(other, self) if is_operand(other) else _theirs(np.matmul, other, self)

    __and__ = _operator(ufuncs.bitwise_and)
    __rand__ = _operator(ufuncs.bitwise_and, reflected=True)
    __or__ = _operator(ufuncs.bitwise_or)
    __ror__ = _operator(ufuncs.bitwise_or, reflected=True)
    __xor__ = _operator(ufuncs.bitwise_xor)
    __rxor__ = _operator(ufuncs.bitwise_xor, reflected=True)
    __lshift__ = _operator(ufuncs.left_shift)
    __rlshift__ = _operator(ufuncs.left_shift, reflected=True)
    __rshift__ = _operator(ufuncs.right_shift)
    __rrshift__ = _operator(ufuncs.right_shift, reflected=True)
    __neg__ = _sign(ufuncs.negative)
    __pos__ = _sign(ufuncs.positive)
    __abs__ = _sign(ufuncs.absolute)
    __invert__ = _sign(ufuncs.invert)

    def __round__(self, ndigits: int | None = None) -> Any:
        """A number rounded, as NumPy's scalars are."""
        if not self._cell.frozen:
            raise TypeError(f"type {type(self).__name__} doesn't define __round__ method")
        rounded = round(self._force()[()], ndigits)
        return wrap(rounded) if isinstance(rounded, np.generic) else rounded

    # --- comparisons -------------------------------------------------------------------------------

    __lt__ = _operator(ufuncs.less)
    __le__ = _operator(ufuncs.less_equal)
    __gt__ = _operator(ufuncs.greater)
    __ge__ = _operator(ufuncs.greater_equal)

    @plainly(np.equal)
    def __eq__(self, other: object) -> ndarray:  # type: ignore[override]
        if isinstance(other, str) or other is None:
            return _compared(ufuncs.equal, self, other)
        found = equal_to(self, other)
        if found is not None:
            return found
        try:
            return _equal(self, other)
        except TypeError:
            with alone():
                return _unlike(operator.eq, self, other)

    @plainly(np.not_equal)
    def __ne__(self, other: object) -> ndarray:  # type: ignore[override]
        if isinstance(other, str) or other is None:
            return _compared(ufuncs.not_equal, self, other)
        try:
            return _not_equal(self, other)
        except TypeError:
            with alone():
                return _unlike(operator.ne, self, other)

    __hash__: Any = None

    # --- in place ----------------------------------------------------------------------------------

    __iadd__ = _assigning(ufuncs.add)
    __isub__ = _assigning(ufuncs.subtract)
    __imul__ = _assigning(ufuncs.multiply)
    __itruediv__ = _assigning(ufuncs.divide)
    __ifloordiv__ = _assigning(ufuncs.floor_divide)
    __imod__ = _assigning(ufuncs.remainder)
    __ipow__ = _assigning(ufuncs.power)
    __iand__ = _assigning(ufuncs.bitwise_and)
    __ior__ = _assigning(ufuncs.bitwise_or)
    __ixor__ = _assigning(ufuncs.bitwise_xor)
    __ilshift__ = _assigning(ufuncs.left_shift)
    __irshift__ = _assigning(ufuncs.right_shift)

    def __imatmul__(self, other: Any) -> ndarray:
        if self._cell.frozen:
            return NotImplemented
        if not is_operand(other):
            return _theirs_in_place(np.matmul, self, other)  # type: ignore[no-any-return]
        if not self.ndim or np.ndim(other) < 2:
            raise ValueError(
                "inplace matrix multiplication requires the first operand to have at least one and the "
                f"second at least two dimensions (shapes {self.shape} and {np.shape(other)})"
            )
        with dtypes_first(np.matmul, (self, other), (self,), casting="same_kind"):
            result = products.matmul(self, other)
        if result.shape[-2:] != self.shape[-2:]:  # stacks are broadcast, matrices are not
            raise ShapeError(f"matmul: output of shape {self.shape} for a product of shape {result.shape}")
        return stored("matmul", result, self, broadcast=True)


def _compared(function: ufuncs.ufunc, a: Handle, other: Any) -> ndarray:
    """Equality with a string or None: what cannot be compared is not equal."""
    kinds = "OUT" if isinstance(other, str) else "O"
    if a.dtype.kind in kinds:
        return function(a, np.asarray(other))  # type: ignore[no-any-return]
    answer = np.bool_(function is ufuncs.not_equal)
    if a._cell.frozen:
        return wrap(answer)
    return lying_as(wrap_node(build.broadcast(build.constant(np.asarray(answer)), a.shape)), a)


def _unlike(compare: Callable[[Any, Any], Any], a: Handle, other: Any) -> ndarray:
    """Equality of what no ufunc compares: records field by field; texts and numbers are never equal."""
    return fresh(compare(*values(a, other)))  # type: ignore[no-any-return]


def _in_place(function: ufuncs.ufunc, a: Arithmetic, other: Any) -> ndarray:
    """`a op= other` where more is to be asked than what `_assigning` asks."""
    if a._cell.frozen:
        return NotImplemented  # type: ignore[no-any-return]
    if not is_operand(other):
        return _theirs_in_place(function.np, a, other)  # type: ignore[no-any-return]
    masked = a._masked()
    if masked is not None:
        with dtypes_first(function.np, (a, other), (a,), casting="same_kind"):
            result = function(a, other)
        again = result._masked()
        if again is not None:
            check_cast(function.__name__, again.a.dtype, masked.a.dtype)
            again.a = build.cast(again.a, masked.a.dtype)
            a._cell.masked = again
            return a  # type: ignore[return-value]
    value = a._peek()
    is_small = value is not None and door.is_small(value.nbytes)
    done = (_quick_power(a.dtype, other) if function is ufuncs.power else None) or function
    large = not is_small and (value is not None or a._views) and door.is_written_here(a, done.row.flops)
    operands = evaluated_for(a, (other,)) if large else small_values((other,))
    if operands is not None and (is_small or large):
        target = a._in_place()
        if target is not None:
            try:
                if function is ufuncs.power:
                    _write_power(target, operands[0])
                else:
                    _write(function.np, target, operands[0])
            except ValueError as error:
                if "broadcast" in str(error):
                    raise ShapeError(str(error)) from None
                raise
            return a  # type: ignore[return-value]
    if function is ufuncs.multiply and a.dtype.kind in "SU":  # texts are as long as there is room for
        return function(a, other, out=a)  # type: ignore[no-any-return]
    with dtypes_first(function.np, (a, other), (a,), casting="same_kind"):
        result = _power(a, other) if function is ufuncs.power else function(a, other)
    if not isinstance(result, Handle):  # an element of objects, times or texts
        one = np.empty((), a.dtype)
        one[()] = result
        result = wrap(one)
    return stored(function.__name__, result, a, broadcast=True)


_QUICK_POWERS = {
    (int, 2): ufuncs.square,
    (float, 2.0): ufuncs.square,
    (float, 0.5): ufuncs.sqrt,
    (int, -1): ufuncs.reciprocal,
}


def _quick_power(dtype: np.dtype[Any], exponent: Any) -> ufuncs.ufunc | None:
    """What NumPy has for some powers: squares, and of broken numbers the root and the reciprocal."""
    quick = _QUICK_POWERS.get((type(exponent), exponent)) if type(exponent) in (int, float) else None
    whole = dtype.kind in "iub" and type(exponent) is int and exponent == 2
    return quick if whole or dtype.kind in "fcV" else None


def _power(a: Handle, b: Any) -> ndarray:
    """`a ** b`; a number's power is no square, whose dtype may be another."""
    value = a._peek()
    quick = None if a._cell.frozen else _quick_power(a.dtype, b)
    if type(b) in (int, float) and value is not None and door.is_small(value.nbytes):
        if type(value) is np.ndarray and value.ndim and value.dtype.kind in "fc":
            return wrap(applied(np.power, (value, b)) if quick is None else applied(quick.np, (value,)))
        return wrap(value**b if value.dtype.hasobject else told(operator.pow, value, b))
    return ufuncs.power._two(a, b) if quick is None else quick(a)  # type: ignore[no-any-return]
