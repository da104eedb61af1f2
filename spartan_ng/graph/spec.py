"""What a graph has to be, as a table of rules, after tinygrad's `spec.py`.

The functions of `build` raise users' mistakes; what a pass makes of a graph has to keep the same rules, and
here they are asked of every node. `config.check` has them asked after each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from spartan_ng.graph.node import OPERATORS, VIEWS, Node, Op, has_lines_of, topological
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.ops.matrices import MATRIX_FUNCTIONS
from spartan_ng.ops.random import DISTRIBUTIONS
from spartan_ng.ops.scans import MONOIDS, SCANS

T = TypeVar("T")
FORMATS = ("dense", "csr", "compressed")


class BrokenRule(AssertionError):
    """A graph or a plan that is none: a fault of ours, and never the user's."""


class SpecRule(Struct, Generic[T], frozen=True):
    """One rule: its name, what it says, and whether a subject keeps it."""

    name: str
    says: str
    holds: Callable[[T], bool]


def broken(rules: Iterable[SpecRule[T]], subject: T) -> SpecRule[T] | None:
    """The first rule that the subject breaks; one that cannot even be asked is broken."""
    for rule in rules:
        try:
            if not rule.holds(subject):
                return rule
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return rule
    return None


def check_graph(roots: Sequence[Node], after: str, asked: Container[Node] = ()) -> list[Node]:
    """Ask the rules of every node that the roots depend on, but for those that have been `asked`, which never
    change; all nodes in order.

    Raises
    ------
    BrokenRule : a node breaks one; it names the node, the rule, and the pass it came out of (`after`)
    """
    order = topological(roots)
    for node in order:
        if node in asked:
            continue
        rule = broken(_BY_OP[node.op], node)
        if rule is not None:
            inputs = ", ".join(map(repr, node.inputs))
            raise BrokenRule(
                f"after {after}: {node!r} of ({inputs}), params {node.params}, breaks the rule "
                f"{rule.name!r}: {rule.says}"
            )
    return order


def check_pass(
    before: Sequence[Node], after: Sequence[Node], name: str, asked: Container[Node] = ()
) -> list[Node]:
    """A pass gives as many roots as it got, each with the shape and dtype it had, and a graph, whose nodes
    are given; see `check_graph`.

    Raises
    ------
    BrokenRule : it does not
    """
    kept = [(n.shape, n.dtype) for n in before] == [(n.shape, n.dtype) for n in after]
    if not kept:
        raise BrokenRule(f"after {name}: the roots {[*before]} became {[*after]}")
    return check_graph(after, name, asked)


def check_leaves(before: Sequence[Node], after: Sequence[Node]) -> None:
    """What a plan reads are the program's leaves: passes over the structure alone, whose result is kept for
    other leaves, make none.

    Raises
    ------
    BrokenRule : they do
    """
    there = {n.data for n in topological(before) if n.data is not None}
    made = [n for n in topological(after) if n.data is not None and n.data not in there]
    if made:
        raise BrokenRule(f"after rewriting: no leaves of the program's: {made}")


# --- rules of single operators ----------------------------------------------------------------------


def _is_shape(node: Node) -> bool:
    return type(node.shape) is tuple and all(type(n) is int and n >= 0 for n in node.shape)


def _broadcasts(node: Node) -> bool:
    return np.broadcast_shapes(*(i.shape for i in node.inputs)) == node.shape


def _is_folded(node: Node) -> bool:
    (axes,) = node.params
    a, *where = node.inputs
    kept = tuple(n for i, n in enumerate(a.shape) if i not in axes)
    fits = list(axes) == sorted({*axes}) and {*axes} <= {*range(a.ndim)} and node.shape == kept
    return fits and all(w.shape == a.shape for w in where) and len(where) <= 1


def _is_scanned(node: Node) -> bool:
    (axis,) = node.params
    return 0 <= axis < node.ndim and all(i.shape == node.shape for i in node.inputs)


def _is_sliced(node: Node) -> bool:
    (a,) = node.inputs
    if node.size == 0:
        return len(node.params) == node.ndim == a.ndim
    ends = zip(node.params, node.shape, a.shape, strict=True)
    return all(0 <= s < n and 0 <= s + t * (m - 1) < n and t != 0 for (s, t), m, n in ends)


def _is_transposed(node: Node) -> bool:
    (a,), (axes,) = node.inputs, node.params
    return sorted(axes) == [*range(a.ndim)] and node.shape == tuple(a.shape[i] for i in axes)


def _is_filtered(node: Node) -> bool:
    *_, mask = node.inputs
    (count,) = node.params
    if node.fn == "nonzero":
        return mask.dtype == bool and node.shape == (count,) and node.dtype == np.intp
    a, _ = node.inputs
    covered = mask.shape == a.shape[: mask.ndim]
    return covered and mask.dtype == bool and node.shape == (count, *a.shape[mask.ndim :])


def _is_contracted(node: Node) -> bool:
    a, b = node.inputs
    la, lb, out = node.params
    sizes = [*zip(la, a.shape, strict=True), *zip(lb, b.shape, strict=True)]
    size = dict(sizes)
    summed = ({*la} | {*lb}) - {*out}
    alone = all(len(labels) == len({*labels}) for labels in (la, lb, out))
    fits = all(size[label] == n for label, n in sizes) and node.shape == tuple(size[x] for x in out)
    return alone and fits and summed <= {*la} & {*lb}


def _is_concatenated(node: Node) -> bool:
    (axis,) = node.params
    shapes = [i.shape for i in node.inputs]
    rest = {(*s[:axis], *s[axis + 1 :]) for s in (*shapes, node.shape)}
    alike = all(i.dtype == node.dtype for i in node.inputs)
    return alike and len(rest) == 1 and sum(s[axis] for s in shapes) == node.shape[axis]


def _is_assigned(node: Node) -> bool:
    base, value = node.inputs
    places = zip(node.params, value.shape, base.shape, strict=True)
    inside = value.size == 0 or all(s >= 0 and s + t * (m - 1) < n and t > 0 for (s, t), m, n in places)
    return inside and (base.shape, base.dtype) == (node.shape, node.dtype) and value.dtype == node.dtype


def _is_taken(node: Node) -> bool:
    (a, indices), (axis,) = node.inputs, node.params
    shape = (*a.shape[:axis], *indices.shape, *a.shape[axis + 1 :])
    return node.shape == shape and indices.dtype == np.int64 and node.dtype == a.dtype


def _is_searched(node: Node) -> bool:
    (a, values), (side,) = node.inputs, node.params
    fits = a.ndim == 1 and a.dtype == values.dtype and node.shape == values.shape
    return fits and side in ("left", "right")


def _is_scattered(node: Node) -> bool:
    base, indices, values = node.inputs
    return base.shape == node.shape and base.ndim == 1 and indices.shape == values.shape


def _is_of_lines(node: Node) -> bool:
    name, axis, _ = node.params
    return name in AXIS_FUNCTIONS and 0 <= axis < node.ndim and has_lines_of(node, node.inputs[0])


def _is_of_matrices(node: Node) -> bool:
    name, batch, stacked, _ = node.params
    leads = [i.shape[:batch] for i, s in zip(node.inputs, stacked, strict=True) if s]
    return name in MATRIX_FUNCTIONS and all(lead == node.shape[:batch] for lead in leads)


def _is_counted(node: Node) -> bool:
    (x, *weights), (length,) = node.inputs, node.params
    rest = weights[0].shape[1:] if weights else ()
    return x.ndim == 1 and x.dtype == np.int64 and node.shape == (length, *rest)


def _is_of_spans(node: Node) -> bool:
    ((x,), (_, spans)) = node.inputs, node.params
    inside = all(0 <= lo <= hi <= x.size for lo, hi in spans)
    return x.ndim == 1 and inside and all(a[1] <= b[0] for a, b in pairwise(spans))


def _is_joined(node: Node) -> bool:
    axes, _ = node.params
    return len({i.shape[a] for i, a in zip(node.inputs, axes, strict=True) if a >= 0}) <= 1


def _is_native_line(node: Node) -> bool:
    return node.inputs[0].ndim == 1 and node.inputs[0].dtype.isnative and node.dtype.isnative


_JOINS: dict[str, Callable[[Node], bool]] = {
    "contract": _is_contracted,
    "concatenate": _is_concatenated,
    "assign": _is_assigned,
    "take": _is_taken,
    "search": _is_searched,
    "scatter": _is_scattered,
    "tile_as": lambda n: n.shape == n.inputs[0].shape and n.dtype == n.inputs[0].dtype,
    "along_axis": _is_of_lines,
    "matrices": _is_of_matrices,
    "bincount": _is_counted,
    "ends": lambda n: _is_native_line(n) and n.params[1] == n.shape[0] <= n.inputs[0].size,
    "distinct": lambda n: _is_native_line(n) and n.shape == n.params and n.dtype == n.inputs[0].dtype,
    "places": _is_of_spans,
    "between": lambda n: len(n.params[2]) == len(n.params[1]) + 1 and n.ndim == 1 and n.dtype == np.uint8,
}


def _is_known(node: Node) -> bool:
    return isinstance(node.fn, UserFunction) or node.fn in _KNOWN[node.op]


_KNOWN = {
    Op.MAP: ELEMENTWISE.keys(),
    Op.FILTER: {"compress", "nonzero"},
    Op.FOLD: FOLDS.keys(),
    Op.SCAN: SCANS.keys() | MONOIDS.keys(),
    Op.JOIN_UPDATE: _JOINS.keys(),
    Op.RANDOM: DISTRIBUTIONS.keys(),
    Op.INDEX: {"iota"},
}
_LEAVES = frozenset({Op.DATA, Op.INDEX, Op.RANDOM})
_EVERY = frozenset(Op)

RULES: tuple[tuple[frozenset[Op], SpecRule[Node]], ...] = (
    (_EVERY, SpecRule("shape", "a shape is a tuple of ints, none below 0", _is_shape)),
    (_EVERY, SpecRule("dtype", "a dtype is NumPy's", lambda n: isinstance(n.dtype, np.dtype))),
    (
        _EVERY,
        SpecRule(
            "format",
            "a format is known, and only matrices are sparse or compressed",
            lambda n: n.format in FORMATS and (n.format == "dense" or n.ndim == 2),
        ),
    ),
    (
        _EVERY,
        SpecRule(
            "leaves",
            "data, indices and random numbers have no inputs, and all else has some",
            lambda n: (n.op in _LEAVES) == (not n.inputs),
        ),
    ),
    (
        _EVERY - {Op.DATA},
        SpecRule("values", "only data has a value", lambda n: n.data is None),
    ),
    (
        frozenset({Op.DATA}),
        SpecRule(
            "data",
            "a leaf says of its array what that is",
            lambda n: n.data is not None and (n.data.shape, n.data.dtype) == (n.shape, n.dtype),
        ),
    ),
    (OPERATORS | {Op.RANDOM, Op.INDEX}, SpecRule("function", "a table has the function's row", _is_known)),
    (
        frozenset({Op.MAP}),
        SpecRule(
            "operands",
            "a function gets as many operands as it takes",
            lambda n: isinstance(n.fn, UserFunction) or len(n.inputs) == ELEMENTWISE[str(n.fn)].nin,
        ),
    ),
    (frozenset({Op.MAP}), SpecRule("broadcast", "a map has the shape of its operands together", _broadcasts)),
    (
        frozenset({Op.FILTER}),
        SpecRule("filter", "truth values over the leading axes, and a count of them", _is_filtered),
    ),
    (
        frozenset({Op.FOLD}),
        SpecRule("fold", "sorted axes of the operand are dropped; a mask has its shape", _is_folded),
    ),
    (frozenset({Op.SCAN}), SpecRule("scan", "along an axis, of operands of the result's shape", _is_scanned)),
    (
        frozenset({Op.JOIN_UPDATE}),
        SpecRule(
            "join",
            "inputs, params and shape are as `ops.joins` says",
            lambda n: _is_joined(n) if isinstance(n.fn, UserFunction) else _JOINS[str(n.fn)](n),
        ),
    ),
    (
        VIEWS,
        SpecRule(
            "view",
            "a view has one operand, and its dtype",
            lambda n: len(n.inputs) == 1 and n.dtype == n.inputs[0].dtype and n.fn is None,
        ),
    ),
    (frozenset({Op.SLICE}), SpecRule("slice", "steps along each axis that stay inside", _is_sliced)),
    (frozenset({Op.TRANSPOSE}), SpecRule("transpose", "all axes, in another order", _is_transposed)),
    (
        frozenset({Op.RESHAPE}),
        SpecRule("reshape", "as many elements as before", lambda n: n.size == n.inputs[0].size),
    ),
    (
        frozenset({Op.BROADCAST}),
        SpecRule(
            "stretch",
            "the operand broadcasts to the shape",
            lambda n: np.broadcast_shapes(n.inputs[0].shape, n.shape) == n.shape,
        ),
    ),
)
"""Each rule with the operators whose nodes it is asked of."""

_BY_OP = {op: tuple(rule for ops, rule in RULES if op in ops) for op in Op}
