"""What a universal function is given, and where its result goes."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.conversion import PYTHON_SCALARS, as_handle, check_wraps, forced, is_array_like
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBERS, any_stays
from spartan_ng.api.core.wrapping import converted_node, wrap, wrap_array, wrap_node
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.callers import warn_user
from spartan_ng.errors import ShapeError, alone
from spartan_ng.graph import build
from spartan_ng.graph.likeness import surely_alike
from spartan_ng.ops.elementwise import resolved_dtypes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

WEAK = frozenset(PYTHON_SCALARS)
"""Classes of scalars that leave the other operands' dtype as it is (NEP 50)."""


def kind_of(o: Any) -> Any:
    """A Python scalar's class, or anything else's dtype."""
    return type(o) if type(o) in PYTHON_SCALARS else o.dtype


def common_dtype(*operands: Any) -> np.dtype[Any]:
    """The dtype that NumPy finds for arrays, what becomes one, and Python's numbers, which are weak."""
    return np.result_type(*(o if type(o) in WEAK else as_handle(o).dtype for o in operands))


def mask_of(where: Any) -> Any:
    """A `where` as NumPy takes it: True, or truths; TypeError for an array of another dtype."""
    if where is True or where is np._NoValue:
        return True
    if isinstance(where, Handle) and where.format == "csr" and where.dtype == bool:
        return where  # its non-zeros may be what drives the pass
    return converted(where, bool)


def operand(a: Any) -> Any:
    """An operand as a handle, or a Python scalar as itself."""
    if isinstance(a, Handle):
        return a
    if type(a) in PYTHON_SCALARS:  # of derived classes, NumPy makes arrays, which are not weak
        return a
    if isinstance(a, bool):
        return np.bool_(a)
    if is_array_like(a):
        check_wraps(a)
    return as_handle(a)


def converted(a: Any, dtype: Any, casting: str = "safe") -> ndarray:
    """An argument as NumPy's compiled functions convert it: an array by a rule, everything else by force."""
    kind: np.dtype[Any] = np.dtype(dtype)
    h = as_handle(a, kind if isinstance(a, list | tuple | str | bytes) or type(a) in WEAK else None)
    h = h.todense() if h.format == "csr" else h
    is_array = is_array_like(a) or is_sparse(a) or isinstance(a, np.ndarray)
    is_array = is_array or (isinstance(a, Handle) and not isinstance(a, np.generic) and not a._cell.frozen)
    if is_array and not np.can_cast(h.dtype, kind, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {h.dtype!r} to {kind!r} according to the rule {casting!r}"
        )
    return h if h.dtype == kind else as_handle(h.astype(kind))


def as_axes(axis: Any) -> Any:
    """What NumPy's folds take for axes: None, an integer or a tuple; TypeError for lists and truth values."""
    if axis is None or isinstance(axis, tuple):
        return axis
    if isinstance(axis, bool):
        raise TypeError("an integer is required for the axis")
    return operator.index(axis)


def left_out(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """What universal functions have where a mask chooses no element: zeros, and None of objects."""
    return (np.empty if dtype.hasobject else np.zeros)(shape, dtype)


def small_values(args: tuple[Any, ...], broadcast: bool = True) -> tuple[Any, ...] | None:
    """NumPy values of operands that are small and on the driver, or None; where they are `broadcast`, they
    stay small together."""
    known: list[Any] = []
    nbytes = 0
    shape = None
    alike = True
    for a in args:
        if isinstance(a, Handle):
            a = a._peek() if a._views else a._cell.value
            if a is None:
                return None
            if a.shape:
                alike = alike and (shape is None or shape == a.shape)
                shape = a.shape
            nbytes += a.nbytes
            known.append(a)
            continue
        if a.__class__ in WEAK:
            known.append(a)
            continue
        alike = False
        if isinstance(a, list | tuple) or is_sparse(a) or is_array_like(a):
            check_wraps(a)
            a = as_handle(a)._peek()
            if a is None:
                return None
        nbytes += getattr(a, "nbytes", 0)
        known.append(a)
    if not door.is_small(nbytes) and not any_stays(known):
        return None
    return tuple(known) if alike or not broadcast or stay_small(tuple(known)) else None


def values_here(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """NumPy values of operands that are numbers or dense arrays of this process, however large, or None."""
    known = []
    for a in args:
        value = a
        if isinstance(a, Handle):
            value = a._peek() if a._views else a._cell.value
            value = a._found() if value is None else value
        if type(value) is not np.ndarray and type(value) not in NUMBERS:
            return None
        known.append(value)
    return tuple(known)


def has_objects(*operands: Any) -> bool:
    """Whether an operand holds Python's objects, which stay on the driver."""
    return True in [o.dtype.hasobject for o in operands if isinstance(o, np.ndarray)]


def stay_small(operands: tuple[Any, ...]) -> bool:
    """Whether the operands stay small when they are broadcast together."""
    shapes = {np.shape(o) for o in operands}
    if len(shapes) == 1:
        return True
    size = prod(map(max, zip_longest(*[s[::-1] for s in shapes], fillvalue=1)))
    return size <= max(map(prod, shapes)) or door.is_small(8 * size)


def common_mask(operands: list[Any]) -> Masked | None:
    """The filter all operands with axes went through, if they can stay filtered."""
    found: Masked | None = None
    for o in operands:
        if not isinstance(o, Handle):
            continue
        masked = o._cell.masked
        if masked is None or o._views:
            if o._views or o.ndim:
                return None
            continue
        if found is None:
            found = masked
        elif masked.a.shape != found.a.shape or not surely_alike(masked.mask, found.mask):
            return None
    return found


def unfiltered(o: Any) -> Any:
    """A filtered operand's elements before the filter; anything else as it is."""
    masked = o._masked() if isinstance(o, Handle) else None
    return o if masked is None else masked.a


def check_cast(name: str, dtype: np.dtype[Any], target: np.dtype[Any], casting: Any = "same_kind") -> None:
    """TypeError, as NumPy's `UFuncTypeError`, where a result may not be written to an array of `target`."""
    if np.can_cast(dtype, target, casting):
        return
    function = getattr(np, name, None)
    if not isinstance(function, np.ufunc):
        raise TypeError(f"{name}: cannot cast {dtype!r} to {target!r} with casting rule {casting!r}")
    error: Any = np._core._exceptions._UFuncOutputCastingError  # type: ignore[attr-defined]
    raise error(function, casting, dtype, target, 0)


def check_output(out: Any) -> None:
    """TypeError for a number, ours or NumPy's, and what else is no array; ValueError for a read-only one."""
    if not isinstance(out, Handle | np.ndarray) or isinstance(out, np.generic):
        raise TypeError("return arrays must be of ArrayType")
    if (isinstance(out, np.ndarray) or out._views or out._cell.shared) and not out.flags.writeable:  # type: ignore[union-attr]
        raise ValueError("output array is read-only")


@contextmanager
def dtypes_first(
    function: np.ufunc, operands: tuple[Any, ...], outs: tuple[Any, ...], **asked: Any
) -> Iterator[None]:
    """NumPy's errors in its order: outputs that cannot be written to, dtypes that do not fit, shapes.

    What is `asked` of dtypes are its `casting`, and its `dtype` or `signature`.
    """
    for out in outs:
        if out is not None:
            check_output(out)

    def check() -> None:
        kinds = (kind_of(operand(o)) for o in operands)
        resolved_dtypes(function, kinds, (None if o is None else o.dtype for o in outs), **asked)

    if any(isinstance(o, (list, tuple)) or getattr(o, "dtype", None) == np.dtype(object) for o in operands):
        check()  # what objects compute is the user's code, which nobody asks for a result that is refused
    try:
        yield
    except ValueError:
        with alone():
            check()
        raise


def check_outputs(name: str, results: Sequence[Any], outs: Sequence[Any], casting: Any) -> None:
    """The errors of dtypes and shapes for outputs, or None, which results of one shape are broadcast to."""
    for result, out in zip(results, outs, strict=True):
        if out is not None:
            check_cast(name, result.dtype, out.dtype, casting)
    check_places(name, [results[0].shape], outs)


def check_places(name: str, shapes: Sequence[tuple[int, ...]], outs: Sequence[Any]) -> None:
    """The errors of shapes for outputs, or None, which what has these shapes is broadcast to."""
    given = [o for o in outs if o is not None]
    whole = build.broadcast_shapes(name, *shapes, *(o.shape for o in given))
    for out in given:
        if whole != out.shape:
            raise ShapeError(
                f"{name}: non-broadcastable output operand with shape {out.shape} "
                f"doesn't match the broadcast shape {whole}"
            )


def stored(
    name: str,
    result: ndarray,
    out: Any,
    where: Any = True,
    casting: str = "same_kind",
    *,
    broadcast: bool = False,
) -> ndarray:
    """A result, written to `out` (an array of ours or NumPy's) where that is given, and `where` is true.

    Raises
    ------
    TypeError : the casting rule forbids it (as NumPy's `UFuncTypeError`), or `out` is no array
    ShapeError : `out` has not the shape of the result, or, with `broadcast`, one that it is broadcast to
    """
    if out is None and where is True:
        return result
    mask = mask_of(where)
    if out is None and mask is True:
        return result
    result = as_handle(result)  # an element is NumPy's number
    is_new = out is None
    if is_new:
        without_output(name, result)
        shape = build.broadcast_shapes(name, result.shape, mask.shape)
        out = wrap_array(build.broadcast(build.constant(left_out((), result.dtype)), shape))
        broadcast = True
    else:
        check_output(out)
    if not broadcast and out.shape != result.shape:
        raise ShapeError(f"{name}: output array has shape {out.shape}, but the result {result.shape}")
    if isinstance(out, np.ndarray):
        np.copyto(out, result._force(), casting=casting, where=forced(mask))  # type: ignore[arg-type]
        return out  # type: ignore[return-value]
    check_outputs(name, [result], [out], casting)
    if mask is not True:
        result = _masked(result, mask, out)
    out._write(result)
    return out[()] if is_new and not out.ndim else out  # type: ignore[no-any-return]


def _masked(result: ndarray, mask: Any, out: Any) -> ndarray:
    """What `out` is to have: elements of the result where the mask is true, and its own elsewhere."""
    known = small_values((result, mask, out))
    if known is not None:
        made = np.array(known[2])
        np.copyto(made, known[0], casting="unsafe", where=known[1])
        return wrap(made)
    node = converted_node(result._node(), out.dtype)
    return wrap_node(build.map_("where", mask._node(), node, out._node()))


def without_output(name: str, result: ndarray) -> ndarray:
    """A result that is zero where a mask is false, of which the user is told."""
    warn_user(f"{name}: 'where' used without 'out', expect zeros where it is false")
    return result


def wrapped_by(maker: Any, result: Any, context: tuple[Any, ...] | None) -> Any:
    """A result as the `__array_wrap__` of another class's object gives it, also of one for older NumPys."""
    result = as_handle(result)
    arguments = (copied(result, "K") if result._cell.frozen else result, context, result._cell.frozen)
    for count in (3, 2, 1):
        try:
            made = maker.__array_wrap__(*arguments[:count])
        except TypeError:
            if count == 1:
                raise
            continue
        if count < 3:
            warn_user(
                "__array_wrap__ must accept context and return_scalar arguments (positionally)",
                DeprecationWarning,
            )
        return made
    return result
