"""Python's operators on arrays, each one ufunc; in place they write through the array's views."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from spartan_ng.api import products, ufuncs
from spartan_ng.api.dispatch import fresh
from spartan_ng.api.handle import Handle, is_subclass, values, wrap, wrap_node
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray

_OPERANDS = (Handle, int, float, complex, np.generic, list, tuple, str, bytes, date, timedelta)


def _ours(other: Any) -> bool:
    """Whether an operator takes this operand, or leaves it to the operand's own operator."""
    if isinstance(other, _OPERANDS):
        return True
    if isinstance(other, np.ndarray):
        return not is_subclass(other)
    foreign = hasattr(other, "__array_ufunc__") or getattr(other, "__array_priority__", 0) > 0
    return not foreign or sparse.issparse(other)


class Arithmetic(Handle):
    """Arrays with operators."""

    __slots__ = ()

    def __add__(self, other: Any) -> ndarray:
        return ufuncs.add._two(self, other) if _ours(other) else NotImplemented

    def __radd__(self, other: Any) -> ndarray:
        return ufuncs.add._two(other, self) if _ours(other) else NotImplemented

    def __sub__(self, other: Any) -> ndarray:
        return ufuncs.subtract._two(self, other) if _ours(other) else NotImplemented

    def __rsub__(self, other: Any) -> ndarray:
        return ufuncs.subtract._two(other, self) if _ours(other) else NotImplemented

    def __mul__(self, other: Any) -> ndarray:
        return ufuncs.multiply._two(self, other) if _ours(other) else NotImplemented

    def __rmul__(self, other: Any) -> ndarray:
        if isinstance(other, np.ndarray) and is_subclass(other):  # a matrix asks what the other one is
            return other * self._force()  # type: ignore[no-any-return]
        return ufuncs.multiply._two(other, self) if _ours(other) else NotImplemented

    def __truediv__(self, other: Any) -> ndarray:
        return ufuncs.divide._two(self, other) if _ours(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> ndarray:
        return ufuncs.divide._two(other, self) if _ours(other) else NotImplemented

    def __floordiv__(self, other: Any) -> ndarray:
        return ufuncs.floor_divide._two(self, other) if _ours(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> ndarray:
        return ufuncs.floor_divide._two(other, self) if _ours(other) else NotImplemented

    def __mod__(self, other: Any) -> ndarray:
        return ufuncs.remainder._two(self, other) if _ours(other) else NotImplemented

    def __rmod__(self, other: Any) -> ndarray:
        return ufuncs.remainder._two(other, self) if _ours(other) else NotImplemented

    def __divmod__(self, other: Any) -> tuple[ndarray, ndarray]:
        return ufuncs.divmod(self, other) if _ours(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> tuple[ndarray, ndarray]:
        return ufuncs.divmod(other, self) if _ours(other) else NotImplemented

    def __pow__(self, other: Any, mod: Any = None) -> ndarray:
        if not _ours(other) or mod is not None:
            return NotImplemented
        return _power(self, other)

    def __rpow__(self, other: Any) -> ndarray:
        return ufuncs.power._two(other, self) if _ours(other) else NotImplemented

    def __matmul__(self, other: Any) -> ndarray:
        return products.matmul(self, other) if _ours(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> ndarray:
        return products.matmul(other, self) if _ours(other) else NotImplemented

    def __and__(self, other: Any) -> ndarray:
        return ufuncs.bitwise_and._two(self, other) if _ours(other) else NotImplemented

    def __rand__(self, other: Any) -> ndarray:
        return ufuncs.bitwise_and._two(other, self) if _ours(other) else NotImplemented

    def __or__(self, other: Any) -> ndarray:
        return ufuncs.bitwise_or._two(self, other) if _ours(other) else NotImplemented

    def __ror__(self, other: Any) -> ndarray:
        return ufuncs.bitwise_or._two(other, self) if _ours(other) else NotImplemented

    def __xor__(self, other: Any) -> ndarray:
        return ufuncs.bitwise_xor._two(self, other) if _ours(other) else NotImplemented

    def __rxor__(self, other: Any) -> ndarray:
        return ufuncs.bitwise_xor._two(other, self) if _ours(other) else NotImplemented

    def __lshift__(self, other: Any) -> ndarray:
        return ufuncs.left_shift._two(self, other) if _ours(other) else NotImplemented

    def __rlshift__(self, other: Any) -> ndarray:
        return ufuncs.left_shift._two(other, self) if _ours(other) else NotImplemented

    def __rshift__(self, other: Any) -> ndarray:
        return ufuncs.right_shift._two(self, other) if _ours(other) else NotImplemented

    def __rrshift__(self, other: Any) -> ndarray:
        return ufuncs.right_shift._two(other, self) if _ours(other) else NotImplemented

    def __neg__(self) -> ndarray:
        return ufuncs.negative(self)  # type: ignore[no-any-return]

    def __pos__(self) -> ndarray:
        return ufuncs.positive(self)  # type: ignore[no-any-return]

    def __abs__(self) -> ndarray:
        return ufuncs.absolute(self)  # type: ignore[no-any-return]

    def __invert__(self) -> ndarray:
        return ufuncs.invert(self)  # type: ignore[no-any-return]

    def __round__(self, ndigits: int | None = None) -> Any:
        """A number rounded, as NumPy's scalars are."""
        if not self._cell.frozen:
            raise TypeError(f"type {type(self).__name__} doesn't define __round__ method")
        rounded = round(self._force()[()], ndigits)
        return wrap(rounded) if isinstance(rounded, np.generic) else rounded

    # --- comparisons -------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> ndarray:
        return ufuncs.less._two(self, other) if _ours(other) else NotImplemented

    def __le__(self, other: Any) -> ndarray:
        return ufuncs.less_equal._two(self, other) if _ours(other) else NotImplemented

    def __gt__(self, other: Any) -> ndarray:
        return ufuncs.greater._two(self, other) if _ours(other) else NotImplemented

    def __ge__(self, other: Any) -> ndarray:
        return ufuncs.greater_equal._two(self, other) if _ours(other) else NotImplemented

    def __eq__(self, other: object) -> ndarray:  # type: ignore[override]
        if isinstance(other, str) or other is None:
            return _compared(ufuncs.equal, self, other)
        try:
            return ufuncs.equal._two(self, other) if _ours(other) else NotImplemented
        except TypeError:
            return _unlike(operator.eq, self, other)

    def __ne__(self, other: object) -> ndarray:  # type: ignore[override]
        if isinstance(other, str) or other is None:
            return _compared(ufuncs.not_equal, self, other)
        try:
            return ufuncs.not_equal._two(self, other) if _ours(other) else NotImplemented
        except TypeError:
            return _unlike(operator.ne, self, other)

    def __hash__(self) -> int:
        """A scalar's hash; an array has none."""
        if self._cell.frozen:
            return hash(self._force()[()])
        raise TypeError(f"unhashable type: {type(self).__name__!r}")

    # --- in place ----------------------------------------------------------------------------------

    def __iadd__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.add, self, other)

    def __isub__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.subtract, self, other)

    def __imul__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.multiply, self, other)

    def __itruediv__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.divide, self, other)

    def __ifloordiv__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.floor_divide, self, other)

    def __imod__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.remainder, self, other)

    def __ipow__(self, other: Any) -> ndarray:  # type: ignore[misc]
        return _in_place(ufuncs.power, self, other)

    def __iand__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.bitwise_and, self, other)

    def __ior__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.bitwise_or, self, other)

    def __ixor__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.bitwise_xor, self, other)

    def __ilshift__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.left_shift, self, other)

    def __irshift__(self, other: Any) -> ndarray:
        return _in_place(ufuncs.right_shift, self, other)

    def __imatmul__(self, other: Any) -> ndarray:
        if self._cell.frozen or not _ours(other):
            return NotImplemented
        result = products.matmul(self, other)
        return ufuncs.stored("matmul", result, self, True)  # type: ignore[no-any-return]


def _compared(function: ufuncs.ufunc, a: Handle, other: Any) -> ndarray:
    """Equality with a string or None: what cannot be compared is not equal."""
    kinds = "OUST" if isinstance(other, str) else "O"
    if a.dtype.kind in kinds or (isinstance(other, str) and a.dtype.kind in "mM"):
        return function(a, np.asarray(other))  # type: ignore[no-any-return]
    answer = np.bool_(function is ufuncs.not_equal)
    if a._cell.frozen:
        return wrap(answer)
    return wrap_node(build.broadcast(build.constant(np.asarray(answer)), a.shape))


def _unlike(compare: Callable[[Any, Any], Any], a: Handle, other: Any) -> ndarray:
    """Equality of what no ufunc compares: records field by field; texts and numbers are never equal."""
    return fresh(compare(*values(a, other)))  # type: ignore[no-any-return]


def _in_place(function: ufuncs.ufunc, a: Arithmetic, other: Any) -> ndarray:
    """`a op= other`; a scalar is not changed, Python rebinds the name to the result instead."""
    if a._cell.frozen or not _ours(other):
        return NotImplemented  # type: ignore[no-any-return]
    masked = a._masked()
    if masked is not None:
        result = function(a, other)
        again = result._masked()
        if again is not None:
            again.a = wrap_cast(again.a, masked.a.dtype)
            a._cell.masked = again
            return a  # type: ignore[return-value]
    value = a._peek()
    known = ufuncs.small_values((other,))
    if value is not None and known is not None and value.nbytes <= config.small_bytes:
        target = a._in_place()
        if target is not None:
            try:
                function.np(target, known[0], out=target)
            except ValueError as error:
                if "broadcast" in str(error):
                    raise ShapeError(str(error)) from None
                raise
            return a  # type: ignore[return-value]
    result = _power(a, other) if function is ufuncs.power else function(a, other)
    return ufuncs.stored(function.__name__, result, a, True)  # type: ignore[no-any-return]


def wrap_cast(node: Any, dtype: np.dtype[Any]) -> Any:
    """A node cast under the rule of in-place operators."""
    if not np.can_cast(node.dtype, dtype, "same_kind"):
        raise TypeError(f"Cannot cast output from {node.dtype} to {dtype} with casting rule 'same_kind'")
    return build.cast(node, dtype)


def _power(a: Handle, b: Any) -> ndarray:
    """`a ** b`: NumPy squares for 2, takes the root for 0.5, and divides for -1.0."""
    if isinstance(b, int | float) and not isinstance(b, np.generic) and b is not True:
        value = a._peek()
        if value is not None and value.nbytes <= config.small_bytes:
            return wrap(value**b)
        kind = a.dtype.kind
        if b == 2 and (kind in "fc" or (isinstance(b, int) and kind in "iub")):
            return ufuncs.square(a)  # type: ignore[no-any-return]
        if kind in "fc" and b == 0.5:
            return ufuncs.sqrt(a)  # type: ignore[no-any-return]
        if kind in "fc" and b == -1:
            return ufuncs.reciprocal(a)  # type: ignore[no-any-return]
    return ufuncs.power._two(a, b)  # type: ignore[no-any-return]
