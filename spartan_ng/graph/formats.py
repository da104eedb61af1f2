"""Which formats elementwise functions keep: what is known of their zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.graph.node import Node
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction

_STORED_SPARSE = "?bBhHiIlLqQfdgFDG"
"""Dtypes of elements that SciPy's sparse arrays can have: not half precision, dates or objects."""


def map_format(
    fn: str | UserFunction, inputs: tuple[Node, ...], shape: tuple[int, ...], dtype: np.dtype[Any]
) -> str:
    """The result's format: sparse where every zero of the sparse operands stays zero, compressed for
    functions of one compressed operand and scalars.

    Sparse operands count where they have the result's shape: a row of one that is stretched has its zeros
    elsewhere. What the table does not say for sure, a function may still do for the scalars at hand: 0 > 0,
    0 ** 3, 0 / 2.
    """
    for i in inputs:  # without further calls: each elementwise step asks
        if i.format != "dense":
            break
    else:
        return "dense"
    if isinstance(fn, UserFunction) or ELEMENTWISE[fn].nout != 1:
        return "dense"
    formats = [i.format for i in inputs]
    if formats.count("compressed") == 1:
        others = [i for i in inputs if i.format != "compressed"]
        scalars = all(i.format == "dense" and i.size == 1 and i.ndim <= 2 for i in others)
        return "compressed" if scalars else "dense"
    row, sparse = ELEMENTWISE[fn], [i.format == "csr" and i.shape == shape for i in inputs]
    if not any(sparse) or dtype.char not in _STORED_SPARSE:
        return "dense"
    if row.zero in ("unary", "any") or (row.zero == "all" and all(sparse)):
        return "csr"
    if row.zero == "first" and sparse[0] and inputs[1].format == "dense" and _scalar_value(inputs[1]) is None:
        return "csr"
    if fn == "where":  # what is chosen at non-zeros alone may be anything
        inputs, sparse = inputs[::2], sparse[::2]
        if not sparse[0]:
            return "dense"
        return "csr" if sparse[1] or _scalar_value(inputs[1]) == 0 else "dense"
    zeros = [i.dtype.type(0) if s else _scalar_value(i) for i, s in zip(inputs, sparse, strict=True)]
    if any(z is None for z in zeros):
        return "dense"
    with np.errstate(all="ignore"):
        return "csr" if row.function(*zeros) == 0 else "dense"


def contract_format(a: Node, b: Node, labels: tuple[tuple[int, ...], ...], dtype: np.dtype[Any]) -> str:
    """The result's format: the product of two CSR arrays that are matrices to each other has non-zeros where
    theirs meet, and is one."""
    if not a.format == b.format == "csr" or dtype.char not in _STORED_SPARSE:
        return "dense"
    la, lb, lo = labels
    shared = {*la} & {*lb}
    return "csr" if len(shared) == 1 and len(lo) == 2 and not shared & {*lo} else "dense"


def is_sparse_product(node: Node) -> bool:
    """Whether the node is the product of two sparse matrices, which is made row by row of the result."""
    return node.fn == "contract" and node.format == "csr"


def _scalar_value(node: Node) -> Any:
    """The value of a scalar that the driver holds, cast or not; None for all else."""
    if node.fn == "cast" and node.shape == ():
        value = _scalar_value(node.inputs[0])
        return None if value is None else value.astype(node.dtype)
    return node.data.value if node.data is not None and node.shape == () else None
