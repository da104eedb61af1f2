"""Where a sparse array has its non-zeros, and what is computed there alone, with NumPy calls on vectors.

Every value is a vector with one element for each non-zero, and a matrix product is a dot product for each of
them: compiled (`_dots.c`), or NumPy's of lines that are gathered. No dense array is made, unless so many
elements are non-zero that the whole product costs less.

"On Optimizing Operator Fusion Plans", section 2.2: the Outer template.
"""

from __future__ import annotations

import os
from math import prod
from typing import Any, Protocol

import numpy as np

from spartan_ng.config import PURE_VARIABLE
from spartan_ng.costs.choices import GATHERED_PAIR_FLOPS, GATHERED_SHARE, PAIR_FLOPS, WHOLE_SHARE
from spartan_ng.kernels.formats import dense, is_sparse_block
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction
from spartan_ng.system.built import built

_GATHER_BYTES = 1 << 19
"""What the gathered rows of a chunk's dot products may take: a share of the cache."""
_DENSE_BYTES = 1 << 22
"""What a piece of a whole product may take."""

_is_wanted = os.environ.get(PURE_VARIABLE, "0") == "0"
_module: Any = built("spartan_ng.kernels._dots", __file__, "_dots.c") if _is_wanted else None
DOT_FLOPS = GATHERED_PAIR_FLOPS if _module is None else PAIR_FLOPS
"""Operations that a pair of elements takes the time of in a dot product here."""
MOST_DOTS = GATHERED_SHARE if _module is None else WHOLE_SHARE
"""The share of non-zeros up to which those are made."""


class Step(Protocol):
    """A row of a stage, or a node of a graph."""

    @property
    def fn(self) -> str | UserFunction | None:
        """The function's name."""
        ...

    @property
    def params(self) -> tuple[Any, ...]:
        """The function's own parameters."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The result's."""
        ...


class Pattern:
    """Where a sparse block has its non-zeros, in the order in which they are stored."""

    def __init__(self, block: Any) -> None:
        self.block = block if block.format in ("csr", "csc") else block.tocsr()
        self.data = self.block.data
        self._places: tuple[Any, Any] | None = None

    @property
    def places(self) -> tuple[Any, Any]:
        """The row and the column of each non-zero."""
        if self._places is None:
            block = self.block
            major = np.repeat(
                np.arange(len(block.indptr) - 1, dtype=block.indices.dtype), np.diff(block.indptr)
            )
            self._places = (major, block.indices) if block.format == "csr" else (block.indices, major)
        return self._places

    def matrix(self, data: Any) -> Any:
        """A sparse block with these non-zeros."""
        block = self.block
        data = np.broadcast_to(data, self.data.shape)
        made = type(block)((data, block.indices, block.indptr), shape=block.shape)
        if getattr(block, "_has_canonical_format", False):  # or SciPy looks at each place again
            made.has_canonical_format = True
        return made

    def at(self, value: Any) -> Any:
        """The elements of a block's value (dense or sparse, stretched to the block) at the non-zeros."""
        if value is self.block:
            return self.data
        if is_sparse_block(value) and value.shape == self.block.shape:
            return dense(value.tocsr()[self.places]).reshape(-1)
        value = dense(value)
        if value.size == 1:
            return value.reshape(())
        return np.broadcast_to(value, self.block.shape)[self.places]


def mapped(step: Step, args: list[Any]) -> Any:
    """An elementwise function of vectors, and of scalars among them."""
    if step.fn == "cast":
        return args[0].astype(step.dtype, copy=False)
    known = ELEMENTWISE[str(step.fn)]
    value = known.function(*args)
    return value[step.params[0]] if known.nout > 1 else value


def dots(product: Step, a: Any, b: Any, pattern: Pattern) -> Any:
    """The elements of a matrix product at the non-zeros."""
    la, lb, lo = product.params
    left, right = (a, b) if lo[0] in la else (b, a)
    labels = (la, lb) if lo[0] in la else (lb, la)
    left, right = (_lines(x, names, lo) for x, names in zip((left, right), labels, strict=True))
    rows, columns = pattern.places
    out = np.empty(len(rows), product.dtype)
    if is_whole(len(rows), pattern.block.shape):
        return _from_products(left, right, pattern, out)
    if _multiplied(left, right, rows, columns, out):
        return out
    step = max(64, _GATHER_BYTES // max(2 * left.shape[1] * product.dtype.itemsize, 1))
    for k in range(0, len(rows), step):
        i, j = rows[k : k + step], columns[k : k + step]
        out[k : k + step] = np.einsum("ij,ij->i", left[i], right[j])
    return out


def _multiplied(left: Any, right: Any, rows: Any, columns: Any, out: Any) -> bool:
    """Have the dot products made where the lines lie, if that is compiled for such lines."""
    if _module is None or out.dtype.char not in "fd" or not left.dtype == right.dtype == out.dtype:
        return False
    gathered_bytes = left.shape[1] * out.nbytes
    if not gathered_bytes:
        return False
    left, right = (_side_by_side(x, gathered_bytes) for x in (left, right))
    if left is None or right is None:
        return False
    index = np.result_type(rows, columns, np.int32)
    places = (np.require(x, index, ["C", "A"]) for x in (rows, columns))  # messages have them at any address
    _module.dots(left, right, *places, out)
    return True


def _side_by_side(x: Any, gathered_bytes: int) -> Any:
    """Lines whose elements lie side by side; None where gathering some would take less than that."""
    if x.flags.aligned and (x.flags.c_contiguous or x.strides[1] == x.itemsize):
        return x
    return np.require(x, requirements=["C", "A"]) if x.nbytes <= gathered_bytes else None


def is_whole(count: int, shape: tuple[int, ...]) -> bool:
    """Whether dot products for so many non-zeros cost more than the whole product of the shape."""
    return count > MOST_DOTS * prod(shape)


def _lines(x: Any, labels: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """An operand with one line for each index of the result's axis that it has."""
    if x.ndim == 1:
        return x[:, None]
    return x if labels[0] in out else x.T


def _from_products(left: Any, right: Any, pattern: Pattern, out: Any) -> Any:
    """The same from whole products of pieces of the stored axis."""
    block = pattern.block
    turned = block.format == "csc"
    major, other = (right, left) if turned else (left, right)
    step = max(1, _DENSE_BYTES // max(len(other) * out.itemsize, 1))
    places = pattern.places[1 if turned else 0], block.indices
    for k in range(0, len(major), step):
        here = slice(block.indptr[k], block.indptr[min(k + step, len(major))])
        product = major[k : k + step] @ other.T
        out[here] = product[places[0][here] - k, places[1][here]]
    return out
