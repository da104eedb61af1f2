"""The temporaries of an expression, whose memory the next operator, or the caller, takes.

In `(a + b) + c` nobody but the interpreter's stack has a reference to the first sum. NumPy's own operators
write their result over such an operand, which halves the memory that a chain of them touches; so do these.

A temporary is told by the references to it, as many as an operator that was called from Python's byte code
finds on what only the stack holds. Compiled extensions keep variables that count the same, so the calling
instruction has to be Python's operator.
"""

from __future__ import annotations

import dis
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from spartan_ng.api.core.handle import Handle

LEAST_BYTES = 1 << 18
"""Smaller results are in the cache anyway; NumPy's own bound."""
_OPERATORS = {dis.opmap[name] for name in ("BINARY_OP", "UNARY_NEGATIVE", "UNARY_INVERT")}


class _Counting:
    def __add__(self, other: _Counting) -> tuple[int, int]:
        return sys.getrefcount(self), sys.getrefcount(other)


def _references() -> tuple[int, int]:
    """What an operator counts on operands that only the stack holds; zeros where variables count the same."""
    a, b = _Counting(), _Counting()
    named, unnamed = a + b, _Counting() + _Counting()
    return unnamed if unnamed[0] < named[0] and unnamed[1] < named[1] else (0, 0)


class _Asked:
    def __init__(self, counts: list[int]) -> None:
        self.counts = counts

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self.counts.append(sys.getrefcount(self))
        return np.zeros(0)

    def compute(self) -> None:
        self.counts.append(sys.getrefcount(self))


def _references_asked() -> tuple[int, int]:
    """What `__array__`, asked by NumPy, and a method count on what only the stack holds; zeros where names
    count the same."""
    counts: list[int] = []
    named = _Asked(counts)
    np.asarray(named)
    named.compute()
    np.asarray(_Asked(counts))
    _Asked(counts).compute()
    array, method, unnamed_array, unnamed_method = counts
    return unnamed_array * (unnamed_array < array), unnamed_method * (unnamed_method < method)


OF_FIRST, OF_SECOND = _references()
OF_ASKED, OF_METHOD = _references_asked()


def is_own(a: Handle, value: np.ndarray[Any, Any]) -> bool:
    """Whether `value` is all that the array `a` stands for, and nobody else knows it or its cell.

    `value` is known to the caller, to this function, to the cell and to `getrefcount`.
    """
    cell = a._cell
    return (
        not a._views
        and cell._node is None
        and not (cell.borrowed or cell.shared or cell.frozen or cell.blank)
        and cell.owner is None
        and sys.getrefcount(cell) == 3
        and sys.getrefcount(value) == 4
        and value.flags.owndata
        and value.flags.writeable
    )


def called_by_operator(depth: int) -> bool:
    """Whether the Python frame so many steps up is at an operator."""
    frame = sys._getframe(depth + 1)
    return frame.f_code.co_code[frame.f_lasti] in _OPERATORS
