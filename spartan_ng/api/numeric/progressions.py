"""Numbers spaced evenly, by differences or by ratios, between two ends."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import creation, joining, manipulation, reductions
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS, is_subclass
from spartan_ng.api.core.layouts import lying_as_copy
from spartan_ng.api.core.operands import common_dtype
from spartan_ng.api.core.quick import AS_COUNTED, shortened
from spartan_ng.api.core.wrapping import converted_node, wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.graph import build
from spartan_ng.graph.node import Node

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_ASKED = frozenset({"num", "endpoint", "retstep", "dtype"})


@numpy_function(np.linspace, front=shortened(np.linspace, 3, AS_COUNTED, _ASKED))
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if any(map(_is_large, (start, stop))):
        return _between_arrays(start, stop, num, endpoint, retstep, dtype, axis)
    plain = [forced(v) for v in (start, stop)]
    numbers = NUMBERS.issuperset(map(type, plain)) or all(
        np.ndim(p) == 0 and np.asarray(p).dtype.kind in "biufc" for p in plain
    )
    numbers = numbers and not any(map(is_subclass, plain))
    if not numbers or door.is_small(16 * num):
        result = np.linspace(plain[0], plain[1], num, endpoint, retstep, dtype, axis)  # type: ignore[call-overload]
        return (wrap(result[0]), wrap(result[1])) if retstep else wrap(result)
    div = num - 1 if endpoint else num
    kind = np.result_type(*plain, float(num))
    kind = np.dtype(kind) if kind.kind in "fc" else np.dtype(float)
    low, high = (np.asarray(p).astype(kind)[()] for p in plain)
    step = (high - low) / div if div > 0 else kind.type(np.nan)
    index = build.cast(build.iota(num), kind)
    if div > 0 and step == 0:
        scaled = build.map_("divide", index, build.constant(np.asarray(div, kind)), dtype=kind)
        scaled = build.map_("multiply", scaled, build.constant(high - low), dtype=kind)
    else:
        scaled = build.map_("multiply", index, build.constant(step if div > 0 else high - low), dtype=kind)
    node = build.map_("add", scaled, build.constant(low), dtype=kind)
    if endpoint and num > 1:
        node = _ending(node, num - 1, high)
    target = np.dtype(kind if dtype is None else dtype)
    if target.kind in "iu":
        node = build.map_("floor", node)
    result = wrap_node(converted_node(node, target))
    return (result, wrap(step)) if retstep else result


def _is_large(end: Any) -> bool:
    """Whether an end is an array that is not here, or lies in a file, say, and is not small."""
    if not isinstance(end, Handle) or end.ndim == 0:
        return False
    value = end._peek()
    return value is None or (not door.is_small(value.nbytes) and value.dtype.kind in "biufc")


def _between_arrays(
    start: Any, stop: Any, num: int, endpoint: bool, retstep: bool, dtype: Any, axis: int
) -> Any:
    """Evenly spaced arrays between two that lie with the workers."""
    div = num - 1 if endpoint else num
    kind = common_dtype(start, stop, 1.0)
    low, high = ((as_handle(v) * 1.0).astype(kind) for v in (start, stop))
    way = high - low
    step: Any = way / div if div > 0 else way * np.nan
    place = creation.arange(num).astype(way.dtype).reshape((-1,) + (1,) * way.ndim)
    if div > 0 and not reductions.any(step == 0):
        found = place * step + low
    else:
        found = place / max(div, 1) * way + low
    if endpoint and num > 1:
        last = manipulation.broadcast_to(high, way.shape)[None]
        found = lying_as_copy(joining.concatenate([found[:-1], last]), found)
    target = np.dtype(kind if dtype is None else dtype)
    found = ufuncs.floor(found) if target.kind in "iu" else found
    found = manipulation.moveaxis(found, 0, axis).astype(target)
    return (found, step) if retstep else found


@numpy_function(np.logspace, front=shortened(np.logspace, 3, AS_COUNTED, _ASKED | {"base"}))
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> ndarray:
    """Numbers spaced evenly on a logarithmic scale."""
    base = forced(base)
    if np.ndim(base):  # has its axes beside those of the ends, which move by `axis`
        start, stop, base = (forced(v) for v in (start, stop, base))
        ndim = np.broadcast(start, stop, base).ndim
        start, stop, base = (np.array(v, copy=None, ndmin=ndim) for v in (start, stop, base))
        base = np.expand_dims(base, axis)
    y = ufuncs.power(base, linspace(start, stop, num, endpoint, axis=axis))
    return y if dtype is None else y.astype(dtype)  # type: ignore[no-any-return]


@numpy_function(np.geomspace, front=shortened(np.geomspace, 3, AS_COUNTED, _ASKED))
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> ndarray:
    """Numbers in a geometric progression."""
    if any(map(_is_large, (start, stop))):
        return _between_large(start, stop, operator.index(num), endpoint, dtype, axis)
    plain = [forced(v) for v in (start, stop)]
    num = operator.index(num)
    scalars = all(not np.ndim(p) and not is_subclass(p) for p in plain)
    if scalars and num > 1 and not door.is_small(16 * num):
        kind = np.result_type(*plain, float(num))
        if kind.kind == "f" and plain[0] * plain[1] > 0:
            return _geometric(plain[0], plain[1], num, endpoint, kind).astype(
                kind if dtype is None else dtype
            )
    return wrap(np.geomspace(plain[0], plain[1], num, endpoint, dtype, axis))


def _between_large(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> ndarray:
    """Geometric progressions between two arrays, by NumPy's own steps."""
    low, high = as_handle(start), as_handle(stop)
    if reductions.any(low == 0) or reductions.any(high == 0):
        raise ValueError("Geometric sequence cannot include zero")
    kind = np.result_type(low.dtype, high.dtype, np.zeros((), dtype), float(num))
    low, high = low.astype(kind), high.astype(kind)
    sign = ufuncs.sign(low)
    low, high = low / sign, high / sign
    found = logspace(ufuncs.log10(low), ufuncs.log10(high), num, endpoint, dtype=kind)
    first = [manipulation.broadcast_to(low, found.shape[1:])[None]] if num > 0 else []
    last = [manipulation.broadcast_to(high, found.shape[1:])[None]] if num > 1 and endpoint else []
    middle = found[len(first) : num - len(last)]
    found = joining.concatenate([*first, middle, *last]) * sign
    return manipulation.moveaxis(found, 0, axis).astype(kind if dtype is None else dtype)


def _geometric(start: Any, stop: Any, num: int, endpoint: bool, kind: np.dtype[Any]) -> ndarray:
    """A long progression of one sign: a logarithmic one between its exact ends."""
    sign = kind.type(np.sign(start))
    low, high = kind.type(start) * sign, kind.type(stop) * sign
    found = _ending(logspace(np.log10(low), np.log10(high), num, endpoint)._node(), 0, low)
    found = _ending(found, num - 1, high) if endpoint else found
    return wrap_node(found) * sign  # type: ignore[no-any-return]


def _ending(line: Node, place: int, end: Any) -> Node:
    """A line with its exact end at a place: element by element, so that parts are made alone."""
    is_end = build.map_("equal", build.iota(line.shape[0]), build.constant(np.asarray(place)))
    return build.map_("where", is_end, build.constant(end), line, dtype=line.dtype)


__all__ = [
    "geomspace",
    "linspace",
    "logspace",
]
