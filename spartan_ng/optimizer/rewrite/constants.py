"""Fold constants: steps whose inputs are all scalars on the driver, everything that is empty, and ranges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef
from spartan_ng.arrays.sparse import csr_array
from spartan_ng.callers import warn_user
from spartan_ng.error_state import Heard, entered, error_state
from spartan_ng.graph.build import cast, constant, data, iota, reshape
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.optimizer.passes import Pass
from spartan_ng.optimizer.rewrite.rebuild import rebuild

_SHORT = 1 << 12
"""Elements of an array that is looked at for what it holds."""


def has_constants(order: Sequence[Node]) -> bool:
    """Whether the passes of this module have anything to do in a graph."""
    compares = False
    for node in order:
        shape = node.shape
        if 0 in shape if shape else node.op is Op.MAP:
            return True
        fn = node.fn
        if fn == "equal":
            compares = True
        elif compares and fn == "contract":
            return True
    return False


def resolve_empty(roots: Sequence[Node]) -> list[Node]:
    """Replace empty values, and what is computed from them.

    Plans rely on it: no kernel has to know an empty block. It is never switched off.
    """
    if not any(0 in n.shape for n in topological(roots)):
        return list(roots)
    return rebuild(roots, _resolve_empty)


def fold_constants(roots: Sequence[Node]) -> list[Node]:
    """Compute maps of driver scalars; NumPy's warnings become warnings of the caller's line."""
    if not any(n.op is Op.MAP and n.shape == () for n in topological(roots)):
        return list(roots)
    state = error_state()
    heard = None if state.is_strict else Heard()
    with entered(state.kinds, heard):
        found = rebuild(roots, _fold)
    for text in heard.texts if heard is not None else ():
        warn_user(text, RuntimeWarning)
    return found


def name_ranges(roots: Sequence[Node]) -> list[Node]:
    """Make indices of short arrays that hold 0, 1, 2, ... and are compared: rules for products know these."""
    if not any(n.fn == "contract" for n in topological(roots)):
        return list(roots)
    return rebuild(roots, _name_ranges)


def _name_ranges(node: Node) -> Node:
    if node.fn != "equal":
        return node
    inputs = tuple(_range(i) for i in node.inputs)
    same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
    return node if same else replace(node, inputs=inputs)


def _range(node: Node) -> Node:
    """The indices that a node holds; itself where it holds anything else."""
    if node.op is Op.RESHAPE:
        below = _range(node.inputs[0])
        return node if below is node.inputs[0] else reshape(below, node.shape)
    if node.data is None or node.ndim != 1 or not 1 < node.size <= _SHORT or node.dtype.char not in "il":
        return node
    value = node.data.value
    if not isinstance(value, np.ndarray) or not np.array_equal(value, np.arange(node.size)):
        return node
    return cast(iota(node.size), node.dtype)


def _resolve_empty(node: Node) -> Node:
    if node.op is Op.DATA:
        return node
    if node.size == 0:
        return _empty(node)
    if any(i.size == 0 for i in node.inputs):
        return _over_empty(node)
    return node


def _empty(node: Node) -> Node:
    """A leaf without elements, in the node's format; nothing stores a compressed one."""
    if node.format != "csr":
        return constant(np.empty(node.shape, node.dtype))
    value = csr_array(node.shape, dtype=node.dtype)
    return data(ArrayRef(node.shape, node.dtype, value=value, format="csr", nnz=0))


def _fold(node: Node) -> Node:
    if (
        node.op is Op.MAP
        and node.shape == ()
        and _all_scalars(node)
        and not isinstance(node.fn, UserFunction)
    ):
        row = ELEMENTWISE[str(node.fn)]
        values = [i.data.value for i in node.inputs if i.data is not None]
        if row.name == "cast":
            return constant(values[0].astype(node.dtype))
        value = row.function(*values)
        return constant(value[node.params[0]] if row.nout > 1 else value, node.dtype)
    return node


def _all_scalars(node: Node) -> bool:
    return all(i.data is not None and i.shape == () and i.data.value is not None for i in node.inputs)


def _over_empty(node: Node) -> Node:
    """A value with elements whose input has none: what the operation gives for nothing."""
    if node.op is Op.FOLD and isinstance(node.fn, str):
        row, a = FOLDS[node.fn], node.inputs[0]
        (axes,) = node.params
        state = row.block(np.empty(a.shape, a.dtype), axes, node.dtype, None, 0)
        return constant(row.finalize(state), node.dtype)
    if node.fn in ("contract", "bincount"):
        return constant(np.zeros(node.shape, node.dtype))
    if node.fn == "concatenate":
        kept = tuple(i for i in node.inputs if i.size)
        return (
            kept[0]
            if len(kept) == 1
            else Node(node.op, node.fn, kept, node.params, node.shape, node.dtype, node.format)
        )
    if node.fn in ("assign", "scatter"):
        return node.inputs[0]
    return node


VALUE_PASSES: tuple[tuple[str, Pass], ...] = (
    ("resolve_empty", resolve_empty),
    ("fold_constants", fold_constants),
    ("name_ranges", name_ranges),
)
"""Passes that look at values; they run before a plan is looked up."""
