"""Arrays out of whatever there is: values, lists with arrays in them, nodes, cells and their views."""

from __future__ import annotations

import operator
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell, order_letter
from spartan_ng.api.core.handle import Handle, copied, settle
from spartan_ng.api.core.kinds import (
    PLAIN,
    PLAIN_OR_NUMERIC,
    SubclassError,
    as_dtype,
    is_subclass,
    same_bytes,
)
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.core.quick import AS_ITSELF, are_of, shortened
from spartan_ng.api.core.wrapping import make
from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.sparse import csr_array, is_sparse
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


PYTHON_SCALARS = (int, float, complex)


MOST_AXES = 64


def over_buffer(value: Any, lender: Any = None) -> ndarray:
    """An array that reads and writes another's buffer, which a NumPy array shows, where it is."""
    cell = Cell(value)
    cell.shared = True
    cell.lender = value.base if lender is None else lender
    return make(cell)


def in_order(a: ndarray, order: Any) -> ndarray:
    """An array, copied unless it has the memory layout that is asked for: "C", "F", or None for any."""
    order = order_letter(order)
    if order not in ("C", "F") or a.ndim == 0:
        return a
    flags = a._layout().flags
    return a if (flags.f_contiguous if order == "F" else flags.c_contiguous) else a.copy(order)


def order_for(order: Any, *operands: Any) -> Any:
    """The order asked for as "C", "F" or "K": "A" is Fortran's where all operands lie so, else C's."""
    order = order_letter(order)
    if order != "A":
        return order
    lie = (a._layout().flags.f_contiguous for a in operands if isinstance(a, Handle))
    return "F" if all(lie) else "C"


def sparse_handle(matrix: Any, dtype: Any = None) -> ndarray:
    """A scipy.sparse matrix as an array of format "csr"."""
    value = csr_array(matrix, dtype=dtype)
    if not value.has_canonical_format:  # elementwise functions look at each element once
        value = value.copy()
        value.sum_duplicates()
    ref = ArrayRef(value.shape, value.dtype, value=value, format="csr", nnz=int(value.nnz))
    return make(Cell(node=build.data(ref)))


@shortened(np.asarray, 1, AS_ITSELF)
def _of_few(listed: Any) -> ndarray | None:
    """An array of a list of few numbers, or of small arrays that are here; None of others."""
    return None


def as_handle(a: Any, dtype: Any = None) -> ndarray:
    """Anything array-like as an array; a NumPy array is not copied before that is needed.

    Raises
    ------
    SubclassError : a masked array, a matrix, or an array of another subclass of NumPy's
    """
    if isinstance(a, Handle):
        if dtype is None or same_bytes(a.dtype, as_dtype(dtype)):
            return a  # type: ignore[return-value]
        if a._cell.frozen and as_dtype(dtype).kind not in "biufc":
            return as_handle(a._force()[()], dtype)  # what an element becomes may be none of our numbers
        return as_handle(a.astype(dtype))  # type: ignore[attr-defined]
    if is_sparse(a):
        return sparse_handle(a, dtype)
    if isinstance(a, np.generic):
        if dtype is not None and (np.dtype(dtype).hasobject or np.dtype(dtype).kind in "SU"):
            return make(Cell(np.asarray(a, dtype)))  # whose element would be a shorter one, or anything
        if dtype is not None:
            a = a.astype(dtype)
        text = isinstance(a, str | bytes)  # whose `[()]` is Python's
        of = Late.number_of(a.dtype.type) if type(a) in NUMERIC else None
        return make(Cell(np.asarray(a) if text else a, frozen=True), of=of)
    if isinstance(a, list | tuple):
        if dtype is None and (made := _of_few(a)) is not None:
            return made
        is_plain = dtype is None or are_of(a, PLAIN_OR_NUMERIC)
        if not is_plain and not Late.numbers.isdisjoint(map(type, a)):
            a = _held(a, np.dtype(dtype))
        left: list[Handle] | None = [] if dtype is None or not np.dtype(dtype).hasobject else None
        try:
            a = _nested(a, left, dtype)
        except _RaggedError:
            a, left = _with_shapes(a), None  # which NumPy refuses below, in its words
        if isinstance(a, Handle):
            return as_handle(a, dtype)
        if left is None and np.dtype(dtype) == object and _are_unlike(a):
            return make(Cell(_as_elements(a)))
        if left:
            settle(*left)
            a = _with_values(a)
    elif isinstance(a, np.ndarray):
        if is_subclass(a):
            raise SubclassError(
                f"{type(a).__name__} is a subclass of NumPy's array class, and works with NumPy's functions "
                "only; np.asarray gives its elements"
            )
    elif is_array_like(a):
        a = a.__array__()
        if isinstance(a, Handle):
            return as_handle(a, dtype)
        if not isinstance(a, np.ndarray | np.generic):
            raise ValueError("object __array__ method not producing an array")
        if is_subclass(a):
            return over_buffer(np.asarray(a, dtype))
    value = np.asarray(a, dtype)
    if value.base is not None and not isinstance(a, np.ndarray):  # the memory of a buffer
        return over_buffer(value)
    return make(Cell(value, borrowed=isinstance(a, np.ndarray)))


def _held(items: Any, dtype: np.dtype[Any]) -> Any:
    """A sequence whose numbers are computed where integers may not hold one of them, for NumPy's error."""
    numbers = [i for i in items if type(i) in Late.numbers]
    if dtype.kind not in "iu" or all(np.can_cast(i.dtype, dtype) for i in numbers):
        return items
    settle(*numbers)
    return [i._force()[()] if type(i) in Late.numbers else i for i in items]


def _nested(items: Any, left: list[Handle] | None, dtype: Any = None, depth: int = 1) -> Any:
    """A sequence with arrays in it: stacked if all are and may be; others as they are.

    Arrays that are not stacked stay in their lists, and are appended to `left`. Where they may become
    elements (`left` is None) all stay: NumPy finds out if they do. A list in itself ends at the most axes
    that there are. `dtype` is that of the whole, where it is given.
    """
    if depth > MOST_AXES or are_of(items, PLAIN_OR_NUMERIC):
        return items
    parts = [
        _nested(i, left, dtype, depth + 1)
        if isinstance(i, list | tuple)
        else as_handle(i)
        if left is not None and is_array_like(i)
        else i
        for i in items
    ]
    if left is not None:
        arrays = [i for i in parts if isinstance(i, Handle)]
        if parts and len(arrays) == len(parts) and all(i.ndim < MOST_AXES for i in arrays):
            with suppress(TypeError):  # dates and numbers, which are objects together
                return _stacked(arrays, dtype)
        left += arrays
    if all(i is j for i, j in zip(parts, items, strict=True)):
        return items
    return tuple(parts) if isinstance(items, tuple) else parts


def _are_unlike(items: Any) -> bool:
    """Whether items are arrays whose first axes have several lengths: as objects each is an element."""
    return (
        any(isinstance(i, Handle) for i in items)
        and all(isinstance(i, Handle | np.ndarray) and i.ndim and not is_sparse(i) for i in items)
        and len({i.shape[0] for i in items}) > 1
    )


def _as_elements(items: Any) -> Any:
    """Arrays as they are: NumPy would have the objects of each first, and come to this then."""
    found = np.empty(len(items), object)
    for place, item in enumerate(items):
        found[place] = item
    return found


class _RaggedError(ValueError):
    """Arrays of several shapes in a list of nothing else."""


def _stacked(parts: list[Handle], dtype: Any) -> Any:
    """Arrays of one shape, stacked; those of several types each as the one of the whole, where it is given:
    what they have in common may have no room for what both have. TypeError where they are not to be."""
    if dtype is not None and len({i.shape for i in parts}) == 1 < len({i.dtype for i in parts}):
        whole = as_dtype(dtype)
        if whole.kind not in "biufcmM" or (whole.kind in "mM" and np.datetime_data(whole)[0] == "generic"):
            raise TypeError(f"{whole} says not all of what each becomes")
        parts = [as_handle(i, whole) for i in parts]
    try:
        return Late.stack(parts)
    except ValueError:
        if len({i.shape for i in parts}) == 1:
            raise
    raise _RaggedError


def _with_shapes(items: Any, depth: int = 1) -> Any:
    """A nested sequence with arrays of zeros, which have no memory, for its arrays."""
    if depth <= MOST_AXES and isinstance(items, list | tuple):
        return [_with_shapes(i, depth + 1) for i in items]
    items = as_handle(items) if is_array_like(items) else items
    return np.broadcast_to(np.zeros(()), items.shape) if isinstance(items, Handle) else items


def _with_values(items: Any, depth: int = 1) -> Any:
    """A nested sequence with the values of its arrays, which are computed."""
    if depth > MOST_AXES or are_of(items, PLAIN):
        return items
    parts = [_with_values(i, depth + 1) if isinstance(i, list | tuple) else forced(i) for i in items]
    return tuple(parts) if isinstance(items, tuple) else parts


def shape_tuple(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints."""
    if shape.__class__ is int and 0 <= shape <= sys.maxsize:
        return (shape,)
    if isinstance(shape, Handle):
        shape = shape._force().tolist()
    if shape.__class__ is tuple and all(n.__class__ is int and 0 <= n <= sys.maxsize for n in shape):
        return shape
    if isinstance(shape, bool):
        raise TypeError(f"expected a sequence of integers or a single integer, got {shape}")
    try:
        several = (operator.index(shape),)
    except TypeError:
        several = shape
    lengths = tuple(operator.index(n) for n in several)
    if any(n < 0 for n in lengths):
        raise ShapeError(f"negative dimensions are not allowed: {lengths}")
    if any(n > sys.maxsize for n in lengths):
        raise ValueError(f"Maximum allowed dimension exceeded: {lengths}")
    return lengths


def array_of(a: Any) -> ndarray:
    """What NumPy gives as an array also where it has no axes; a number's class and cell know no writes."""
    if isinstance(a, Handle) and (a.ndim or not a._cell.frozen):
        return a  # type: ignore[return-value]
    made = copied(a)
    made._cell.frozen = False
    return made


def forced(a: Any) -> Any:
    """The NumPy value of an array, computed now; another thing as it is."""
    return a._force() if isinstance(a, Handle) else a


def numpys(a: Any) -> Any:
    """What NumPy has in an array's place, computed now: a number for a number; another thing as it is."""
    return a._force()[()] if isinstance(a, Handle) and a._cell.frozen else forced(a)


def values(*arrays: Any) -> tuple[Any, ...]:
    """NumPy values of several arrays, all computed together; other things pass through."""
    settle(*arrays)
    return tuple(forced(a) for a in arrays)


def is_array_like(a: Any) -> bool:
    """Whether an object that is no array says how it becomes one; what it gives may be an array of ours."""
    return not isinstance(a, Handle | np.ndarray | np.generic | type) and hasattr(a, "__array__")


def elements(a: Any) -> Any:
    """The NumPy value of an array, or of an object that says how it becomes one; another thing as it is."""
    return forced(as_handle(a) if is_array_like(a) else a)


def with_elements(error: ValueError, given: Any) -> Any:
    """Arguments with NumPy values for objects whose `__array__`, a program's own, gives an array of ours,
    where NumPy, which takes none but its own, has refused these; else the error itself is raised."""
    if "__array__ method not producing an array" not in str(error) or not _has_array_like(given):
        try:
            raise error
        finally:  # whose traceback has this frame: a caught error keeps no array for the garbage collector
            del error, given
    return _with_elements(given)


def _has_array_like(a: Any) -> bool:
    nested = a.values() if isinstance(a, dict) else a if type(a) in (list, tuple) else ()
    return any(map(_has_array_like, nested)) or is_array_like(a)


def _with_elements(a: Any) -> Any:
    if isinstance(a, dict):
        return {k: _with_elements(v) for k, v in a.items()}
    return type(a)(map(_with_elements, a)) if type(a) in (list, tuple) else elements(a)


def is_override(a: Any) -> bool:
    """Whether an operand of another library says what universal functions mean, or refuses them (NEP 13)."""
    if a is None or isinstance(a, Handle | np.ndarray | np.generic):
        return False
    return hasattr(type(a), "__array_ufunc__")


def knows_numpys_alone(a: Any) -> bool:
    """Whether an operand of another library refuses all arrays but NumPy's own: pandas tells them by their
    class, and takes others' for lists; dask takes those that it has been told of."""
    return any(c.__module__.partition(".")[0] in ("pandas", "dask") for c in type(a).__mro__)


def wraps(a: Any) -> bool:
    """Whether an array-like's class makes what universal functions give its own, by `__array_wrap__`."""
    return not isinstance(a, Handle | np.ndarray | np.generic) and hasattr(type(a), "__array_wrap__")


def check_wraps(a: Any) -> None:
    """SubclassError for an operand that makes results its own, or says what universal functions mean."""
    if is_override(a):
        raise SubclassError(f"universal functions of {type(a).__name__} are its __array_ufunc__'s")
    if wraps(a):
        raise SubclassError(f"results of {type(a).__name__} are made by its __array_wrap__")


def numbers_here(a: Any) -> Any:
    """The value of a small array of numbers that is on the driver, which NumPy works on at once; or None."""
    value = a._peek() if isinstance(a, Handle) else None
    if type(value) is not np.ndarray or not (door.is_small(value.nbytes) and door.is_open()):
        return None
    return value if value.dtype.kind in "biufc" else None
