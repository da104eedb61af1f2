"""Arrays joined along axes, and split into parts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import creation, manipulation
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.operands import WEAK, check_output, small_values, stored
from spartan_ng.api.core.quick import AS_GIVEN, shortened
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.callers import warn_user
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


@numpy_function(np.concatenate, eager=True)
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """Arrays one after the other along an axis."""
    arrays = [_merged(arrays, axis)] if _is_stack(arrays) else list(arrays)
    parts = [as_handle(a) for a in arrays]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [manipulation.ravel(p) for p in parts], 0
    axis = operator.index(axis)
    ndim = parts[0].ndim
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    where = build.axis_index(axis, ndim)
    for i, p in enumerate(parts):
        if p.ndim != ndim:
            raise ShapeError(
                "all the input arrays must have same number of dimensions, but the array at index 0 has "
                f"{ndim} dimension(s) and the array at index {i} has {p.ndim} dimension(s): shapes "
                f"{parts[0].shape} and {p.shape}"
            )
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    if out is not None:
        check_output(out)
    given = dtype if out is None else out.dtype
    if given is None:  # Python's numbers are weak
        kinds = [a if type(a) in WEAK else p.dtype for a, p in zip(arrays, parts, strict=True)]
    kind = np.dtype(given) if given is not None else np.result_type(*kinds)
    is_any = kind in (np.dtype("S"), np.dtype("U"), np.dtype("m8"), np.dtype("M8"))
    if given is not None and is_any:  # as long as the longest text, in the smallest unit
        kind = np.result_type(*(np.zeros(0, p.dtype).astype(kind).dtype for p in parts))
    for a, p in zip(arrays, parts, strict=True):
        if type(a) not in WEAK and not np.can_cast(p.dtype, kind, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {p.dtype!r} to {kind!r} according to the rule {casting!r}"
            )
    result = wrap_node(build.concatenate([build.cast(p._node(), kind) for p in parts], where))
    if out is None:
        return result
    if out.shape != result.shape:
        raise ShapeError(f"Output array is the wrong shape: {out.shape}, not {result.shape}")
    return stored("concatenate", result, out)


def _to_join(arrays: Any) -> Any:
    """Arrays to be joined, which no generator may give, as NumPy has it."""
    if not hasattr(arrays, "__getitem__"):
        raise TypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')
    return arrays


def _is_stack(arrays: Any) -> bool:
    """Whether the sequence is one array: thousands of arrays that are its rows are not made then."""
    return isinstance(arrays, Handle) and arrays.ndim > 0 and len(arrays) > 0  # type: ignore[arg-type]


def _merged(stack: ndarray, axis: int | None) -> ndarray:
    """The sub-arrays of a stack, as they follow each other along an axis."""
    # All elements follow each other, as they do in the stack.
    if axis is None:
        return manipulation.ravel(stack)
    if stack.ndim == 1:
        return stack[0]  # type: ignore[no-any-return]  # for the error
    where = build.axis_index(operator.index(axis), stack.ndim - 1)
    shape = list(stack.shape[1:])
    shape[where] *= len(stack)
    return manipulation.moveaxis(stack, 0, where).reshape(shape)


def _lifted(arrays: Any, lift: Callable[[Any], Any]) -> Any:
    """What is to be joined, each with the axes that `lift` gives it."""
    if not _is_stack(arrays):
        return [lift(a) for a in _to_join(arrays)]
    shape = lift(as_handle(np.empty((0, *arrays.shape[1:]))).sum(axis=0)).shape
    return arrays.reshape(len(arrays), *shape)


@numpy_function(np.stack, eager=True)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """Arrays of one shape along a new axis."""
    if _is_stack(arrays):
        where = build.axis_index(axis, arrays.ndim)
        return concatenate(
            manipulation.expand_dims(arrays, where + 1), where, out, dtype=dtype, casting=casting
        )
    parts = [as_handle(a) for a in _to_join(arrays)]
    if not parts:
        raise ValueError("need at least one array to stack")
    if len({p.shape for p in parts}) > 1:
        raise ShapeError(f"all input arrays must have the same shape, not {[p.shape for p in parts]}")
    where = build.axis_index(axis, parts[0].ndim + 1)
    return concatenate(
        [manipulation.expand_dims(p, where) for p in parts], where, out, dtype=dtype, casting=casting
    )


@numpy_function(np.vstack, eager=True)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Arrays as rows, one below the other."""
    return concatenate(_lifted(tup, manipulation.atleast_2d), 0, dtype=dtype, casting=casting)


@numpy_function(np.hstack, eager=True)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Arrays side by side."""
    parts = _lifted(tup, manipulation.atleast_1d)
    is_line = len(parts) > 0 and parts[0].ndim == 1
    return concatenate(parts, 0 if is_line else 1, dtype=dtype, casting=casting)


@numpy_function(np.dstack, eager=True)
def dstack(tup: Any) -> ndarray:
    """Arrays along the third axis."""
    return concatenate(_lifted(tup, manipulation.atleast_3d), 2)


@numpy_function(np.column_stack, eager=True)
def column_stack(tup: Any) -> ndarray:
    """1-d arrays as the columns of a matrix."""
    return concatenate(_lifted(tup, _as_column), 1)


def _as_column(a: Any) -> ndarray:
    a = as_handle(a)
    return a if a.ndim > 1 else a.reshape(-1, 1)  # type: ignore[no-any-return]


@numpy_function(np.block, front=shortened(np.block, 1, AS_GIVEN))
def block(arrays: Any) -> ndarray:
    """An array from nested lists of blocks; TypeError for tuples, ValueError for lists of unequal depth."""

    def depth(a: Any) -> int:
        if isinstance(a, tuple):
            raise TypeError(
                "np.block: only lists can be used to arrange blocks, and np.block does not take tuples"
            )
        if not isinstance(a, list):
            return 0
        if not a:
            raise ValueError("List depths are mismatched or a list is empty")
        depths = set(map(depth, a))
        if len(depths) > 1:
            raise ValueError(
                f"List depths are mismatched: lists of depths {sorted(depths)} stand side by side"
            )
        return 1 + depths.pop()

    def build_up(a: Any, level: int, ndim: int) -> Any:
        if not isinstance(a, list):
            h = as_handle(a) if levels else creation.array(a)
            return h.reshape((1,) * (ndim - h.ndim) + h.shape)
        return concatenate([build_up(b, level - 1, ndim) for b in a], -level)

    def leaves(a: Any) -> list[Any]:
        return [leaf for b in a for leaf in leaves(b)] if isinstance(a, list) else [as_handle(a)]

    levels, blocks = depth(arrays), leaves(arrays)
    if small_values(tuple(blocks), broadcast=False) is not None:
        return by_numpy(np.block, arrays)  # type: ignore[no-any-return]
    return build_up(arrays, levels, max(levels, *(a.ndim for a in blocks)))  # type: ignore[no-any-return]


@numpy_function(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Views of the parts of an axis, as equal as can be."""
    if type(ary) in WEAK or ary is True or ary is False:
        np.array_split(ary, indices_or_sections, axis)  # NumPy's error
    a = as_handle(ary)
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    try:
        cuts = list(indices_or_sections)
    except TypeError:
        parts = int(indices_or_sections)
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, extra = divmod(n, parts)
        # The first `extra` parts have one element more.
        bounds = [i * each + min(i, extra) for i in range(parts + 1)]
    else:
        bounds = [0, *(operator.index(i) for i in cuts), n]
    before = (slice(None),) * where
    return [a[(*before, slice(lo, hi))] for lo, hi in pairwise(bounds)]


@numpy_function(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Views of equal parts of an axis."""
    if type(ary) in WEAK or ary is True or ary is False:
        np.split(ary, indices_or_sections, axis)  # NumPy's error
    a = as_handle(ary)
    if not hasattr(indices_or_sections, "__len__"):
        n = a.shape[build.axis_index(axis, a.ndim)]
        if n % indices_or_sections:
            raise ShapeError(
                f"array split does not result in an equal division: {n} into {indices_or_sections}"
            )
    return array_split(a, indices_or_sections, axis)


@numpy_function(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Parts side by side."""
    a = as_handle(ary)
    if a.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(a, indices_or_sections, 1 if a.ndim > 1 else 0)


@numpy_function(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Parts one below the other."""
    if as_handle(ary).ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@numpy_function(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Parts along the third axis."""
    if as_handle(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


@numpy_function(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The sub-arrays along an axis."""
    if x.ndim == 0:  # NumPy asks what it is given: lists have none
        raise ValueError("Input array must be at least 1-d.")
    x = as_handle(x)
    moved = manipulation.moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def row_stack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> ndarray:
    """`vstack`, by a name that NumPy deprecates."""
    warn_user("`row_stack` alias is deprecated. Use `np.vstack` directly.", DeprecationWarning)
    return vstack(tup, dtype=dtype, casting=casting)


concat = concatenate

__all__ = [
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "row_stack",
    "split",
    "stack",
    "unstack",
    "vsplit",
    "vstack",
]
