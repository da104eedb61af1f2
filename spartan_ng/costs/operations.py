"""How many floating-point operations a step takes: the one count, for nodes of graphs and rows of stages.

The tables of `ops` say what one element costs; products count multiplications and additions. `flops` counts a
step on dense operands; `work` turns that into operations of a loop over elements that take as long, of sparse
operands over what they store alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import expm1, prod
from typing import Any

import numpy as np

from spartan_ng.costs.tuned import (
    BLAS_SPEEDUP,
    LINE_FLOPS,
    LOOKUP_FLOPS,
    MEET_FLOPS,
    NEAR_BYTES,
    NEAR_LOOKUP_FLOPS,
    PANEL_FLOPS,
    RESULT_FLOPS,
    SEARCH_FLOPS,
    STEP_FLOPS,
    TURNED,
    USER_FLOPS,
)
from spartan_ng.graph.node import Node, Op
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS, ArgFold
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import AXIS_FUNCTIONS, REDUCING, worked_length
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.ops.scans import SCANS

_VIEWS = frozenset({"slice", "transpose", "reshape", "broadcast", "data", "index", "iota", "tile_as"})
"""Steps that say only where elements lie."""
_COPIES = frozenset({"concatenate", "assign"})
"""Joins that lay whole runs of elements down one behind the other."""
_TAKING = REDUCING | {"nonzero", "scatter"}
"""Joins and filters that go over more than they make."""

Shape = tuple[int, ...]


def flops(
    kind: str,
    fn: str | UserFunction | None,
    params: tuple[Any, ...],
    shape: tuple[int, ...],
    taken: int,
    dtype: np.dtype[Any],
) -> int:
    """Floating-point operations of one step.

    Parameters
    ----------
    kind : of a row (`plan.Row.kind`), or a node's operator
    fn, params : the step's own
    shape : the result's
    taken : elements that the step goes over: of the operand of a fold, of the index space of a product
    dtype : the result's
    """
    made = prod(shape)
    if isinstance(fn, UserFunction):  # a function of tiles is called once for each, and works on arrays
        return STEP_FLOPS * taken if kind == "join_update" else made * USER_FLOPS
    if "contract" in (kind, fn):
        return 2 * taken
    if kind == "map":
        return made * ELEMENTWISE[str(fn)].flops
    if kind == "fold":
        fold = FOLDS[str(fn)]
        if not isinstance(fold, ArgFold):
            return taken * fold.flops
        across = params[0] != (len(shape),)  # the lines that it searches do not lie one behind the other
        return taken * fold.flops * (TURNED if across else 1) + made * LINE_FLOPS
    if kind == "scan" and fn in SCANS:
        return made * SCANS[str(fn)].flops
    if "along_axis" in (kind, fn):
        each = AXIS_FUNCTIONS[params[0]].line_flops(worked_length(params, shape), dtype, params[2])
        lines: int = made // max(shape[params[1]], 1)
        return lines * each
    if "take" in (kind, fn):
        return made * LOOKUP_FLOPS
    if "search" in (kind, fn):
        return made * SEARCH_FLOPS
    if kind == "random" and fn in DISTRIBUTIONS:
        return made * DISTRIBUTIONS[str(fn)].flops
    if _VIEWS & {kind, fn}:
        return 0
    if _COPIES & {kind, fn}:
        return made
    if "places" in (kind, fn):
        return AXIS_FUNCTIONS["sort"].line_flops(taken, dtype)
    return STEP_FLOPS * (taken if _TAKING & {kind, fn} else made)


def of_node(node: Node) -> int:
    """Floating-point operations that computing a node once takes, all elements of dense operands."""
    if node.fn == "take":
        return lookups(node.size, node.inputs[0].nbytes)
    return flops(node.op, node.fn, node.params, node.shape, _taken(node), node.dtype)


def _taken(node: Node) -> int:
    """The elements that a node goes over."""
    if node.fn == "contract":
        return volume(node)
    if node.op in (Op.MAP, Op.RANDOM):
        return node.size
    return max((i.size for i in node.inputs), default=0)


def work_of_node(node: Node, stored: Sequence[float | None] = (), part: float | None = None) -> int:
    """The same in operations of a loop, of sparse operands over what is `stored` alone (`work`)."""
    shapes = [i.shape for i in node.inputs]
    known = stored or (None,) * len(shapes)
    return work(node.op, node.fn, node.params, node.shape, node.dtype, shapes, known, part, node.format)


def work(
    kind: str,
    fn: str | UserFunction | None,
    params: tuple[Any, ...],
    shape: Shape,
    dtype: np.dtype[Any],
    operands: Sequence[Shape],
    stored: Sequence[float | None],
    part: float | None = None,
    format: str = "dense",
) -> int:
    """Operations of a loop over elements that take as long as one step, be it a row of a stage or a node.

    Parameters
    ----------
    kind, fn, params, shape, dtype, format : of a row (`plan.Row`), or a node
    operands : the shapes of what it reads
    stored : for each operand the part of its elements that is stored; None of dense ones
    part : of a step that is computed at the non-zeros of another array alone, the part of its elements that
        has them
    """
    made = prod(shape)
    if "contract" in (kind, fn):
        return _of_product(params, shape, dtype, operands, stored, part, format)
    if part is None and format == "csr":
        part = density(kind, fn, params, shape, operands, stored)
    if "take" in (kind, fn):
        count = lookups(made, prod(operands[0]) * dtype.itemsize)
    else:
        taken = max(map(prod, operands), default=made)
        if kind == "fold":
            taken = prod(operands[0]) if stored[0] is None else _share(prod(operands[0]), stored[0])
        count = flops(kind, fn, params, shape, taken, dtype)
    return count if part is None else _share(count, part)


def _of_product(
    params: tuple[Any, ...],
    shape: Shape,
    dtype: np.dtype[Any],
    operands: Sequence[Shape],
    stored: Sequence[float | None],
    part: float | None,
    format: str,
) -> int:
    """Each non-zero of a sparse operand looks up what belongs to it in the other one, if that is dense, and
    meets a row of non-zeros, if that is sparse, too. Dense products are BLAS's, but of what is sampled."""
    sizes = [prod(operand) for operand in operands]
    count = 2 * _volume(params, operands)
    shares = [share for share in stored if share is not None]
    if format == "csr" and len(shares) == len(operands):
        return by_pairs(count // 2 * prod(shares))
    if part is not None:
        return _share(count, part)
    if not shares:
        return by_blas(count, prod(shape), sizes)
    share = min(shares)
    other = sizes[1 - stored.index(share)]
    return _share(count, share) + lookups(_share(sizes[stored.index(share)], share), other * dtype.itemsize)


def _share(count: int, part: float) -> int:
    return round(count * part)


def density(
    kind: str,
    fn: str | UserFunction | None,
    params: tuple[Any, ...],
    shape: Shape,
    operands: Sequence[Shape],
    stored: Sequence[float | None],
) -> float:
    """The part of a sparse result's elements that is stored, at most, as far as its operands tell."""
    shares = [share for share in stored if share is not None]
    size = prod(shape)
    if "contract" in (kind, fn):
        return met(size, prod(shares) * _volume(params, operands)) / max(size, 1)
    if kind != "map" or isinstance(fn, UserFunction):
        return max(shares, default=1.0)
    alike = [s for s, seen in zip(stored, operands, strict=True) if s is not None and seen == shape]
    if not alike:
        return 1.0
    return min(alike) if ELEMENTWISE[str(fn)].zero == "any" else min(1.0, sum(alike))


def lookups(count: int, nbytes: int) -> int:
    """Operations that finding so many elements of an array of so many bytes takes the time of."""
    return count * (NEAR_LOOKUP_FLOPS if nbytes <= NEAR_BYTES else LOOKUP_FLOPS)


def by_pairs(count: float) -> int:
    """The same of so many pairs of non-zeros that two sparse matrices multiply."""
    return int(count) * MEET_FLOPS


def volume(product: Node) -> int:
    """The elements of the index space of a product: of all its labels together."""
    return _volume(product.params, [i.shape for i in product.inputs])


def _volume(params: tuple[Any, ...], operands: Iterable[Shape]) -> int:
    sizes: dict[int, int] = {}
    for labels, shape in zip(params, operands, strict=False):
        sizes.update(zip(labels, shape, strict=True))
    return prod(sizes.values())


def pairs(product: Node, nonzeros: Mapping[Node, float]) -> float:
    """Pairs of non-zeros that a product of two sparse matrices multiplies, if they lie anywhere."""
    a, b = product.inputs
    return nonzeros[a] * nonzeros[b] * volume(product) / max(a.size * b.size, 1)


def met(size: int, count: float) -> float:
    """Of so many elements those that are expected to be met by `count` that lie anywhere."""
    return -size * expm1(-count / size) if size else 0.0


def by_blas(count: int, made: int, read: Sequence[int]) -> int:
    """Operations of a loop that take as long as `count` of a dense product of so large operands with `made`
    results.

    Where an operand has all labels of the product, the other one has none of its own: it is a vector.
    """
    copied = sum(read) if count > 2 * max(read, default=0) else 0
    return max(count // BLAS_SPEEDUP, RESULT_FLOPS * made) + PANEL_FLOPS * copied
