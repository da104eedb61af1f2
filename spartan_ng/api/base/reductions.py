"""Folds: NumPy's reductions over the table of folds."""

from __future__ import annotations

import math
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.conversion import as_handle, numbers_here, numpys
from spartan_ng.api.core.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.core.forcing import compute_nodes, counter, known_count, remember_count, value_of
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBER_KINDS, are_numbers, is_foreign
from spartan_ng.api.core.layouts import lying_as_copy, lying_as_folded
from spartan_ng.api.core.operands import as_axes, check_output, mask_of, stored
from spartan_ng.api.core.outputs import folds_in
from spartan_ng.api.core.overlaps import along_lines, sum_of_products
from spartan_ng.api.core.quick import shortened
from spartan_ng.api.core.telling import told
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.config import config
from spartan_ng.costs.choices import WINDOW_ELEMENTS
from spartan_ng.error_state import error_state
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.by_ufunc import neutral
from spartan_ng.ops.folds import FOLDS, own_dtype
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_NONE: Any = np._NoValue
_EXTREMES = {"minimum", "maximum", "fmin", "fmax"}
LOGICAL = {"logical_and", "logical_or", "logical_xor"}
"""Folds that take the truth of elements of any dtype."""


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
    if out is None and dtype is None and where is True and initial is _NONE:
        value = numbers_here(a)
        if value is not None:
            keeps = keepdims is not _NONE and keepdims
            return wrap(told(getattr(np, name).reduce, value, axis, None, None, keeps))
    a = as_handle(a)
    if axis is not None and type(axis) is not int:
        axis = as_axes(axis)
    keepdims = False if keepdims is _NONE else keepdims
    where = where is True or mask_of(where)
    if out is not None:
        check_output(out)
    own_dtype = a.dtype
    if out is not None and is_foreign(own_dtype):
        return by_numpy(getattr(np, name).reduce, a, axis, dtype, out=out, keepdims=keepdims)  # type: ignore[no-any-return]
    if out is not None and dtype is None and name not in LOGICAL:
        dtype = folds_in(name, own_dtype, out.dtype)
        if dtype is None or (dtype.kind in "mM" and dtype != own_dtype):
            options = {} if initial is _NONE else {"initial": numpys(initial)}
            options |= {} if where is True else {"where": where}
            return by_numpy(getattr(np, name).reduce, a, axis, out=out, keepdims=keepdims, **options)  # type: ignore[no-any-return]
        dtype = None if dtype.kind in "mM" else dtype  # units are not asked for by name
    value = promptly(a)
    flags = where._peek() if isinstance(where, Handle) else where
    if flags is not None and out is None and value is not None and _is_folded_now(value, axis):
        function: Any = getattr(np, name)
        keywords = {} if initial is _NONE else {"initial": numpys(initial)}
        if flags is not True:
            keywords["where"] = flags
        result = function.reduce(value, axis, dtype, None, keepdims, **keywords)
        return result if value.dtype.kind == "O" else wrap(result)
    if initial is None:  # a fold that starts with an element
        _check_starts(name, a, axis, where)
        initial = _NONE
    kind = own_dtype.kind
    timely = kind in "mM" and dtype is None and _is_time_fold(name, kind)
    # A fold begins with 0.0 here; with -0.0, sums of nothing else stay -0.0.
    signed = name == "add" and initial is not _NONE and _is_negative_zero(numpys(initial))
    if name not in FOLDS or not (are_numbers(own_dtype, dtype) or timely) or signed:
        return gathered(getattr(np, name).reduce, a, axis, dtype, out, keepdims, initial, where)  # type: ignore[no-any-return]
    masked = a._masked()
    if masked is not None and where is True and _stays_filtered(masked, axis):
        result = _filtered(name, masked, axis, dtype, keepdims, initial)
    else:
        # Of leaves alone there are no windows; most sums are of those, or of them times each other.
        made = a._cell._node
        is_made_of_steps = (
            made is not None and made.inputs and (made.inputs[0].inputs or made.inputs[-1].inputs)
        )
        is_plain = name == "add" and where is True and initial is _NONE and (a._views or is_made_of_steps)
        axes = folded_axes(axis, a.ndim) if is_plain and (dtype is None or dtype == own_dtype) else ()
        over = sum_of_products(a._node(), axes) if axes else None
        if over is not None:
            kept = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
            result = wrap(np.reshape(over, kept) if keepdims else over)
        else:
            result = _fold(name, a, axis, dtype, keepdims, initial, where)
        result = lying_as_folded(result, a, axis)
    return result if out is None else stored(name, result, out, casting="unsafe")


def promptly(a: ndarray) -> Any:
    """The value of an array that is on the driver, or has to be there, to see its errors at once; or None."""
    value = a._peek()
    if error_state().is_strict and a.dtype.kind in "fc":
        value = a._force() if value is None else value
        if config.reproducible:  # the order in which NumPy adds follows the memory
            return np.asarray(value, order="C")
    return value


def _is_negative_zero(number: Any) -> bool:
    return isinstance(number, float | complex | np.inexact) and number == 0 and "-" in str(number)


def _is_time_fold(name: str, kind: str) -> bool:
    """Whether dates or durations are folded where they are: extremes, and sums of durations."""
    return (kind in "mM" and name in _EXTREMES) or (kind == "m" and name == "add")


def is_prompt(value: Any) -> bool:
    """Whether NumPy should fold a value that is here at once."""
    return door.is_small(value.nbytes) or value.dtype.hasobject or error_state().is_strict


def _is_folded_now(value: Any, axis: Any) -> bool:
    """Whether NumPy should fold a value that is here at once: also windows that lie over each other, but for
    short ones, which the optimizer makes slices of."""
    if is_prompt(value):
        return True
    if not door.is_shown_again(value):
        return False
    axes = folded_axes(axis, value.ndim)
    is_short = axes == (value.ndim - 1,) and value.shape[-1] <= WINDOW_ELEMENTS
    made = math.prod(n for i, n in enumerate(value.shape) if i not in axes)
    return not is_short and value.dtype.kind in "biufc" and door.is_made_of(value, made)


def _fold(name: str, a: ndarray, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> ndarray:
    """The fold of a lazy array."""
    node = a._node()
    whole = node.shape
    axes = folded_axes(axis, len(whole))
    row = FOLDS[name]
    mask = None
    if where is not True:
        mask = build.broadcast(where._node(), whole)
    nothing = 0 in whole and 0 in [whole[i] for i in axes]
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
    return wrap_node(keep(result, whole, axes) if keepdims else result)


def folded_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """The axes to fold; a number may be folded along its axis 0 or -1, as in NumPy."""
    return build.axes_tuple(None if ndim == 0 and axis in (0, -1) else axis, ndim)


def _folded(
    name: str, node: Node, axes: tuple[int, ...], dtype: Any, mask: Node | None, nothing: bool = False
) -> Node:
    """The FOLD node; folding along no axis only casts, an empty fold is a constant."""
    row = FOLDS[name]
    target = np.dtype(dtype) if dtype is not None else row.dtype(node.dtype)
    if nothing:
        shape = tuple(n for i, n in enumerate(node.shape) if i not in axes)
        return build.broadcast(build.constant(_start(name, target)), shape)
    if not axes:
        result = build.cast(node, target)
        if row.identity is not None and name not in LOGICAL:  # which is not every number's own: -0.0, 1 * inf
            result = build.map_(name, build.constant(_start(name, target)), result, dtype=target)
        if mask is not None:
            result = build.map_("where", mask, result, build.constant(_start(name, target)))
        return result
    casts = dtype is not None and name not in LOGICAL and node.dtype.kind != target.kind
    if casts and target != own_dtype(row, node.dtype):
        node = build.cast(node, target)
    return build.fold(name, node, axes, dtype=target, where=mask)


def _start(name: str, dtype: np.dtype[Any]) -> Any:
    """The identity of a fold, or what no element can beat in one that has none."""
    own = FOLDS[name].identity
    return np.asarray(neutral(getattr(np, name), dtype) if own is None else own).astype(dtype)


def _check_starts(name: str, a: ndarray, axis: Any, where: Any) -> None:
    """NumPy's error where a fold without a first value has no element to start with, or may have none."""
    ufunc = getattr(np, name)
    if where is not True:
        ufunc.reduce(np.zeros(1, bool), initial=None, where=np.ones(1, bool))
    elif 0 in [a.shape[i] for i in folded_axes(axis, a.ndim)]:
        ufunc.reduce(np.zeros(0, bool), initial=None)


def _with_initial(name: str, node: Node, initial: Any) -> Node:
    """Start the fold from a given value."""
    nothing = np.zeros(0, node.dtype)  # what NumPy makes of `initial` alone, or its error
    start = getattr(np, name).reduce(nothing, dtype=node.dtype.type, initial=numpys(initial))
    return build.map_(name, build.constant(np.asarray(start)), node, dtype=node.dtype)


def keep(node: Node, shape: tuple[int, ...], axes: tuple[int, ...]) -> Node:
    """Folded axes as axes of length 1."""
    return build.reshape(node, tuple(1 if i in axes else n for i, n in enumerate(shape)))


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
        beside = math.prod(masked.a.shape[i + extra] for i in axes if i > 0)
        node = _checked_extreme(name, node, masked, beside)
    if keepdims:
        node = keep(node, (1, *masked.a.shape[masked.mask.ndim :]), axes)
    return wrap_node(node)


def _checked_extreme(name: str, node: Node, masked: Masked, beside: int) -> Node:
    """An extreme of what is left, with so many elements beside it; NumPy raises at the call where nothing is,
    so look now, in one pass."""
    count = known_count(masked.mask) if beside else 0
    if count is None:
        ref, counted = compute_nodes([node, counter(masked.mask)])
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
    if where is True:
        return math.prod(map(a.shape.__getitem__, build.axes_tuple(axis, a.ndim)))
    mask = build.broadcast(where._node(), a.shape)
    return reduce("add", wrap_node(mask), axis, np.intp, keepdims=True)


# --- NumPy's reductions ----------------------------------------------------------------------------


@numpy_function(np.sum, front=shortened(np.sum))
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
    if isinstance(a, GeneratorType):
        raise TypeError("np.sum of a generator: use np.sum(np.fromiter(generator)) or Python's sum")
    return reduce("add", a, axis, dtype, out, keepdims, initial, where)


@numpy_function(np.prod, front=shortened(np.prod))
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


@numpy_function(np.max, np.amax, front=shortened(np.max))
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


@numpy_function(np.min, np.amin, front=shortened(np.min))
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


def fold_truths(name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, where: Any) -> ndarray:
    """`any` or `all`; of objects, whose ufuncs would give one of the objects, truths."""
    if dtype is None and as_handle(a).dtype.kind == "O":
        dtype = bool
    return reduce(name, a, axis, dtype, out, keepdims, _NONE, where)


@numpy_function(np.any, few=2)
def any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> ndarray:
    """Whether some element along `axis` is true."""
    return fold_truths("logical_or", a, axis, None, out, keepdims, where)


@numpy_function(np.all, few=2)
def all(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> ndarray:
    """Whether every element along `axis` is true."""
    return fold_truths("logical_and", a, axis, None, out, keepdims, where)


def extreme_place(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> ndarray:
    """`argmin` or `argmax`."""
    a = as_handle(a)
    value = a._peek()
    if value is not None and out is None and keepdims is False and door.is_small(value.nbytes):
        return wrap(getattr(value, name)(axis))
    keepdims = False if keepdims is _NONE else keepdims
    if value is not None and is_prompt(value):
        result = wrap(getattr(value, name)(axis, keepdims=keepdims))
        return stored(name, result, out)
    over = along_lines(getattr(np, name), value, axis, keepdims=bool(keepdims))
    if over is not None:
        return stored(name, wrap(over), out)
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
    return stored(name, wrap_node(folded), out)


@numpy_function(np.argmax, few=2)
def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> ndarray:
    """The index of the first greatest element."""
    return extreme_place("argmax", a, axis, out, keepdims)


@numpy_function(np.argmin, few=2)
def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> ndarray:
    """The index of the first least element."""
    return extreme_place("argmin", a, axis, out, keepdims)


@numpy_function(np.count_nonzero, eager=True)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> ndarray:
    """How many elements are not zero."""
    a = as_handle(a)
    if a.dtype.names and (axis is not None or keepdims):
        np.empty(0, a.dtype).astype(bool)  # NumPy's error: it counts all of them at once only
    flags = truth(a)
    return sum(flags if flags is a else lying_as_copy(flags, a), axis, np.intp, None, keepdims)


def truth(a: Any) -> Any:
    """Which elements of an array are true: not zero and not empty; NaN and NaT are."""
    kind = a.dtype.kind
    if kind in NUMBER_KINDS:
        return a if kind == "b" else as_handle(a != 0)
    if kind in "mM":
        return wrap_node(build.map_(_TRUTH, a._node(), dtype=np.dtype(bool)))
    value = a._force()
    if not a.dtype.names:
        return wrap(value.astype(bool))
    flags = np.zeros(value.shape, bool)  # of records only `nonzero` tells, where they have arrays as fields
    flags.reshape(-1)[np.flatnonzero(value)] = True
    return wrap(flags[()])


_TRUTH = UserFunction(lambda x: x.astype(bool), origin="truth")


amax, amin = max, min

__all__ = [
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "min",
    "prod",
    "sum",
]
