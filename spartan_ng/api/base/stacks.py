"""Decompositions of stacks of matrices: every worker works on the matrices that it has.

Shapes, dtypes and errors of the arguments are NumPy's own, asked of an empty stack; a failure is found by
evaluating at the call, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import reductions
from spartan_ng.api.base.room import budget, work_fits
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.forcing import compute_nodes, value_of
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import is_limited
from spartan_ng.ops.matrices import MATRIX_FUNCTIONS

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

Outputs = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
"""The shape of one matrix's result, and its dtype, for each result."""


def probed(function: Callable[..., Any], arrays: Sequence[Handle], **keywords: Any) -> Outputs:
    """What NumPy's function gives for matrices of these shapes and dtypes; its errors for bad ones."""
    for a in arrays:
        if a.ndim < 2:
            function(*(np.empty(x.shape, x.dtype) for x in arrays), **keywords)
    parts = function(*(np.empty((0, *a.shape[-2:]), a.dtype) for a in arrays), **keywords)
    return [(p.shape[1:], p.dtype) for p in (parts if isinstance(parts, tuple) else (parts,))]


def on_stack(
    name: str,
    arrays: Sequence[Any],
    outputs: Outputs,
    *,
    whole: Sequence[Any] = (),
    check: bool = True,
    **keywords: Any,
) -> list[ndarray]:
    """A row of `MATRIX_FUNCTIONS` on every matrix of `arrays`, whose leading axes broadcast.

    Parameters
    ----------
    outputs : what it gives for one matrix, in order
    whole : further operands, the same for every matrix; they come first
    check : evaluate now, and raise LinAlgError where the function fails
    """
    found = [as_handle(a) for a in arrays]
    _check_room(name, [*found, *map(as_handle, whole)], outputs)
    batch = build.broadcast_shapes(name, *(a.shape[:-2] for a in found))
    dtype = np.result_type(*(d for _, d in outputs))
    nodes = [build.broadcast(a._node(), batch + a.shape[-2:]) for a in found]
    first = [as_handle(w)._node() for w in whole]
    length = bool(MATRIX_FUNCTIONS[name].failure) + sum(prod(shape) for shape, _ in outputs)
    node = build.matrices(
        name,
        [*first, *nodes],
        [False] * len(first) + [True] * len(nodes),
        batch,
        length,
        dtype=dtype,
        keywords=tuple(keywords.items()),
    )
    lines = wrap_node(node)
    if check:
        lines = _checked(name, lines)
    parts, at = [], 0
    for shape, kind in outputs:
        part = lines[..., at : at + prod(shape)]
        at += prod(shape)
        if dtype.kind == "c" and kind.kind != "c":
            part = part.real
        found_part = part.reshape((*batch, *shape)).astype(kind, copy=False)
        parts.append(found_part if found_part.shape else wrap_node(found_part._node()))
    return parts


_COPIES = 2
"""LAPACK copies what it is given, and what it makes."""


def _check_room(name: str, arrays: Sequence[Handle], outputs: Outputs) -> None:
    """MemoryBudgetError where one matrix has no room in the memory that was set; but what the program has in
    its own memory is worked on, whatever that takes."""
    if not is_limited():
        return
    one = sum(prod(a.shape[-2:]) * a.dtype.itemsize for a in arrays)
    needed = _COPIES * (one + sum(prod(shape) * dtype.itemsize for shape, dtype in outputs))
    if not work_fits(arrays, needed):
        shapes = " and ".join(str(a.shape[-2:]) for a in arrays)
        raise MemoryBudgetError(
            f"linalg: {name.removesuffix(' positive')} of a matrix of shape {shapes} is one task, and takes "
            f"about {needed:,} bytes, with a budget of {budget():,}: raise config.memory_bytes (of workers, "
            "--memory), or take a narrower dtype; of at least four times as many rows as columns it is done "
            "by groups of rows, if a few times the square of the columns has room"
        )


def _checked(name: str, lines: ndarray) -> ndarray:
    """The evaluated lines, or LinAlgError where one is marked as failed."""
    failed = reductions.any(lines[..., -1] != 0)
    node = lines._node()
    ref, flag = compute_nodes([node, as_handle(failed)._node()])
    lines._settle(ref, node)
    if value_of(flag):
        raise np.linalg.LinAlgError(MATRIX_FUNCTIONS[name].failure)
    return lines
