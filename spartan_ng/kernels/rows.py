"""One function for each kind of row: how NumPy computes it on a block.

A function takes the registers, the block's box, and a buffer to write into or None; rows that `fills` names
write there. What a sparse operand is computed at is its non-zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spartan_ng.arrays import WHOLE, Box, box_shape, sparse
from spartan_ng.compressed import is_compressed
from spartan_ng.errors import UserFunctionError
from spartan_ng.graph.node import indices
from spartan_ng.kernels.choice import choose, has_bits
from spartan_ng.kernels.contract import contract, makes_matrix
from spartan_ng.kernels.exact import exactly
from spartan_ng.kernels.formats import dense, is_sparse_block
from spartan_ng.kernels.line_sorts import line_function
from spartan_ng.kernels.listing import row_name
from spartan_ng.kernels.reducers import fold_axes
from spartan_ng.kernels.searches import searched
from spartan_ng.kernels.sparse_folds import sparse_fold
from spartan_ng.kernels.user import call_user, guarded
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS, ArgFold, fold_whole
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.matrices import evaluate_matrices
from spartan_ng.ops.random import draw
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused, ScanTile
from spartan_ng.texts import renamed

Evaluate = Callable[[list[Any], Box, Any], Any]
"""`(registers, block, out) -> value`; `out` is a buffer to fill, or None."""


def labelled_box(labels: Sequence[int], shape: Sequence[int], block: Box) -> Box:
    """The box of a value with `labels` and global `shape` that belongs to a block of the domain."""
    return tuple([block[d] if d != WHOLE else (0, n) for d, n in zip(labels, shape, strict=True)])


def labelled_shape(labels: Sequence[int], shape: Sequence[int], block: Box) -> tuple[int, ...]:
    """The shape of that box."""
    return box_shape(labelled_box(labels, shape, block))


def function_of(row: Row, stage: Fused | ScanTile, of_arrays: bool = False) -> Evaluate:
    """What computes a row of a stage, under its own name; `of_arrays`, a ufunc of none but arrays."""
    evaluate = _ufunc(row) if of_arrays else KINDS[row.kind](row)
    if stage.exact:
        evaluate = exactly(row, evaluate)
    return renamed(evaluate, f"{row_name(row)} (stage {stage.name})")


def is_ufunc(row: Row) -> bool:
    """Whether a row is a ufunc's call, with a buffer to fill."""
    return row.kind == "map" and fills(row) and row.fn != "where"


_FRESH = frozenset({"isinf", "isnan", "negative", "signbit"})
"""Functions that NumPy (2.4) gets wrong with an `out` whose elements lie a stride apart: they make their own
value."""


def fills(row: Row) -> bool:
    """Whether the row's function writes into a buffer it is given; a product does of dense operands."""
    if row.kind == "program":
        return True
    if row.kind == "contract":
        return row.format == "dense" and row.dtype.kind in "fc" and makes_matrix(*row.params)
    if row.kind != "map" or not isinstance(row.fn, str) or row.format != "dense":
        return False
    if row.fn == "where":
        return has_bits(row.dtype)
    known = ELEMENTWISE[row.fn]
    return known.is_ufunc and known.nout == 1 and row.dtype.kind != "O" and row.fn not in _FRESH


def _map(row: Row) -> Evaluate:
    if isinstance(row.fn, UserFunction):
        return _user_map(row)
    known = ELEMENTWISE[str(row.fn)]
    function, args, dtype = known.function, row.args, row.dtype
    if row.fn == "cast":
        (source,) = args
        as_is = row.format != "dense"  # a dense value of a sparse block has a dtype that SciPy lacks
        return lambda regs, block, out: (regs[source] if as_is else dense(regs[source])).astype(
            dtype, copy=False
        )
    if known.nout > 1:
        (which,) = row.params
        return lambda regs, block, out: function(*[dense(regs[a]) for a in args])[which]
    if row.format != "dense":
        return lambda regs, block, out: _sparse_map(known.name, function, [regs[a] for a in args])
    if row.fn == "where" and fills(row):
        condition, x, y = args
        return lambda regs, block, out: choose(dense(regs[condition]), dense(regs[x]), dense(regs[y]), out)
    if not known.is_ufunc:
        return lambda regs, block, out: function(*[dense(regs[a]) for a in args])
    return lambda regs, block, out: function(*[dense(regs[a]) for a in args], out=out)


def _ufunc(row: Row) -> Evaluate:
    """A ufunc of arrays, of which nothing has to be asked."""
    function, args = ELEMENTWISE[str(row.fn)].function, row.args
    if len(args) == 2:
        x, y = args
        return lambda regs, block, out: function(regs[x], regs[y], out=out)
    return lambda regs, block, out: function(*[regs[a] for a in args], out=out)


def _sparse_map(name: str, function: Any, args: list[Any]) -> Any:
    """An elementwise function that keeps zeros on at least one sparse operand, or any function of one
    compressed operand and scalars."""
    packed = [k for k, a in enumerate(args) if is_compressed(a)]
    if len(packed) == 1 and all(k in packed or np.size(a) == 1 for k, a in enumerate(args)):
        (at,) = packed
        scalars = [a if k == at else np.reshape(a, ()) for k, a in enumerate(args)]
        return args[at].map(lambda d: function(*[d if k == at else a for k, a in enumerate(scalars)]))
    if packed or not any(is_sparse_block(a) for a in args):
        return function(*[dense(a) for a in args])
    if len(args) == 1:
        out = args[0].tocsr().copy()
        out.data = function(out.data)
        return out
    if len(args) == 2:
        a, b = args
        if name == "multiply":
            return (a.multiply(b) if is_sparse_block(a) else b.multiply(a)).tocsr()
        if name in ("add", "subtract") and is_sparse_block(a) and is_sparse_block(b):
            return a + b if name == "add" else a - b
        if is_sparse_block(a) and ELEMENTWISE[name].zero == "first":
            return _at_nonzeros(function, a.tocsr(), dense(b))
    return sparse.csr_array(function(*[dense(a) for a in args]))


def _at_nonzeros(function: Any, a: Any, b: Any) -> Any:
    """A function of a CSR block and a dense one, at the non-zeros of the first alone."""
    rows = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    data = function(a.data, np.broadcast_to(b, a.shape)[rows, a.indices])
    return sparse.csr_array((data, a.indices, a.indptr), shape=a.shape)


def _user_map(row: Row) -> Evaluate:
    user = row.fn
    assert isinstance(user, UserFunction), "a user's map has a user's function"
    extent = bool(row.params)

    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        # Of this call alone: threads share the function.
        options = {"extent": labelled_box(row.labels, row.shape, block)} if extent else {}
        value = call_user(user, "map", *[dense(regs[a]) for a in row.args], taken=np.asarray, **options)
        shape = labelled_shape(row.labels, row.shape, block)
        if value.shape != shape:
            raise UserFunctionError(
                f"map: {user} (at {user.origin}) made a tile of shape {value.shape} "
                f"where its inputs have shape {shape}"
            )
        try:
            return value.astype(row.dtype, copy=False)
        except Exception as error:
            raise UserFunctionError(
                f"map: {user} (at {user.origin}) made {value.dtype} elements, "
                f"which are no {row.dtype}: {error}"
            ) from error

    return evaluate


def _fold(row: Row) -> Evaluate:
    (axes,) = row.params
    if isinstance(row.fn, UserFunction):
        function = guarded(row.fn, "fold")
        return lambda regs, block, out: fold_axes(function, dense(regs[row.args[0]]), axes)
    known = FOLDS[str(row.fn)]

    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        x = regs[row.args[0]]
        where = regs[row.args[1]] if len(row.args) > 1 else None
        if is_sparse_block(x) and where is None:
            value = sparse_fold(known.name, x, axes, row.dtype)
            if value is not None:
                return value
        if isinstance(known, ArgFold):  # nobody asks for the extreme values themselves
            return np.asarray(known.find(dense(x), axis=axes[0]))
        return fold_whole(known, dense(x), axes, row.dtype, dense(where))

    return evaluate


def _contract(row: Row) -> Evaluate:
    a, b = row.args
    la, lb, lo = row.params

    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        value = contract(regs[a], regs[b], la, lb, lo, in_threads=True, out=out)
        if is_sparse_block(value):
            return value.toarray() if row.format == "dense" else value
        return value.astype(row.dtype, copy=False)

    return evaluate


def _along_axis(row: Row) -> Evaluate:
    name, axis, keywords = row.params
    function, options = line_function(name), dict(keywords)
    return lambda regs, block, out: function(*[dense(regs[a]) for a in row.args], axis=axis, **options)


def _matrices(row: Row) -> Evaluate:
    name, batch, stacked, keywords = row.params

    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        shape = labelled_shape(row.labels, row.shape, block)
        operands = [dense(regs[a]) for a in row.args]
        return evaluate_matrices(name, operands, stacked, shape[:batch], shape[-1], row.dtype, keywords)

    return evaluate


def _take(row: Row) -> Evaluate:
    (axis,) = row.params
    a, indices = row.args

    def take(regs: list[Any], block: Box, out: Any) -> Any:
        if sparse.is_sparse(regs[a]):
            return _sparse_take(regs[a], regs[indices], axis)
        table = dense(regs[a])
        if not table.flags.c_contiguous:  # `np.take` would copy all of it first
            return table[(slice(None),) * axis + (regs[indices],)]
        return np.take(table, regs[indices], axis=axis)

    return take


def _sparse_take(a: Any, indices: Any, axis: int) -> Any:
    """Rows or columns of a sparse block, dense; the indices' axes stand for the axis."""
    flat = indices.reshape(-1)
    found = dense(a.tocsr()[flat] if axis == 0 else a.tocsc()[:, flat])
    return found.reshape((*found.shape[:axis], *indices.shape, *found.shape[axis + 1 :]))


def _search(row: Row) -> Evaluate:
    (side,) = row.params
    a, values = row.args
    return lambda regs, block, out: searched(dense(regs[a]), dense(regs[values]), side)


def _transpose(row: Row) -> Evaluate:
    (axes,) = row.params
    (a,) = row.args
    # SciPy's arrays take no order of axes.
    return lambda regs, block, out: regs[a].transpose(axes) if regs[a].ndim != 2 else regs[a].T


def _broadcast(row: Row) -> Evaluate:
    (a,) = row.args
    return lambda regs, block, out: np.broadcast_to(
        dense(regs[a]), labelled_shape(row.labels, row.shape, block)
    )


def _reshape(row: Row) -> Evaluate:
    (a,) = row.args
    return lambda regs, block, out: np.reshape(dense(regs[a]), labelled_shape(row.labels, row.shape, block))


def _iota(row: Row) -> Evaluate:
    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        ((lo, hi),) = labelled_box(row.labels, row.shape, block)
        return indices(row.params, lo, hi)

    return evaluate


def _random(row: Row) -> Evaluate:
    key, *parameters = row.params

    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        box = labelled_box(row.labels, row.shape, block)
        return draw(str(row.fn), key, tuple(parameters), row.shape, row.dtype, box)

    return evaluate


def _scan(row: Row) -> Evaluate:
    def evaluate(regs: list[Any], block: Box, out: Any) -> Any:
        raise AssertionError("a scan's blocks run in order, each behind the state of those before it")

    return evaluate


def _program(row: Row) -> Evaluate:
    from spartan_ng.kernels.virtual.machine import program

    return program(row)


def _inside(row: Row) -> Evaluate:
    return lambda regs, block, out: None


KINDS: dict[str, Callable[[Row], Evaluate]] = {
    "map": _map,
    "fold": _fold,
    "contract": _contract,
    "along_axis": _along_axis,
    "matrices": _matrices,
    "take": _take,
    "search": _search,
    "transpose": _transpose,
    "broadcast": _broadcast,
    "reshape": _reshape,
    "iota": _iota,
    "random": _random,
    "scan": _scan,
    "program": _program,
    "inside": _inside,
}
