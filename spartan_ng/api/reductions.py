"""Folds and scans: NumPy's reductions and cumulative functions over the tables of folds and scans."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import ufuncs
from spartan_ng.api.cell import Masked
from spartan_ng.api.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.errstate import is_strict
from spartan_ng.api.forcing import counter, known_count, remember_count, run, value_of
from spartan_ng.api.handle import Handle, as_handle, wrap, wrap_node
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import at_once_bytes
from spartan_ng.graph.node import Node
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.scans import SCANS, SEGMENTED

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray

_NONE: Any = np._NoValue
_NUMBERS = "biufc"
"""Kinds of dtypes that are folded where they are, whatever the fold."""
_EXTREMES = {"minimum", "maximum", "fmin", "fmax"}
_LOGICAL = {"logical_and", "logical_or", "logical_xor"}


def reduce(
    name: str,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """Any ufunc's `reduce` with all of NumPy's arguments."""
    a = as_handle(a)
    keepdims = False if keepdims is _NONE else keepdims
    where = True if where is _NONE else where
    value = promptly(a)
    flags = where._peek() if isinstance(where, Handle) else where
    if value is not None and flags is not None and out is None and is_prompt(value):
        numpys: Any = getattr(np, name)
        keywords = {} if initial is _NONE else {"initial": _scalar(initial)}
        if flags is not True:
            keywords["where"] = np.asarray(flags, bool)
        result = numpys.reduce(value, axis, dtype, None, keepdims, **keywords)
        return result if value.dtype.kind == "O" else wrap(result)
    if name not in FOLDS or not (a.dtype.kind in _NUMBERS or _is_time_fold(name, a.dtype.kind)):
        return gathered(getattr(np, name).reduce, a, axis, dtype, out, keepdims, initial, where)  # type: ignore[no-any-return]
    masked = a._masked()
    if masked is not None and where is True and _stays_filtered(masked, axis):
        result = _filtered(name, masked, axis, dtype, keepdims, initial)
    else:
        result = _fold(name, a, axis, dtype, keepdims, initial, where)
    return _into(name, result, out, "unsafe")


def _into(name: str, result: Any, out: Any, casting: str = "same_kind") -> ndarray:
    """A reduction's result, written to `out` where that is given, which must have its shape."""
    if out is None:
        return result  # type: ignore[no-any-return]
    if out.shape != result.shape:
        raise ShapeError(f"{name}: output operand of shape {out.shape} for a result of shape {result.shape}")
    return ufuncs.stored(name, result, out, True, casting)  # type: ignore[no-any-return]


def promptly(a: ndarray) -> Any:
    """The value of an array that is on the driver, or has to be there, to see its errors at once; or None."""
    value = a._peek()
    return a._force() if value is None and a.dtype.kind in "fc" and is_strict() else value


def _is_time_fold(name: str, kind: str) -> bool:
    """Whether dates or durations are folded where they are: extremes, and sums of durations."""
    return (kind in "mM" and name in _EXTREMES) or (kind == "m" and name == "add")


def is_prompt(value: Any) -> bool:
    """Whether NumPy should fold a value that is here at once."""
    small = config.small_bytes
    if value.nbytes <= small or value.nbytes <= at_once_bytes(small) or value.dtype.hasobject:
        return True
    return is_strict()


def _fold(name: str, a: ndarray, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> ndarray:
    """The fold of a lazy array."""
    axes = _axes(axis, a.ndim)
    row = FOLDS[name]
    node = a._node()
    mask = None
    if where is not True:
        mask = build.broadcast(as_handle(where, bool)._node(), a.shape)
    nothing = math.prod(a.shape[i] for i in axes) == 0
    if row.identity is None and initial is _NONE:
        if nothing:
            raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
        if mask is not None:
            raise ValueError(
                f"reduction operation '{name}' does not have an identity, so to use a where mask "
                "one has to specify 'initial'"
            )
    if mask is not None and row.identity is None and node.dtype.kind not in "biuf":
        neutral = build.cast(as_handle(initial)._node(), node.dtype)
        node, mask = build.map_("where", mask, node, neutral, dtype=node.dtype), None
    result = _folded(name, node, axes, dtype, mask, nothing)
    if initial is not _NONE:
        result = _with_initial(name, result, initial)
    return wrap_node(keep(result, a.shape, axes) if keepdims else result)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes to fold; a number may be folded along its axis 0 or -1, as in NumPy."""
    return build.axes_tuple(None if ndim == 0 and axis in (0, -1) else axis, ndim)


def _folded(
    name: str, node: Node, axes: tuple[int, ...], dtype: Any, mask: Node | None, nothing: bool = False
) -> Node:
    """The FOLD node; folding along no axis only casts, an empty fold is a constant."""
    row = FOLDS[name]
    target = np.dtype(dtype) if dtype is not None else row.dtype(node.dtype)
    shape = tuple(n for i, n in enumerate(node.shape) if i not in axes)
    if nothing:
        identity = row.identity
        if identity is None:
            identity = _extreme(name, target)
        return build.broadcast(build.constant(np.asarray(identity).astype(target)), shape)
    if not axes:
        result = build.cast(node, target)
        if mask is not None:
            neutral = build.constant(
                np.asarray(row.identity if row.identity is not None else _extreme(name, target)).astype(
                    target
                )
            )
            result = build.map_("where", mask, result, neutral)
        return result
    casts = dtype is not None and name not in _LOGICAL and node.dtype.kind != target.kind
    if casts and target != row.dtype(node.dtype):
        node = build.cast(node, target)
    return build.fold(name, node, axes, dtype=target, where=mask)


def _extreme(name: str, dtype: np.dtype[Any]) -> Any:
    """What no element can beat in a minimum or maximum."""
    least = name in ("minimum", "fmin")
    if dtype.kind in "fc":
        return np.inf if least else -np.inf
    if dtype.kind == "b":
        return least
    return np.iinfo(dtype).max if least else np.iinfo(dtype).min


def _with_initial(name: str, node: Node, initial: Any) -> Node:
    """Start the fold from a given value."""
    start = initial._node() if isinstance(initial, Handle) else build.constant(np.asarray(initial))
    if start.dtype.kind == "c" != node.dtype.kind:
        raise TypeError(f"{name}: initial is {start.dtype}, which {node.dtype} does not hold")
    start = build.cast(start, node.dtype)
    return build.map_(name, start, node, dtype=node.dtype)


def keep(node: Node, shape: tuple[int, ...], axes: tuple[int, ...]) -> Node:
    """Folded axes as axes of length 1."""
    return build.reshape(node, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _scalar(a: Any) -> Any:
    return a._force() if isinstance(a, Handle) else a


# --- filtered arrays -------------------------------------------------------------------------------


def _stays_filtered(masked: Masked, axis: Any) -> bool:
    """Whether a fold along `axis` takes all of the filtered axis."""
    ndim = 1 + masked.a.ndim - masked.mask.ndim
    return 0 in build.axes_tuple(axis, ndim) and masked.a.dtype.kind in "biuf"


def _filtered(name: str, masked: Masked, axis: Any, dtype: Any, keepdims: bool, initial: Any) -> ndarray:
    """Fold with the mask as `where`; the elements are never brought together."""
    extra = masked.mask.ndim - 1
    axes = build.axes_tuple(axis, masked.a.ndim - extra)
    wide = tuple(range(masked.mask.ndim)) + tuple(i + extra for i in axes if i > 0)
    node = _folded(
        name, masked.a, wide, dtype, build.broadcast(masked.wide_mask(), masked.a.shape), 0 in masked.a.shape
    )
    if initial is not _NONE:
        node = _with_initial(name, node, initial)
    elif FOLDS[name].identity is None:
        node = _checked_extreme(name, node, masked)
    if keepdims:
        node = keep(node, (1, *masked.a.shape[masked.mask.ndim :]), axes)
    return wrap_node(node)


def _checked_extreme(name: str, node: Node, masked: Masked) -> Node:
    """An extreme of what is left; NumPy raises at the call where nothing is, so look now, in one pass."""
    count = known_count(masked.mask)
    if count is None:
        ref, counted = run([node, counter(masked.mask)])
        count = int(value_of(counted))
        remember_count(masked.mask, count)
        node = build.data(ref)
    if count == 0:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    return node


def count_of(a: ndarray, axis: Any, where: Any) -> Any:
    """How many elements a fold along `axis` takes: an int, or an array where it depends on a mask."""
    masked = a._masked()
    if masked is not None and where is True and _stays_filtered(masked, axis):
        rest = masked.a.shape[masked.mask.ndim :]
        axes = build.axes_tuple(axis, 1 + len(rest))
        known = known_count(masked.mask)
        kept: Any = wrap_node(counter(masked.mask)) if known is None else known
        return kept * math.prod(rest[i - 1] for i in axes if i > 0)
    axes = _axes(axis, a.ndim)
    if where is True:
        return math.prod(a.shape[i] for i in axes)
    mask = build.broadcast(as_handle(where, bool)._node(), a.shape)
    return reduce("add", wrap_node(mask), axis, np.intp, keepdims=True)


# --- NumPy's reductions ----------------------------------------------------------------------------


@numpy_function(np.sum)
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """The sum along `axis`."""
    return reduce("add", a, axis, dtype, out, keepdims, initial, where)


@numpy_function(np.prod)
def prod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """The product along `axis`."""
    return reduce("multiply", a, axis, dtype, out, keepdims, initial, where)


@numpy_function(np.max, np.amax)
def max(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """The greatest element along `axis`."""
    return reduce("maximum", a, axis, None, out, keepdims, initial, where)


@numpy_function(np.min, np.amin)
def min(
    a: Any,
    axis: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """The least element along `axis`."""
    return reduce("minimum", a, axis, None, out, keepdims, initial, where)


def _truth(a: Any) -> Any:
    """The dtype of `any` and `all` of objects, whose ufuncs would give one of the objects."""
    return bool if as_handle(a).dtype.kind == "O" else None


@numpy_function(np.any)
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> ndarray:
    """Whether some element along `axis` is true."""
    return reduce("logical_or", a, axis, _truth(a), out, keepdims, _NONE, where)


@numpy_function(np.all)
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> ndarray:
    """Whether every element along `axis` is true."""
    return reduce("logical_and", a, axis, _truth(a), out, keepdims, _NONE, where)


def extreme_place(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> ndarray:
    """`argmin` or `argmax`."""
    a = as_handle(a)
    value = a._peek()
    if value is not None and out is None and keepdims is False and value.nbytes <= config.small_bytes:
        return wrap(getattr(value, name)(axis))
    keepdims = False if keepdims is _NONE else keepdims
    if value is not None and is_prompt(value):
        result = wrap(getattr(value, name)(axis, keepdims=keepdims))
        return _into(name, result, out)
    shape = a.shape
    if axis is None or (not shape and axis in (0, -1)):
        axis = None
        node, where = build.reshape(a._node(), (a.size,)), 0
    else:
        node, where = a._node(), build.axis_index(axis, a.ndim)
    if node.shape[where] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    folded = build.fold(name, node, (where,))
    if keepdims:
        folded = keep(folded, shape, tuple(range(len(shape))) if axis is None else (where,))
    return _into(name, wrap_node(folded), out)


@numpy_function(np.argmax)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> ndarray:
    """The index of the first greatest element."""
    return extreme_place("argmax", a, axis, out, keepdims)


@numpy_function(np.argmin)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> ndarray:
    """The index of the first least element."""
    return extreme_place("argmin", a, axis, out, keepdims)


@numpy_function(np.count_nonzero, folds=True)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """How many elements are not zero."""
    a = as_handle(a)
    return sum(a if a.dtype == bool else ufuncs.not_equal(a, 0), axis, np.intp, None, keepdims)


# --- scans -----------------------------------------------------------------------------------------


def accumulate(name: str, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
    """Any ufunc's `accumulate`."""
    a = as_handle(a)
    value = promptly(a)
    if value is not None and (value.nbytes <= config.small_bytes or value.dtype.hasobject or is_strict()):
        result = wrap(getattr(np, name).accumulate(value, axis, dtype))
    elif a.dtype.kind not in _NUMBERS:
        result = gathered(getattr(np, name).accumulate, a, axis, dtype)
    else:
        if a.ndim == 0 and axis in (0, -1):
            raise TypeError("cannot accumulate on a scalar")
        where = build.axis_index(axis, a.ndim)
        if name not in SCANS:
            kind = getattr(np, name).accumulate(np.ones(1, a.dtype), dtype=dtype).dtype
            keywords = (("ufunc", name), ("dtype", kind.str))
            node = build.along_axis("accumulate", [a._node()], where, dtype=kind, keywords=keywords)
            result = wrap_node(node)
            return result if out is None else ufuncs.stored(name, result, out, True, "unsafe")
        target = np.dtype(dtype) if dtype is not None else SCANS[name].dtype(a.dtype)
        node = a._node() if name in _LOGICAL else build.cast(a._node(), target)
        result = wrap_node(node if a.size == 0 else build.scan(name, node, where, target))
    return result if out is None else ufuncs.stored(name, result, out, True, "unsafe")


def _cumulative(name: str, a: Any, axis: Any, dtype: Any, out: Any) -> ndarray:
    a = as_handle(a)
    if axis is None or a.ndim == 0:
        a, axis = a.reshape(-1), axis or 0
    if dtype is None and a.dtype.kind in "biu":
        dtype = FOLDS[name].dtype(a.dtype)
    return accumulate(name, a, axis, dtype, out)


@numpy_function(np.cumsum)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative sums along `axis` (None: of the flat array)."""
    return _cumulative("add", a, axis, dtype, out)


@numpy_function(np.cumprod)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative products along `axis` (None: of the flat array)."""
    return _cumulative("multiply", a, axis, dtype, out)


def _cumulative_with_initial(
    name: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool
) -> ndarray:
    x = as_handle(x)
    if axis is None:
        if x.ndim > 1:
            raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
        axis = 0
    result = _cumulative(name, x, axis, dtype, None)
    if include_initial:
        where = build.axis_index(axis, x.ndim)
        shape = (*x.shape[:where], 1, *x.shape[where + 1 :])
        first = build.constant(np.asarray(FOLDS[name].identity, result.dtype))
        nodes = [build.broadcast(first, shape), result._node()]
        result = wrap_node(build.concatenate(nodes, where))
    return result if out is None else ufuncs.stored(name, result, out, True, "unsafe")


@numpy_function(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Cumulative sums; with `include_initial` the first is 0."""
    return _cumulative_with_initial("add", x, axis, dtype, out, include_initial)


@numpy_function(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Cumulative products; with `include_initial` the first is 1."""
    return _cumulative_with_initial("multiply", x, axis, dtype, out, include_initial)


# --- ufunc methods with places -----------------------------------------------------------------------


_GROUPED = 1 << 12
"""Rows with known indices from which sums into few places are a pass of their own."""


def accumulate_at(name: str, a: ndarray, indices: Any, b: Any) -> None:
    """`ufunc.at`: an update for every index, repeated ones one after the other."""
    if _is_grouped_sum(name, a, indices):
        a._write_node((a + _grouped_sum(a, indices, as_handle(b)))._node())
        return
    target = a._peek()
    plain_indices = _plain_key(indices)
    if target is not None and plain_indices is not None and not (isinstance(b, Handle) and b._peek() is None):
        here = a._in_place()
        if here is not None:
            getattr(np, name).at(here, plain_indices, _scalar(b))
            return
    from spartan_ng.api.indexing import flat_positions

    positions = flat_positions(a.shape, indices)
    updates = as_handle(b)
    _check_update(name, a, updates)
    flat = build.reshape(a._node(), (a.size,))
    values = build.broadcast(build.cast(updates._node(), a.dtype), positions.shape)
    node = build.scatter(flat, positions.reshape(-1)._node(), build.reshape(values, (positions.size,)), name)
    a._write_node(build.reshape(node, a.shape))


def repeat_at(function: ufuncs.ufunc, a: ndarray, indices: Any) -> None:
    """`ufunc.at` of a function of one operand: as often for an element as its index occurs."""
    plain_indices = _plain_key(indices)
    here = a._in_place() if a._peek() is not None and plain_indices is not None else None
    if here is not None:
        function.np.at(here, plain_indices)
        return
    zeros = build.broadcast(build.constant(np.int64(0)), a.shape)
    times = wrap_node(zeros)
    accumulate_at("add", times, indices, np.int64(1))
    for n in range(int(times.max()) if times.size else 0):
        once = build.cast(function(a)._node(), a.dtype)  # as NumPy does, whatever the dtypes
        a._write_node(build.map_("where", ufuncs.greater(times, n)._node(), once, a._node()))


def _check_update(name: str, a: ndarray, b: ndarray) -> None:
    dtype = getattr(np, name).resolve_dtypes((a.dtype, b.dtype, None))[-1]
    if not np.can_cast(dtype, a.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc '{name}' output from {dtype} to {a.dtype} with casting rule 'same_kind'"
        )


def _is_grouped_sum(name: str, a: ndarray, indices: Any) -> bool:
    """Whether rows are added into few places of a float array: each worker sums its own rows."""
    if name != "add" or not isinstance(indices, Handle) or a.ndim == 0:
        return False
    rows = indices.size if indices.ndim == 1 and indices.dtype.kind in "iu" else 0
    few = rows < _GROUPED and indices._peek() is not None
    return rows >= a.shape[0] and not few and a.dtype in (np.float32, np.float64)


def _grouped_sum(a: ndarray, indices: Handle, b: ndarray) -> ndarray:
    """What `add.at` adds to `a`: for each row of it the sum of the rows of `b` with its index."""
    from spartan_ng.api.indexing import checked_index

    _check_update("add", a, b)
    rows = build.broadcast(build.cast(b._node(), a.dtype), (indices.size, *a.shape[1:]))
    places = checked_index(indices, a.shape[0], 0)._node()
    return wrap_node(build.bincount(places, a.shape[0], rows, a.dtype))


def _plain_key(key: Any) -> Any:
    """An index without lazy arrays in it, or None."""
    parts = key if isinstance(key, tuple) else (key,)
    if builtins.any(isinstance(p, Handle) and p._peek() is None for p in parts):
        return None
    plain = tuple(_scalar(p) for p in parts)
    return plain if isinstance(key, tuple) else plain[0]


_FEW_SEGMENTS = 16
"""Segments up to so many are folded one by one; more of them are one scan."""


def reduceat(name: str, array: Any, indices: Any, axis: int, dtype: Any, out: Any) -> ndarray:
    """`ufunc.reduceat`: one scan that starts anew with every segment, or few segments one by one."""
    a = as_handle(array)
    at = [int(i) for i in np.asarray(indices)]
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    if builtins.any(not 0 <= i < n for i in at):
        raise IndexError(f"{name}.reduceat: an index of {at} is out of bounds for axis {where} with size {n}")
    if not at or a.dtype.hasobject:
        return by_numpy(getattr(np, name).reduceat, a, at or np.zeros(0, np.intp), axis, dtype, out)  # type: ignore[no-any-return]
    ascending = builtins.all(i < j for i, j in pairwise(at))
    if ascending and len(at) > _FEW_SEGMENTS and name in SCANS and a.dtype.kind in "biufc":
        kind = getattr(np, name).reduceat(np.ones(1, a.dtype), [0], dtype=dtype).dtype
        result = segments(name, build.cast(a._node(), kind), at, where)
        return result if out is None else ufuncs.stored(name, result, out, True, "unsafe")
    before = (slice(None),) * where
    parts = []
    for lo, hi in zip(at, [*at[1:], n], strict=True):
        part = a[(*before, slice(lo, builtins.max(hi, lo + 1)))]
        parts.append(reduce(name, part, where, dtype, None, True)._node())
    result = wrap_node(build.concatenate(parts, where))
    return result if out is None else ufuncs.stored(name, result, out, True, "unsafe")


def segments(name: str, a: Node, starts: Sequence[int], axis: int) -> ndarray:
    """The fold of each segment of `axis` that begins at the ascending `starts`: its scan's last value."""
    from spartan_ng.api.rearranging import take

    n = a.shape[axis]
    begins = np.zeros(n, a.dtype)
    begins[list(starts)] = 1
    along = tuple(n if d == axis else 1 for d in range(a.ndim))
    flags = build.broadcast(as_handle(begins.reshape(along))._node(), a.shape)
    scanned = wrap_node(build.recurrence(f"{SEGMENTED}{name}", a, flags, axis))
    last: Any = np.append(np.asarray(starts, np.int64)[1:], n) - 1
    found: ndarray = take(scanned, last, axis)
    return found


amax, amin = max, min

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "min",
    "prod",
    "sum",
]
