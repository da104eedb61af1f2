"""How many floating-point operations a step takes: the one count, for nodes of graphs and rows of stages.

The tables of `ops` say what one element costs; products count multiplications and additions. `weighed` turns
a step's operations into those of a loop over elements that take as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import expm1, prod
from typing import Any

import numpy as np

from spartan_ng.costs.tuned import (
    BLAS_SPEEDUP,
    LINE_FLOPS,
    LOOKUP_FLOPS,
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
from spartan_ng.ops.joins import AXIS_FUNCTIONS, REDUCING
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.ops.scans import SCANS

_VIEWS = frozenset({"slice", "transpose", "reshape", "broadcast", "data", "index"})
"""Steps that say only where elements lie."""


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
    if isinstance(fn, UserFunction):
        return made * USER_FLOPS
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
        line: int = shape[params[1]]
        each = AXIS_FUNCTIONS[params[0]].line_flops(line, dtype, params[2], alone=len(shape) == 1)
        return made // max(line, 1) * each
    if "take" in (kind, fn):
        return made * LOOKUP_FLOPS
    if "search" in (kind, fn):
        return made * SEARCH_FLOPS
    if kind == "random" and fn in DISTRIBUTIONS:
        return made * DISTRIBUTIONS[str(fn)].flops
    if kind in _VIEWS:
        return 0
    return STEP_FLOPS * (taken if REDUCING & {kind, fn} else made)


def of_node(node: Node) -> int:
    """Floating-point operations that computing a node once takes, all elements of dense operands."""
    if node.fn == "contract":
        return flops("contract", node.fn, node.params, node.shape, volume(node), node.dtype)
    if node.fn == "take":
        return lookups(node.size, node.inputs[0].nbytes)
    taken = node.size if node.op in (Op.MAP, Op.RANDOM) else max((i.size for i in node.inputs), default=0)
    return flops(node.op, node.fn, node.params, node.shape, taken, node.dtype)


def lookups(count: int, nbytes: int) -> int:
    """Operations that finding so many elements of an array of so many bytes takes the time of."""
    return count * (NEAR_LOOKUP_FLOPS if nbytes <= NEAR_BYTES else LOOKUP_FLOPS)


def volume(product: Node) -> int:
    """The elements of the index space of a product: of all its labels together."""
    sizes: dict[int, int] = {}
    for labels, operand in zip(product.params, product.inputs, strict=False):
        sizes.update(zip(labels, operand.shape, strict=True))
    return prod(sizes.values())


def pairs(product: Node, nonzeros: Mapping[Node, float]) -> float:
    """Pairs of non-zeros that a product of two sparse matrices multiplies, if they lie anywhere."""
    a, b = product.inputs
    return nonzeros[a] * nonzeros[b] * volume(product) / max(a.size * b.size, 1)


def met(size: int, count: float) -> float:
    """Of so many elements those that are expected to be met by `count` that lie anywhere."""
    return -size * expm1(-count / size) if size else 0.0


def weighed(node: Node, count: int, share: float = 1.0) -> int:
    """Operations of a loop over elements that take as long as a node's `count`.

    Of a node whose sparse operand is stored in part only that share is done, by a loop. Dense products are
    BLAS's.
    """
    if node.fn == "contract" and share == 1.0:
        return by_blas(count, node.size, [i.size for i in node.inputs])
    return int(count * share)


def by_blas(count: int, made: int, read: Sequence[int]) -> int:
    """Operations of a loop that take as long as `count` of a dense product of so large operands with `made`
    results.

    Where an operand has all labels of the product, the other one has none of its own: it is a vector.
    """
    copied = sum(read) if count > 2 * max(read, default=0) else 0
    return max(count // BLAS_SPEEDUP, RESULT_FLOPS * made) + PANEL_FLOPS * copied
