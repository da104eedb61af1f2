"""The expression graph: immutable nodes of five operators, three kinds of sources, four kinds of views.

Spartan (ATC '15), section 3.1-3.2. What each operator's `fn` and `params` hold:

- MAP: `fn` an elementwise row or a `UserFunction`; inputs broadcast as NumPy does; params the row's own.
- FILTER: "compress" of (a, mask), whose mask covers the leading axes, or "nonzero" of (mask,): the flat
  places of what is true; params (count,).
- FOLD: a fold row or a `UserFunction` of (a[, where]); params (axes,), sorted, dropped from the shape.
- SCAN: a scan row or a `UserFunction` of (a,); params (axis,).
- JOIN_UPDATE: a join row or a `UserFunction`; inputs and params as in `ops.joins`.
- DATA: no inputs; `data` is the array.
- INDEX: "iota"; element i of a 1-d int64 array is i, or, with params (start, step), start + i * step.
- RANDOM: a distribution row; params (key, *parameters) as in `ops.random`.
- SLICE: of (a,); params (start, step) for each axis. Steps are not 0; all axes are kept.
- TRANSPOSE: of (a,); params (axes,).
- RESHAPE, BROADCAST: of (a,); the shape says all.

`format` is "dense", "csr" or "compressed" (both two-dimensional, cut along rows). A compressed value is
dense where it is stored as the result of a stage.
Nodes are equal only to themselves, and never change, but one that was evaluated may `become` a leaf.
Walk them with a stack: chains get 100,000 long.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr

from spartan_ng.arrays import ArrayRef
from spartan_ng.errors import ShapeError
from spartan_ng.ops.functions import UserFunction


class Op(StrEnum):
    """The kinds of nodes."""

    MAP = "map"
    FILTER = "filter"
    FOLD = "fold"
    SCAN = "scan"
    JOIN_UPDATE = "join_update"
    DATA = "data"
    INDEX = "index"
    RANDOM = "random"
    SLICE = "slice"
    TRANSPOSE = "transpose"
    RESHAPE = "reshape"
    BROADCAST = "broadcast"


OPERATORS = frozenset({Op.MAP, Op.FILTER, Op.FOLD, Op.SCAN, Op.JOIN_UPDATE})
VIEWS = frozenset({Op.SLICE, Op.TRANSPOSE, Op.RESHAPE, Op.BROADCAST})


class Node(Struct, frozen=True, eq=False, weakref=True):
    """One step of the program; see the module's table for `fn`, `inputs` and `params`."""

    op: Op
    fn: str | UserFunction | None
    inputs: tuple[Node, ...]
    params: tuple[Any, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    format: str = "dense"
    data: ArrayRef | None = None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the value in its format, as far as it is known before it is computed."""
        return prod(self.shape) * self.dtype.itemsize if self.data is None else self.data.nbytes

    def __repr__(self) -> str:
        name = self.op.value if self.fn is None else f"{self.op.value}:{self.fn}"
        return f"<{name} {self.shape} {self.dtype}>"


def within_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """A new array's shape; an error, as NumPy's, where no address space has room for it."""
    if prod(shape) * dtype.itemsize > sys.maxsize:
        raise ShapeError(
            f"array is too big: {shape} elements of {dtype.itemsize} bytes; no memory has so many"
        )
    return shape


def sliced(node: Node) -> tuple[slice, ...]:
    """A SLICE as NumPy's key."""
    parts = [
        # Downwards to the first element, there is no number for where it ends: -1 is the last.
        slice(s, None if s + t * n < 0 else s + t * n, t)
        for (s, t), n in zip(node.params, node.shape, strict=True)
    ]
    return tuple(parts)


def indices(params: tuple[Any, ...], lo: int, hi: int) -> np.ndarray[Any, Any]:
    """The elements of an `Op.INDEX` from one place to another."""
    start, step = params or (0, 1)
    return np.arange(start + lo * step, start + hi * step, step, dtype=np.int64)


def has_lines_of(node: Node, operand: Node) -> bool:
    """Whether a step along an axis makes each of its lines of one of an operand's, which may be shorter or
    longer."""
    if node.op is not Op.JOIN_UPDATE:
        return operand.shape == node.shape
    shape, axis = operand.shape, node.params[1]
    return (*shape[:axis], *node.shape[axis : axis + 1], *shape[axis + 1 :]) == node.shape


def become(node: Node, ref: ArrayRef) -> None:
    """Let an evaluated node be a leaf: what is built on it reads its value, and what it was made of may go.

    Nobody may be walking over it.
    """
    # `data` first: whoever looks meanwhile sees a leaf or the old step, never a step without inputs.
    for name, value in (("data", ref), ("op", Op.DATA), ("fn", None), ("params", ()), ("inputs", ())):
        force_setattr(node, name, value)
    force_setattr(node, "format", ref.format)


def topological(roots: Iterable[Node]) -> list[Node]:
    """Every node the roots depend on, inputs before users, each once, in a fixed order."""
    done: dict[Node, None] = {}
    above: list[tuple[Node | None, Iterator[Node]]] = []
    node: Node | None = None
    waiting = iter(tuple(roots))
    while True:
        for below in waiting:
            if below in done:
                continue
            if below.inputs:
                above.append((node, waiting))
                node, waiting = below, iter(below.inputs)
                break
            done[below] = None
        else:
            if node is None:
                return list(done)
            done[node] = None
            node, waiting = above.pop()
