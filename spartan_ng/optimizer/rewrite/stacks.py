"""Folds across several arrays as elementwise steps: no stack of them is made.

`np.maximum.reduce([a, b, c])`, `np.mean([a, b, c], axis=0)` and `np.stack((a, b), axis=-1).sum(-1)` lay
arrays beside each other only to fold across them. One after the other they are part of the pass that reads
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.costs.choices import WINDOW_ELEMENTS
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.optimizer.rewrite.rule import ReaderCounts, Rule, rewritten
from spartan_ng.optimizer.rewrite.windows import goes_in_pairs, in_pairs


def fold_stacks(roots: Sequence[Node]) -> list[Node]:
    """Fold across up to `WINDOW_ELEMENTS` arrays without a stack of them, where nobody else reads that."""
    if not [n for n in topological(roots) if n.op is Op.FOLD and _is_stack(n.inputs[0])]:
        return list(roots)
    return rewritten((FOLD_OF_STACK,), roots)


def _is_stack(node: Node) -> bool:
    """Whether a node is a few arrays beside each other along an axis of their own."""
    is_joined = node.op is Op.JOIN_UPDATE and node.fn == "concatenate"
    return is_joined and node.shape[node.params[0]] == len(node.inputs) <= WINDOW_ELEMENTS


def _folded_across(node: Node, readers: ReaderCounts) -> Node | None:
    """The fold of a stack as steps over what lies in it, and a fold of those along its other axes."""
    stack = node.inputs[0]
    if len(node.inputs) != 1 or not (goes_in_pairs(node) and _is_stack(stack) and readers.alone(stack)):
        return None
    (axis,), (axes,) = stack.params, node.params
    if axis not in axes or any(part.shape[axis] != 1 or part.format != "dense" for part in stack.inputs):
        return None
    shape = stack.shape[:axis] + stack.shape[axis + 1 :]
    across = in_pairs(node, [build.reshape_step(part, shape) for part in stack.inputs])
    rest = [a - (a > axis) for a in axes if a != axis]
    return build.fold(str(node.fn), across, rest, dtype=node.dtype) if rest else across


FOLD_OF_STACK = Rule(
    "fold across arrays",
    "np.stack([a, b]).sum(0)",
    "a + b",
    f"dense arrays, {WINDOW_ELEMENTS} at most; folds that go element by element",
    Op.FOLD,
    _folded_across,
)
