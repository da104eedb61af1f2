"""The rules that build nodes: shapes, dtypes and formats, with NumPy's errors at the call.

One function an operator, source and view. Dtypes of ufuncs come from `ufunc.resolve_dtypes`; a view of a
view of the same kind is one view. Nothing here computes a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.errors import ShapeError
from spartan_ng.graph.formats import contract_format, map_format
from spartan_ng.graph.node import Node, Op, within_bytes
from spartan_ng.ops.elementwise import ELEMENTWISE, resolved_dtypes
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.line_states import Between
from spartan_ng.ops.scans import SCANS

INTP = np.dtype(np.intp)
_files: WeakValueDictionary[tuple[int, tuple[int, ...]], Node] = WeakValueDictionary()
"""By the serial of the file's own leaf: what is asked for twice is one leaf, which a pass reads once."""


# --- sources ---------------------------------------------------------------------------------------


def data(ref: ArrayRef) -> Node:
    """A leaf that has a value."""
    return Node(Op.DATA, None, (), (), ref.shape, ref.dtype, ref.format, ref)


def constant(value: Any, dtype: np.dtype[Any] | None = None) -> Node:
    """A leaf for a NumPy value (or scalar) that the driver holds; the value must not change after."""
    array = np.asarray(value, dtype)
    return data(ArrayRef(array.shape, array.dtype, value=array))


def iota(n: int, start: int = 0, step: int = 1) -> Node:
    """0, 1, ..., n - 1 as int64, or as many numbers from another one on, in other steps."""
    params = () if (start, step) == (0, 1) else (start, step)
    return Node(Op.INDEX, "iota", (), params, within_bytes((int(n),), INTP), INTP)


def random(
    distribution: str,
    key: tuple[Any, ...],
    parameters: tuple[Any, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Node:
    """Random numbers; see `ops.random` for the keys."""
    return Node(Op.RANDOM, distribution, (), (key, *parameters), within_bytes(shape, dtype), dtype)


# --- operators -------------------------------------------------------------------------------------


def map_(
    fn: str | UserFunction,
    *inputs: Node,
    dtype: np.dtype[Any] | None = None,
    params: tuple[Any, ...] = (),
) -> Node:
    """An elementwise function (or a user's tile function) of operands broadcast together.

    `dtype` is the result's; for a row of the table whose operands already have the dtypes of one of the
    ufunc's loops it may be left out.
    """
    shape = broadcast_shapes(str(fn), *[i.shape for i in inputs])
    if dtype is None:
        dtype = elementwise_dtypes(str(fn), *[i.dtype for i in inputs])[-1]
    return Node(Op.MAP, fn, inputs, params, shape, dtype, map_format(fn, inputs, shape, dtype))


def cast(a: Node, dtype: np.dtype[Any]) -> Node:
    """The same elements as another dtype."""
    if a.dtype == dtype:
        return a
    return Node(Op.MAP, "cast", (a,), (), a.shape, dtype, map_format("cast", (a,), a.shape, dtype))


def compress(a: Node, mask: Node, count: int) -> Node:
    """The `count` elements (or sub-arrays) of `a` where `mask`, over its leading axes, is true."""
    if mask.shape != a.shape[: mask.ndim]:
        raise ShapeError(
            f"filter: a mask of shape {mask.shape} does not cover the leading axes of shape {a.shape}"
        )
    return Node(Op.FILTER, "compress", (a, mask), (count,), (count, *a.shape[mask.ndim :]), a.dtype)


def nonzero(mask: Node, count: int) -> Node:
    """The flat places, in C order, of the `count` elements of `mask` that are true."""
    return Node(Op.FILTER, "nonzero", (mask,), (count,), (count,), INTP)


def fold(
    fn: str | UserFunction,
    a: Node,
    axes: Sequence[int],
    *,
    dtype: np.dtype[Any] | None = None,
    where: Node | None = None,
) -> Node:
    """Fold `a` along `axes` (dropped); `where`, broadcast to a's shape, says which elements count."""
    axes = tuple(sorted(axes))
    if dtype is None:
        dtype = a.dtype if isinstance(fn, UserFunction) else FOLDS[fn].dtype(a.dtype)
    shape = tuple([n for i, n in enumerate(a.shape) if i not in axes])
    if where is not None and fn == "add" and where.format == "csr" and where.shape == a.shape:
        a = map_("where", where, a, constant(0, a.dtype), dtype=a.dtype)  # at non-zeros alone
        return Node(Op.FOLD, fn, (a,), (axes,), shape, dtype)
    inputs = (a,) if where is None else (a, broadcast(where, a.shape))
    return Node(Op.FOLD, fn, inputs, (axes,), shape, dtype)


def scan(fn: str | UserFunction, a: Node, axis: int, dtype: np.dtype[Any] | None = None) -> Node:
    """The cumulative aggregate of `a` along `axis`."""
    if dtype is None:
        dtype = SCANS[fn].dtype(a.dtype) if isinstance(fn, str) and fn in SCANS else a.dtype
    return Node(Op.SCAN, fn, (a,), (axis,), a.shape, dtype)


def recurrence(fn: str | UserFunction, y: Node, w: Node, axis: int) -> Node:
    """z_i = plus(y_i, times(w_i, z_(i-1))) along `axis`, of two arrays of one shape and dtype."""
    return Node(Op.SCAN, fn, (y, w), (axis,), y.shape, y.dtype)


def contract(
    a: Node,
    b: Node,
    labels_a: tuple[int, ...],
    labels_b: tuple[int, ...],
    labels_out: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Node:
    """Einstein sum of two operands; labels missing in the output are summed over, all others kept.

    Each label stands at most once in each operand; a label of the output stands in an operand; a label
    that is summed stands in both. The product of two sparse matrices is sparse.
    """
    size: dict[int, int] = {}
    for labels, node in ((labels_a, a), (labels_b, b)):
        for label, n in zip(labels, node.shape, strict=True):
            if size.setdefault(label, n) != n:
                raise ShapeError(
                    f"contract: shapes {a.shape} and {b.shape} differ along a joined axis: "
                    f"{size[label]} != {n}"
                )
    shape = tuple(map(size.__getitem__, labels_out))
    params = (labels_a, labels_b, labels_out)
    format = contract_format(a, b, params, dtype)
    return Node(Op.JOIN_UPDATE, "contract", (a, b), params, shape, dtype, format)


def matmul(a: Node, b: Node, dtype: np.dtype[Any]) -> Node:
    """NumPy's `matmul` of operands with one or more axes, batch axes broadcast."""
    rows, columns = len(a.shape), len(b.shape)
    if not (rows and columns):
        raise ShapeError(
            f"matmul: an operand has no axes (shapes {a.shape} and {b.shape}); use multiply for scalars"
        )
    inner = b.shape[-2] if columns > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ShapeError(
            f"matmul: shapes {a.shape} and {b.shape} do not fit: {a.shape[-1]} columns meet {inner} rows"
        )
    if rows == columns == 2:
        return contract(a, b, (0, 2), (2, 1), (0, 1), dtype)
    batch = broadcast_shapes("matmul", a.shape[:-2], b.shape[:-2]) if max(rows, columns) > 2 else ()
    a = broadcast(a, batch + a.shape[-2:]) if rows > 2 else a
    b = broadcast(b, batch + b.shape[-2:]) if columns > 2 else b
    letters = tuple(range(3, 3 + len(batch)))
    la = (letters if rows > 2 else ()) + ((0, 2) if rows > 1 else (2,))
    lb = (letters if columns > 2 else ()) + ((2, 1) if columns > 1 else (2,))
    lo = letters + ((0,) if rows > 1 else ()) + ((1,) if columns > 1 else ())
    return contract(a, b, la, lb, lo, dtype)


def concatenate(nodes: Sequence[Node], axis: int) -> Node:
    """Arrays of one dtype, one after the other along `axis`."""
    first = nodes[0]
    for n in nodes[1:]:
        if n.shape[:axis] + n.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :]:
            place = next(d for d in range(len(n.shape)) if d != axis and n.shape[d] != first.shape[d])
            raise ShapeError(
                "all the input array dimensions except for the concatenation axis must match exactly, but "
                f"along dimension {place}, the array at index 0 has size {first.shape[place]} and the array "
                f"at index {nodes.index(n)} has size {n.shape[place]}: shapes {first.shape} and {n.shape}"
            )
    total = sum(n.shape[axis] for n in nodes)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return Node(Op.JOIN_UPDATE, "concatenate", tuple(nodes), (axis,), shape, first.dtype)


def assign(base: Node, value: Node, region: tuple[tuple[int, int], ...]) -> Node:
    """`base` with `value` written at `(start, step)` of each axis; value's shape is the region's."""
    if base.dtype != value.dtype:
        value = cast(value, base.dtype)
    return Node(Op.JOIN_UPDATE, "assign", (base, value), region, base.shape, base.dtype)


def tile_as(a: Node, kind: str | Tiling) -> Node:
    """The same array, tiled by hand: as a kind of tilings, or one of them."""
    return Node(Op.JOIN_UPDATE, "tile_as", (a,), (kind,), a.shape, a.dtype, a.format)


def take(a: Node, indices: Node, axis: int) -> Node:
    """Elements (or sub-arrays) of `a` at int64 `indices` in [0, n) along `axis`."""
    if a.op is Op.INDEX:  # a table of which each block would make all
        start, step = a.params or (0, 1)
        found = indices if step == 1 else map_("multiply", indices, constant(step), dtype=a.dtype)
        return map_("add", found, constant(start), dtype=a.dtype) if start else found
    shape = a.shape[:axis] + indices.shape + a.shape[axis + 1 :]
    return Node(Op.JOIN_UPDATE, "take", (a, indices), (axis,), shape, a.dtype)


def search(a: Node, values: Node, side: str) -> Node:
    """Where each of `values` belongs in the sorted 1-d `a`, before ("left") or behind what is equal to it."""
    return Node(Op.JOIN_UPDATE, "search", (a, values), (side,), values.shape, INTP)


def scatter(base: Node, indices: Node, values: Node, accumulate: str = "") -> Node:
    """1-d `base` with 1-d `values` put (or accumulated by a ufunc) at 1-d int64 `indices`."""
    return Node(Op.JOIN_UPDATE, "scatter", (base, indices, values), (accumulate,), base.shape, base.dtype)


def along_axis(
    function: str,
    inputs: Sequence[Node],
    axis: int,
    *,
    dtype: np.dtype[Any],
    keywords: tuple[tuple[str, Any], ...] = (),
    length: int | None = None,
) -> Node:
    """A row of `AXIS_FUNCTIONS` on whole lines along `axis`, which makes others of a `length`, or as long."""
    params, shape = (function, axis, keywords), inputs[0].shape
    if length is not None:
        shape = (*shape[:axis], length, *shape[axis + 1 :])
    return Node(Op.JOIN_UPDATE, "along_axis", tuple(inputs), params, shape, dtype)


def matrices(
    function: str,
    inputs: Sequence[Node],
    stacked: Sequence[bool],
    batch: tuple[int, ...],
    length: int,
    *,
    dtype: np.dtype[Any],
    keywords: tuple[tuple[str, Any], ...] = (),
) -> Node:
    """A row of `MATRIX_FUNCTIONS` for each matrix of a stack: a line of `length` elements each.

    Inputs that are `stacked` begin with the axes `batch`, the others serve every matrix.
    """
    params = (function, len(batch), tuple(stacked), keywords)
    return Node(Op.JOIN_UPDATE, "matrices", tuple(inputs), params, (*batch, length), dtype)


def ends(function: str, x: Node, count: int, last: bool, dtype: np.dtype[Any]) -> Node:
    """The first (or `last`) `count` places of the "sort" or "argsort" of the 1-d `x`, which has as many."""
    made = Node(Op.JOIN_UPDATE, "ends", (_native(x),), (function, count, last), (count,), _in_order(dtype))
    return cast(made, dtype)


def places(x: Node, spans: tuple[tuple[int, int], ...]) -> Node:
    """The elements of the sorted 1-d `x` whose ranks lie in half-open spans, one span after the other."""
    count = sum(hi - lo for lo, hi in spans)
    return Node(Op.JOIN_UPDATE, "places", (x,), ("sort", spans), (count,), x.dtype)


def distinct(x: Node, count: int) -> Node:
    """The distinct elements of the 1-d `x`, the last one repeated up to `count`.

    Where no two of the result are equal, there may be more.
    """
    made = Node(Op.JOIN_UPDATE, "distinct", (_native(x),), (count,), (count,), _in_order(x.dtype))
    return cast(made, x.dtype)


def _native(x: Node) -> Node:
    """The elements in the machine's byte order, in which states of parts are joined."""
    return cast(x, _in_order(x.dtype))


def _in_order(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("=")


def between(x: Node, bounds: Sequence[tuple[Any, bool]], wanted: Sequence[bool], most: int) -> Node:
    """The bytes of what `ops.line_states.Between` finds among all elements of `x`."""
    line = Between(x.dtype.str, tuple((np.asarray(v).item(), b) for v, b in bounds), tuple(wanted), most)
    params = (line.dtype, line.bounds, line.wanted, line.most)
    return Node(Op.JOIN_UPDATE, "between", (x,), params, (line.nbytes,), np.dtype(np.uint8))


def bincount(x: Node, length: int, weights: Node | None = None, dtype: np.dtype[Any] | None = None) -> Node:
    """How often (or with which summed weight) each of 0 .. length - 1 stands in the 1-d int64 `x`.

    Weights may have further axes: then a whole row is summed for each index. Sums have the float `dtype`.
    """
    if weights is None:
        return Node(Op.JOIN_UPDATE, "bincount", (x,), (length,), (length,), INTP)
    shape = (length, *weights.shape[1:])
    return Node(Op.JOIN_UPDATE, "bincount", (x, weights), (length,), shape, dtype or np.dtype(np.float64))


def join_update(
    fn: UserFunction,
    inputs: Sequence[Node],
    axes: Sequence[int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    accumulate: str | UserFunction = "add",
) -> Node:
    """The paper's `join_update`: tiles joined along `axes` (-1: whole), updates accumulated.

    `fn(box_0, tile_0, box_1, tile_1, ...)` gives `(location, data)` pairs, see the public operator.
    """
    sizes = {n.shape[axis] for n, axis in zip(inputs, axes, strict=True) if axis >= 0}
    if len(sizes) > 1:
        raise ShapeError(f"join_update: joined axes have different lengths {sorted(sizes)}")
    params = (tuple(axes), accumulate)
    return Node(Op.JOIN_UPDATE, fn, tuple(inputs), params, shape, dtype)


# --- views -----------------------------------------------------------------------------------------


def slice_(a: Node, starts: Sequence[int], steps: Sequence[int], shape: tuple[int, ...]) -> Node:
    """`a[starts[i] + steps[i] * j]` for j below shape[i], on every axis."""
    places = zip(starts, steps, shape, strict=True)
    params = [(int(s), int(t)) if n > 1 else (int(s), 1) for s, t, n in places]
    if 0 not in shape and shape == a.shape and params.count((0, 1)) == len(params):
        return a
    if a.op is Op.SLICE and 0 not in shape:
        params = [(s0 + t0 * s, t0 * t) for (s0, t0), (s, t) in zip(a.params, params, strict=True)]
        a = a.inputs[0]
    return Node(Op.SLICE, None, (a,), tuple(params), tuple(shape), a.dtype, a.format)


def transpose(a: Node, axes: Sequence[int]) -> Node:
    """The axes of `a` in another order."""
    axes = tuple(axes)
    if axes == tuple(range(len(a.shape))):
        return a
    if a.op is Op.TRANSPOSE:
        axes = tuple(map(a.params[0].__getitem__, axes))
        a = a.inputs[0]
        if axes == tuple(range(len(a.shape))):
            return a
    shape = tuple(map(a.shape.__getitem__, axes))
    return Node(Op.TRANSPOSE, None, (a,), (axes,), shape, a.dtype, a.format)


def reshape(a: Node, shape: tuple[int, ...]) -> Node:
    """The same elements in C order under another shape; of a file a leaf of its own, where that is one."""
    node = reshape_step(a, shape)
    ref = node.inputs[0].data if node.op is Op.RESHAPE else None
    return node if ref is None or not ref.is_mapped else _reshaped_file(ref, node.shape) or node


def reshape_step(a: Node, shape: tuple[int, ...]) -> Node:
    """The same as a step of the graph: rewriting makes no leaves, as plans read those of the program."""
    shape = tuple(map(int, shape))
    if shape == a.shape:
        return a
    if prod(shape) != prod(a.shape):
        raise ShapeError(f"reshape: {a.size} elements of shape {a.shape} do not fill shape {shape}")
    if a.op is Op.RESHAPE:
        return reshape_step(a.inputs[0], shape)
    return Node(Op.RESHAPE, None, (a,), (), shape, a.dtype)


def _reshaped_file(ref: ArrayRef, shape: tuple[int, ...]) -> Node | None:
    """A leaf with the elements of a file's under another shape; None where they are to be put together."""
    found = _files.get((ref.serial, shape))
    if found is None and (of := ref.reshaped(shape)) is not None:
        found = _files[ref.serial, shape] = Node(Op.DATA, None, (), (), shape, ref.dtype, data=of)
    return found


def broadcast(a: Node, shape: tuple[int, ...]) -> Node:
    """NumPy's broadcast of `a` to `shape`."""
    if shape == a.shape:
        return a
    if broadcast_shapes("broadcast_to", a.shape, within_bytes(shape, a.dtype)) != shape:
        raise ShapeError(f"broadcast_to: shape {a.shape} does not broadcast to {shape}")
    return Node(Op.BROADCAST, None, (a,), (), tuple(shape), a.dtype)


# --- rules -----------------------------------------------------------------------------------------


def broadcast_shapes(operation: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """NumPy's broadcasting; the error names the operation and every shape."""
    widest = max(shapes, key=len)
    if shapes.count(widest) + shapes.count(()) >= len(shapes):
        return widest
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(map(str, shapes))
        raise ShapeError(f"{operation}: shapes {listed} cannot be broadcast together") from None


def elementwise_dtypes(
    fn: str, *operands: Any, casting: str = "same_kind", signature: tuple[Any, ...] | None = None
) -> tuple[np.dtype[Any], ...]:
    """The dtypes of operands and results of an elementwise row.

    An operand is a dtype, or `int`, `float`, `complex` for a Python scalar (weak, NEP 50). `signature` has
    the dtypes that are asked for, None for others.
    """
    row = ELEMENTWISE[fn]
    if row.is_ufunc:
        asked = {} if signature is None else {"signature": signature}
        return resolved_dtypes(row.function, operands, (None,) * row.nout, casting=casting, **asked)  # type: ignore[arg-type]
    if fn == "where":
        return (np.dtype(bool), *[np.result_type(*map(_weak, operands[1:]))] * 3)
    (operand,) = operands
    real = {"c": {8: "f4", 16: "f8", 32: "f16"}}
    out = real.get(operand.kind, {}).get(operand.itemsize, operand)
    return (operand, np.dtype(out))


def _weak(operand: Any) -> Any:
    """A stand-in for a Python scalar that `result_type` treats as weak."""
    return operand(0) if isinstance(operand, type) and operand in (int, float, complex) else operand


def axes_tuple(axis: Any, ndim: int) -> tuple[int, ...]:
    """NumPy's `axis` argument (None, int or tuple) as a sorted tuple; raises `AxisError`."""
    if type(axis) is int and -ndim <= axis < ndim:  # sooner than by NumPy's function
        return (axis % ndim,)
    return tuple(range(ndim)) if axis is None else tuple(sorted(normalize_axis_tuple(axis, ndim)))


def axis_index(axis: Any, ndim: int) -> int:
    """NumPy's single `axis` as a non-negative int; raises `AxisError`."""
    return int(normalize_axis_index(axis, ndim))
